"""fig:attractor_emergence: the norm of the potential's gradient along the integration, with and without basin term."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, GHOST, RECURRENT, band, figure
from ghost.runs.records import Run

SHOWN = {
    "ghost_attractor": (GHOST, "o-", "plain loss"),
    "ghost_basin_attractor": (RECURRENT, "s--", "with basin term"),
}


def draw(runs: dict[str, list[Run]]) -> Figure:
    made, axes = figure(COLUMN_IN, 1.9)
    highest = 0.0
    for experiment, (color, marker, text) in SHOWN.items():
        arrays = [run.arrays() for run in runs[experiment]]
        mean = np.mean([a["gradient/mean"] for a in arrays], axis=0)  # [n + 1], over training seeds
        std = np.mean([a["gradient/std"] for a in arrays], axis=0)  # over samples, as in the paper
        steps = np.arange(len(mean))
        band(axes, steps, np.maximum(mean - std, 0), mean + std, color)
        axes.plot(steps, mean, marker, color=color, label=text)
        axes.set_xticks(steps)
        highest = max(highest, float((mean + std).max()))
    axes.set(xlabel="integration step $k$", ylabel=r"$\|\nabla_z U(z^{(k)})\|$")
    axes.set_ylim(0, 1.05 * highest)
    axes.legend()
    return made
