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
    left.legend(loc="upper center")
    panel(left, "a", "landscape")

    ratio = arrays["ghost/ratio"]
    steps = np.arange(1, len(ratio) + 1)
    for alpha in settings["gru_alphas"]:
        recurrent = arrays[f"gru_a{alpha:.2f}/ratio"]
        right.plot(steps, recurrent, color=RECURRENT, linewidth=0.8, linestyle="--")
        offset_pt = (3, {0.28: 4, 0.3: -5}.get(alpha, -2))  # these two rates lie close to each other
        end = (steps[-1], recurrent[-1])
        note(right, rf"$\alpha = {alpha:g}$", end, offset_pt, fontsize=6, color=RECURRENT, annotation_clip=False)
    right.plot(steps, ratio, "o-", color=GHOST)
    note(right, "gradient flow", (steps[6], ratio[6]), (4, -9), color=GHOST, fontsize=7)
    right.set(xlabel="step $t$ after the switch", ylabel="$d_t / d_{t-1}$", ylim=(0, 1), xticks=[1, 5, 10, 15])
    panel(right, "b", "contraction")
    return made
