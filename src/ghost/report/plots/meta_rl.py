"""fig:meta_rl: reward around the jump of the goal in the Dark Room, for each agent, with the spread over trainings."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import AGENTS, COLUMN_IN, SERIES, band, figure
from ghost.runs.records import Run

SHOWN = {
    "shortest_way": ("shortest way", SERIES[4], ":"),
    **{f"dark_room_{agent}": look for agent, look in AGENTS.items()},
}
SMOOTHED = 5  # steps, so that single arrivals do not hide the trend


def draw(runs: dict[str, list[Run]]) -> Figure:
    (experiment,) = runs
    made, axes = figure(COLUMN_IN, 2.3)
    before = int(runs[experiment][0].record()["settings"]["steps_before"])
    for agent, (label, color, line) in SHOWN.items():
        reward = np.stack([run.arrays()[f"{agent}/reward"] for run in runs[experiment]])  # [runs, E, steps]
        course = smoothed(reward.mean(axis=1))  # [runs, steps]
        steps = np.arange(course.shape[1]) - before + 1  # the first step after the jump is 1
        mean, std = course.mean(axis=0), course.std(axis=0)
        if agent != "shortest_way":
            band(axes, steps, mean - std, mean + std, color)
        above = 3 if agent == "shortest_way" else 2  # an agent that takes it would hide it
        axes.plot(steps, mean, linestyle=line, color=color, label=label, zorder=above)
    axes.axvline(0, color="0.6", linewidth=0.6)
    axes.set(xlabel="steps after the goal has moved", ylabel="reward per step", xlim=(steps[0], steps[-1]))
    axes.set_ylim(-0.15, 1.1)
    made.legend(*axes.get_legend_handles_labels(), ncols=3, loc="outside lower center")
    return made


def smoothed(course: np.ndarray) -> np.ndarray:
    """The mean over the last few steps [runs, steps]. It looks back only, so no change shows too early."""
    padded = np.concatenate([np.repeat(course[:, :1], SMOOTHED - 1, axis=1), course], axis=1)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED, axis=1).mean(axis=-1))
