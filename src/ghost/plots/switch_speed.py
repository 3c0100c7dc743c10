"""fig:switch_speed: the tilted double well under both contexts, and how fast each update contracts after the switch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ghost.plots.style import COLUMN_IN, GHOST, PALETTE, THEORY, figure, panel
from ghost.records import Run


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
        left.annotate(name, (at, np.interp(at, z, u)), xytext=(0, -10), textcoords="offset points", ha="center")
    left.set(xlabel="$z_1$", ylabel="$U(z_1; c)$", ylim=(-8.5, 9))
    left.legend(loc="upper center")
    panel(left, "a", "landscape")

    curves = [("gradient flow", arrays["ghost/ratio"])]
    curves += [(rf"$\alpha = {alpha:g}$", arrays[f"gru_a{alpha:.2f}/ratio"]) for alpha in settings["gru_alphas"]]
    tidy = pd.DataFrame(
        [(name, step, ratio) for name, ratios in curves for step, ratio in enumerate(ratios, 1)],
        columns=["update", "step", "ratio"],
    )
    sns.lineplot(
        tidy,
        x="step",
        y="ratio",
        hue="update",
        style="update",
        markers=True,
        dashes=False,
        palette=[GHOST, *[PALETTE[i] for i in (7, 8, 1, 6)][: len(curves) - 1]],
        ax=right,
    )
    right.axhline(1, color=THEORY, linewidth=0.5)
    right.set(xlabel="step $t$ after the switch", ylabel="$d_t / d_{t-1}$", ylim=(0, 1.62), yticks=[0, 0.5, 1])
    right.legend(title=None, ncols=2, loc="upper center", columnspacing=0.8, handlelength=1.4, borderaxespad=0)
    panel(right, "b", "contraction")
    return made
