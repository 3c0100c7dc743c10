"""fig:switch_speed: the tilted double well under both contexts, and how fast each update contracts after the switch."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, GHOST, RECURRENT, THEORY, figure, note, panel
from ghost.runs.records import Run


def draw(runs: dict[str, list[Run]]) -> Figure:
    (run,) = runs["switch_speed"]
    arrays, settings = run.arrays(), run.record()["settings"]
    made, (left, right) = figure(COLUMN_IN, 1.75, ncols=2)

    z = arrays["landscape/z"]
    for context, color, basin, name in ((0, THEORY, "basin_a", "A"), (1, GHOST, "basin_b", "B")):
        u = arrays[f"landscape/u_c{context}"]
        at = run.value("landscape", basin)
        left.plot(z, u, color=color, linestyle="--" if context == 0 else "-", label=f"$c = {context}$")
        left.plot(at, np.interp(at, z, u), "o", color=color)
        note(left, name, (at, np.interp(at, z, u)), (0, -10), ha="center")
    left.set(xlabel="$z_1$", ylabel="$U(z_1; c)$", ylim=(-8.5, 9))
    left.legend(loc="upper center", handlelength=1.4, borderaxespad=0)
    panel(left, "a", "landscape")

    ratio = arrays["ghost/ratio"]
    steps = np.arange(1, len(ratio) + 1)
    ends: dict[float, float] = {}  # rate -> where its line ends
    for alpha in settings["gru_alphas"]:
        recurrent = arrays[f"gru_a{alpha:.2f}/ratio"]
        right.plot(steps, recurrent, color=RECURRENT, linewidth=0.8, linestyle="--")
        ends[alpha] = float(recurrent[-1])
    for rates in _close(ends):
        end = (steps[-1], float(np.mean([ends[alpha] for alpha in rates])))
        text = rf"$\alpha = {', '.join(f'{alpha:g}' for alpha in rates)}$"
        note(right, text, end, (3, 0), va="center", fontsize=7, color=RECURRENT, annotation_clip=False)
    right.plot(steps, ratio, "o-", color=GHOST)
    lowest = int(np.argmin(ratio))
    note(right, "gradient flow", (steps[lowest], ratio[lowest]), (0, -10), color=GHOST, fontsize=7, ha="center")
    right.set(xlabel="step $t$ after the switch", ylabel="$d_t / d_{t-1}$", ylim=(0, 1), xticks=[1, 5, 10, 15])
    panel(right, "b", "contraction")
    return made


def _close(ends: dict[float, float]) -> list[list[float]]:
    """Rates whose lines end within the height of a text of each other share their label."""
    groups: list[list[float]] = []
    for alpha in sorted(ends, key=ends.__getitem__, reverse=True):
        if groups and ends[groups[-1][-1]] - ends[alpha] < 0.08:
            groups[-1].append(alpha)
        else:
            groups.append([alpha])
    return [sorted(group) for group in groups]
