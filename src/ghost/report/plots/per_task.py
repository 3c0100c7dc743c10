"""fig:per_task: the error of each decoder on each task of a lab's data, a dot a training.

A few tasks have a panel each. Many tasks share one panel, each with a row in which the decoders lie below each other.
"""

from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import MARKERS, PAGE_IN, PALETTE, figure
from ghost.runs.records import Run
from ghost.study.offline import SHOWN, Decoder
from ghost.study.own_data import shortened

Runs = dict[str, list[Run]]
ACROSS, MOST_PANELS = 3, 12
ROW_IN, HIGHEST_IN = 0.2, 8.4  # a page is 9.6 in high
ERROR = "test error (MSE)"


def draw(runs: Runs) -> Figure:
    tasks = _tasks(runs[SHOWN[0].tested])
    return _panels(tasks, runs) if len(tasks) <= MOST_PANELS else _rows(tasks, runs)


def _panels(tasks: Sequence[str], runs: Runs) -> Figure:
    across = min(ACROSS, len(tasks))
    down = ceil(len(tasks) / across)
    made, axes = figure(PAGE_IN, 0.5 + 1.4 * down, nrows=down, ncols=across, squeeze=False, sharey=True)
    for place, task in zip(axes.flat, tasks, strict=False):
        for at, _, errors in _errors(task, runs):
            place.plot(np.full(len(errors), at), errors, "o", color=PALETTE[at], alpha=0.6)
            place.plot(at, np.mean(errors), "_", color="black", markersize=9)
        place.set_title(shortened(task), loc="left", parse_math=False)
        place.set_xticks(range(len(SHOWN)), [_name(decoder) for decoder in SHOWN], rotation=30, ha="right")
    for place in axes.flat[len(tasks) :]:
        place.set_visible(False)
    for place in axes[:, 0]:
        place.set_ylabel(ERROR)
    axes[0, 0].set_ylim(bottom=0)  # of all panels, and not before all are drawn
    return made


def _rows(tasks: Sequence[str], runs: Runs) -> Figure:
    made, axes = figure(PAGE_IN, min(0.8 + ROW_IN * len(tasks), HIGHEST_IN))
    made.set_layout_engine("constrained", w_pad=0.12)  # inches; the report sets words further apart than was measured
    for row, task in enumerate(tasks):
        for at, decoder, errors in _errors(task, runs):
            height = row + (at + 0.5) / len(SHOWN) - 0.5
            look = {"color": PALETTE[at], "marker": MARKERS[at], "linestyle": "none", "markersize": 2.2}
            axes.plot(errors, np.full(len(errors), height), alpha=0.6, label="" if row else _name(decoder), **look)
            axes.plot(np.mean(errors), height, "|", color="black", markersize=3)
        at_left = {"xycoords": axes.get_yaxis_transform(), "xytext": (-4, 0), "textcoords": "offset points"}
        axes.annotate(shortened(task), (0, row), ha="right", va="center", fontsize=7, parse_math=False, **at_left)
    axes.hlines(np.arange(1, len(tasks)) - 0.5, 0, 1, color="0.85", linewidth=0.4, transform=axes.get_yaxis_transform())
    axes.set_yticks([])
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(ERROR)
    made.legend(loc="outside upper center", ncols=len(SHOWN), markerscale=1.6)
    return made


def _errors(task: str, runs: Runs) -> Iterator[tuple[int, Decoder, list[float]]]:
    """Each decoder with its number and the errors of its trainings."""
    for at, decoder in enumerate(SHOWN):
        yield at, decoder, [run.value(task, "mse") for run in runs[decoder.tested]]


def _name(decoder: Decoder) -> str:
    return decoder.name.replace("_", " ")


def _tasks(runs: Sequence[Run]) -> list[str]:
    """The tasks of the data set, as the tests name them."""
    found = [m.condition for m in runs[0].measured() if m.metric == "predict_the_mean_mse"]
    return [condition for condition in found if condition not in ("all", "mean_of_tasks")]
