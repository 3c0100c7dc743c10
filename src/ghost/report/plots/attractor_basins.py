"""fig:attractor_basins: the flow of the latents in one t-SNE embedding, and each task's distance to its end points."""

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, figure, panel
from ghost.runs.records import Run


def draw(runs: dict[str, list[Run]]) -> Figure:
    run = runs["ghost_attractor"][0]  # one embedding shows one run, and so do the curves
    arrays = run.arrays()
    names = [m.condition for m in run.measured() if m.metric == "initial_distance"]  # in the order of the curves
    made, (left, right) = figure(COLUMN_IN, 2.5, ncols=2, width_ratios=(1.2, 1))
    colors = sns.color_palette("tab10", 10)

    embedding, task = arrays["flow/embedding"], arrays["flow/task"]  # [n + 1, samples, 2], [samples]
    for number in np.unique(task):
        here = embedding[:, task == number]
        left.plot(*np.moveaxis(here, -1, 0), color=colors[number % 10], linewidth=0.3, alpha=0.5)
        left.scatter(*here[0].T, s=7, facecolors="none", edgecolors=[colors[number % 10]], linewidths=0.5)
        left.scatter(*here[-1].T, s=5, color=colors[number % 10], linewidths=0)
    left.set(xticks=[], yticks=[], xlabel="t-SNE 1", ylabel="t-SNE 2")
    panel(left, "a", "latents at all steps")

    for name, number, curve in zip(names, arrays["distance/task"], arrays["distance/mean"], strict=True):
        right.plot(curve, "o-", markersize=2, color=colors[number % 10], label=name.replace("_", " "))
    right.set(xlabel="integration step $k$", ylabel=r"$\|z^{(k)} - z^*\|$", xticks=range(len(embedding)))
    panel(right, "b", "distance to the end")
    made.legend(*right.get_legend_handles_labels(), fontsize=6, loc="outside lower center", ncols=4)
    return made
