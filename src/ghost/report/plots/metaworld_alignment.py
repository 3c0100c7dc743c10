"""fig:metaworld_alignment: the direction of actions after a task switch in Meta-World, and the success rates."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import AGENTS, PAGE_IN, SERIES, band, figure, panel, whiskers
from ghost.report.rates import rate
from ghost.report.statistics import student_mean
from ghost.report.trials import episode_outcomes
from ghost.runs.records import Run

SHOWN = {**AGENTS, "random_actions": ("random", SERIES[4], ":")}
BENCHMARKS = {"ml10": "ML10", "ml45": "ML45"}


def draw(runs: dict[str, list[Run]]) -> Figure:
    made, axes = figure(PAGE_IN, 2.3, ncols=3)
    for place, (benchmark, title) in enumerate(BENCHMARKS.items()):
        arrays = [run.arrays() for run in runs[f"{benchmark}_switching"]]
        for number, (agent, (label, color, line)) in enumerate(SHOWN.items()):
            name = agent if agent == "random_actions" else f"{benchmark}_{agent}"
            # [trainings, steps]: means over episodes, which are nan once their task is done
            cosine = np.array([np.nanmean(a[f"{name}/cosine"], axis=0) for a in arrays])
            mean, steps = cosine.mean(axis=0), np.arange(1, cosine.shape[1] + 1)
            if len(cosine) > 1:
                low, high = np.array([student_mean(of_step).interval for of_step in cosine.T]).T
                band(axes[place], steps, low, high, color, alpha=0.15)
            axes[place].plot(steps, mean, linestyle=line, color=color, label=label)
            found = rate(episode_outcomes([a[f"{name}/success"] for a in arrays]))
            x = place + (number - 2) * 0.16
            spread = [[found.estimate - found.interval[0]], [found.interval[1] - found.estimate]]
            axes[2].bar(x, found.estimate, width=0.14, color=color)
            whiskers(axes[2], x, found.estimate, np.maximum(0, spread), color)
        axes[place].axhline(0, color="0.8", linewidth=0.6)
        axes[place].set(xlabel="steps after the task has changed", ylim=(-1.05, 1.05), xlim=(1, len(mean)))
        panel(axes[place], "ab"[place], title)
    axes[0].set_ylabel("cosine with the new expert")
    made.legend(*axes[0].get_legend_handles_labels(), ncols=len(SHOWN), loc="outside lower center")
    axes[2].set(ylabel="success rate", ylim=(0, 1), xticks=range(len(BENCHMARKS)), xticklabels=BENCHMARKS.values())
    panel(axes[2], "c", "closed loop")
    return made
