"""fig:e2e_trajectory: four dimensions of one held-out action chunk, recorded and as both decoders predict them."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, GHOST, RECURRENT, figure, panel
from ghost.runs.records import Run

DIMENSIONS = {0: "left-arm joint", 7: "left gripper", 13: "right-arm joint", 15: "right gripper"}  # as in the paper


def draw(runs: dict[str, list[Run]]) -> Figure:
    ghost, dit = (runs[name][0].arrays() for name in ("ghost_distilled_offline", "dit_offline"))
    made, grid = figure(COLUMN_IN, 2.6, nrows=2, ncols=2, sharex=True)
    steps = np.arange(1, len(ghost["chunk/recorded"]) + 1)
    for axes, letter, (dimension, text) in zip(grid.flat, "abcd", DIMENSIONS.items(), strict=True):
        axes.plot(steps, ghost["chunk/recorded"][:, dimension], "-", color="black", label="recorded")
        axes.plot(steps, ghost["chunk/predicted"][:, dimension], ":", color=GHOST, linewidth=1.6, label="Ghost")
        axes.plot(steps, dit["chunk/predicted"][:, dimension], "--", color=RECURRENT, label="DiT")
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, -1.25), max(high, 1.25))  # actions are normalised to [-1, 1]; predictions may go beyond
        panel(axes, letter, text)
    for axes in grid[1]:
        axes.set_xlabel("step of the chunk")
    for axes in grid[:, 0]:
        axes.set_ylabel("action")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=3)
    return made
