"""fig:attractor_basins: the flow of the latents in one t-SNE embedding, and each task's distance to its end points."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, MARKERS, SERIES, figure, panel
from ghost.runs.records import Run


def draw(runs: dict[str, list[Run]]) -> Figure:
    run = runs["ghost_attractor"][0]  # one embedding shows one run, and so do the curves
    arrays = run.arrays()
    names = [m.condition for m in run.measured() if m.metric == "initial_distance"]  # in the order of the curves
    made, (left, right) = figure(COLUMN_IN, 2.8, ncols=2, width_ratios=(1.2, 1))

    embedding, task = arrays["flow/embedding"], arrays["flow/task"]  # [n + 1, samples, 2], [samples]
    for number in np.unique(task):
        here, (color, marker) = embedding[:, task == number], _look(number)
        left.plot(*np.moveaxis(here, -1, 0), color=color, linewidth=0.3, alpha=0.5)
        left.scatter(*here[0].T, s=12, marker=marker, facecolors="none", edgecolors=[color], linewidths=0.5)
        left.scatter(*here[-1].T, s=12, marker=marker, color=color, linewidths=0)
    left.margins(0.08)
    left.set(xticks=[], yticks=[], xlabel="t-SNE 1", ylabel="t-SNE 2")
    panel(left, "a", "latents at all steps")

    for name, number, curve in zip(names, arrays["distance/task"], arrays["distance/mean"], strict=True):
        color, marker = _look(number)
        right.plot(curve, marker=marker, markersize=2.8, linewidth=0.7, color=color, label=name.replace("_", " "))
    right.set(xlabel="integration step $k$", ylabel=r"$\|z^{(k)} - z^*\|$", xticks=range(len(embedding)))
    panel(right, "b", "distance to the end")
    made.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=1.2)
    return made


def _look(number: int) -> tuple[Any, str]:
    """Colour and marker of a task: no two of ten tasks share a marker."""
    return SERIES[number % len(SERIES)], MARKERS[number % len(MARKERS)]
