"""fig:libero_per_task: success per task, with Wilson's interval over all trials of all runs."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import PAGE_IN, PALETTE, figure
from ghost.report.statistics import wilson
from ghost.runs.records import Run

POLICIES = {
    "libero_mlp_rollout": "MLP",
    "libero_ghost_pg_rollout": "Ghost PG",
    "libero_ghost_pz_rollout": "Ghost PG, persistent",
    "libero_ghost_pz_ensemble_rollout": "persistent, ensemble",
}


def draw(runs: dict[str, list[Run]]) -> Figure:
    made, axes = figure(PAGE_IN, 1.9)
    for number, (name, text) in enumerate(POLICIES.items()):
        found = [m for run in runs[name] for m in run.measured() if m.metric == "success" and m.condition != "all"]
        tasks = sorted({m.condition for m in found}, key=lambda task: int(task[1:]))
        rates = []
        for task in tasks:
            own = [m for m in found if m.condition == task]
            rates.append(wilson(round(sum(m.value * m.n for m in own)), sum(m.n for m in own)))
        at = np.arange(len(tasks)) + 0.2 * (number - 1.5)
        value = np.array([100 * rate.estimate for rate in rates])
        bounds = 100 * np.array([rate.interval for rate in rates])
        errors = np.maximum(0, [value - bounds[:, 0], bounds[:, 1] - value])
        axes.bar(at, value, 0.19, color=PALETTE[number], label=text)
        axes.errorbar(at, value, errors, fmt="none", ecolor="black", elinewidth=0.5, capsize=1)
        axes.set_xticks(range(len(tasks)), tasks)
    axes.set(ylabel="success (percent)", ylim=(0, 105))
    axes.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return made
