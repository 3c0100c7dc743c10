"""fig:per_task: the error of each decoder on each task of a lab's data, one panel a task, a dot a training."""

from math import ceil

import numpy as np
from matplotlib.figure import Figure

from ghost.report.escaping import escape
from ghost.report.plots.style import PAGE_IN, PALETTE, figure
from ghost.runs.records import Run
from ghost.study.offline import SHOWN
from ghost.study.own_data import shortened

ACROSS = 3  # panels


def draw(runs: dict[str, list[Run]]) -> Figure:
    tasks = _tasks(runs[SHOWN[0].tested])
    across = min(ACROSS, len(tasks))
    down = ceil(len(tasks) / across)
    made, axes = figure(PAGE_IN, 0.5 + 1.4 * down, nrows=down, ncols=across, squeeze=False, sharey=True)
    for place, task in zip(axes.flat, tasks, strict=False):
        for at, decoder in enumerate(SHOWN):
            errors = [run.value(task, "mse") for run in runs[decoder.tested]]
            place.plot(np.full(len(errors), at), errors, "o", color=PALETTE[at], alpha=0.6)
            place.plot(at, np.mean(errors), "_", color="black", markersize=9)
        place.set_title(escape(shortened(task)), loc="left")
        place.set_xticks(range(len(SHOWN)), [d.name.replace("_", " ") for d in SHOWN], rotation=30, ha="right")
        place.set_ylim(bottom=0)
    for place in axes.flat[len(tasks) :]:
        place.set_visible(False)
    for place in axes[:, 0]:
        place.set_ylabel("test error (MSE)")
    return made


def _tasks(runs: list[Run]) -> list[str]:
    """The tasks of the data set, as the tests name them."""
    found = [m.condition for m in runs[0].measured() if m.metric == "predict_the_mean_mse"]
    return [condition for condition in found if condition not in ("all", "mean_of_tasks")]
