"""fig:growth: how the time grows with samples, tokens, seeds and episodes, relative to the fewest of each."""

from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, GHOST, THEORY, figure, panel
from ghost.runs.records import Run

SHOWN = ("samples", "tokens", "seeds", "episodes")


def draw(runs: dict[str, list[Run]]) -> Figure:
    """A panel for each: three of the lines lie on each other."""
    (run,) = runs["benchmarks"]
    arrays = run.arrays()
    made, row = figure(COLUMN_IN, 1.6, ncols=len(SHOWN), sharey=True)
    for axes, letter, name in zip(row, "abcd", SHOWN, strict=True):
        sizes, taken_s = arrays[f"growth/{name}/sizes"], arrays[f"growth/{name}/seconds"]
        more = sizes / sizes[0]
        # above the measured line, which would hide it where the two agree
        axes.loglog(more, more, color=THEORY, linewidth=0.8, linestyle="--", zorder=3)
        axes.loglog(more, taken_s / taken_s[0], "o-", color=GHOST, markersize=3)
        axes.text(
            0.95, 0.05, f"$n^{{{run.value(f'growth/{name}', 'exponent'):.2f}}}$", ha="right", transform=axes.transAxes
        )
        axes.margins(0.12)
        axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axes.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axes.minorticks_off()
        panel(axes, letter, name)
    row[0].set_ylabel("times as long")
    made.supxlabel("times as much", fontsize=8)
    return made
