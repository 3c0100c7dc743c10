"""fig:ablation_paired: the arm error of every seed with one phase and with two. A line joins the runs of a seed."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, GHOST, THEORY, figure, panel
from ghost.runs.records import Run

TASKS = {"cups": "Arrange cups", "parts": "Move parts"}


def draw(runs: dict[str, list[Run]]) -> Figure:
    made, both = figure(COLUMN_IN, 1.9, ncols=2)
    for axes, letter, (short, text) in zip(both, "ab", TASKS.items(), strict=True):
        single, dual = (
            {run.seed: run.value("all", "arm_mse") for run in runs[f"{phases}_{short}_offline"]}
            for phases in ("single", "dual")
        )
        for seed in single:
            axes.plot([0, 1], [single[seed], dual[seed]], "o-", color=THEORY, linewidth=0.6, markersize=2.5)
        means = [np.mean(list(values.values())) for values in (single, dual)]
        axes.plot([0, 1], means, "D-", color=GHOST, label="mean")
        axes.set(xticks=[0, 1], xticklabels=["one phase", "two phases"], xlim=(-0.3, 1.3))
        axes.set_ylim(0, 1.1 * max(*single.values(), *dual.values()))
        panel(axes, letter, text)
    both[0].set_ylabel("arm error (MSE)")
    both[0].legend(loc="lower left")
    return made
