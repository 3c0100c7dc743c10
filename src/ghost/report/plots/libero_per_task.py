"""fig:libero_per_task: success per task, with intervals that respect trainings and trials."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ghost.libero.tasks import TASKS
from ghost.report.plots.style import PAGE_IN, SERIES, figure, whiskers
from ghost.report.rates import rate
from ghost.report.trials import outcomes
from ghost.runs.records import Run

POLICIES = {
    "libero_mlp_rollout": "MLP",
    "libero_ghost_pg_rollout": "Ghost PG",
    "libero_ghost_pz_rollout": "Ghost PG, persistent",
    "libero_ghost_pz_ensemble_rollout": "persistent, ensemble",
}


def draw(runs: dict[str, list[Run]]) -> Figure:
    return bars(runs, POLICIES)


def bars(runs: dict[str, list[Run]], policies: Mapping[str, str]) -> Figure:
    """A group of bars a task, for four rollouts at most, with the names of their policies."""
    made, axes = figure(PAGE_IN, 2.1)
    for number, (name, text) in enumerate(policies.items()):
        measured = {m.condition for run in runs[name] for m in run.measured() if m.metric == "success"}
        tasks = sorted(measured - {"all"}, key=lambda task: int(task[1:]))
        cells = ({"id": "fig:libero_per_task", "experiment": name, "condition": t, "metric": "success"} for t in tasks)
        rates = [rate(found) for cell in cells if (found := outcomes(cell, runs[name]))]
        at = np.arange(len(tasks)) + 0.2 * (number - 1.5)
        value = np.array([100 * rate.estimate for rate in rates])
        bounds = 100 * np.array([rate.interval for rate in rates])
        errors = np.maximum(0, [value - bounds[:, 0], bounds[:, 1] - value])
        axes.bar(at, value, 0.19, color=SERIES[number], label=text)
        whiskers(axes, at, value, errors, SERIES[number])
        axes.set_xticks(range(len(tasks)), [f"{task}\n{moved(task)}" for task in tasks])
    axes.set(ylabel="success (percent)", ylim=(0, 105))
    axes.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return made


def moved(task: str) -> str:
    """What a task moves, one thing a line, in the order of its expert."""
    return "\n".join(goal.thing.replace("_", " ") for goal in TASKS[int(task[1:])].goals)
