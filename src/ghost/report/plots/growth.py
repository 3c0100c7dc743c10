"""fig:growth: how the time grows with samples, tokens, seeds and episodes, relative to the fewest of each."""

from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, PALETTE, THEORY, figure
from ghost.runs.records import Run


def draw(runs: dict[str, list[Run]]) -> Figure:
    (run,) = runs["benchmarks"]
    arrays = run.arrays()
    made, axes = figure(COLUMN_IN, 1.9)
    largest = 1.0
    for name, color, marker in zip(("samples", "tokens", "seeds", "episodes"), PALETTE, "osD^", strict=False):
        sizes, taken_s = arrays[f"growth/{name}/sizes"], arrays[f"growth/{name}/seconds"]
        exponent = run.value(f"growth/{name}", "exponent")
        label = rf"{name}, $\propto n^{{{exponent:.2f}}}$"
        axes.loglog(sizes / sizes[0], taken_s / taken_s[0], marker + "-", color=color, markersize=3, label=label)
        largest = max(largest, sizes[-1] / sizes[0])
    axes.loglog([1, largest], [1, largest], color=THEORY, linewidth=0.8, linestyle="--", label="proportional", zorder=0)
    axes.set(xlabel="times as much", ylabel="times as long")
    axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    axes.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    axes.minorticks_off()
    axes.legend(loc="upper left", borderaxespad=0, handlelength=1.4)
    return made
