"""fig:metaworld_alignment: the direction of actions after a task switch in Meta-World, and the success rates."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import AGENTS, PAGE_IN, THEORY, band, figure, panel
from ghost.report.statistics import wilson
from ghost.runs.records import Run

SHOWN = {**AGENTS, "random_actions": ("random", THEORY, ":")}
BENCHMARKS = {"ml10": "ML10", "ml45": "ML45"}


def draw(runs: dict[str, list[Run]]) -> Figure:
    made, axes = figure(PAGE_IN, 2.1, ncols=3)
    for place, (benchmark, title) in enumerate(BENCHMARKS.items()):
        arrays = [run.arrays() for run in runs[f"{benchmark}_switching"]]
        for number, (agent, (label, color, line)) in enumerate(SHOWN.items()):
            name = agent if agent == "random_actions" else f"{benchmark}_{agent}"
            cosine = np.concatenate([a[f"{name}/cosine"] for a in arrays])  # [episodes, steps]; nan once it is done
            mean = np.nanmean(cosine, axis=0)
            error = np.nanstd(cosine, axis=0) / np.sqrt(np.isfinite(cosine).sum(axis=0))
            steps = np.arange(1, len(mean) + 1)
            band(axes[place], steps, mean - 1.96 * error, mean + 1.96 * error, color, alpha=0.15)
            axes[place].plot(steps, mean, linestyle=line, color=color, label=label)
            success = np.concatenate([a[f"{name}/success"] for a in arrays])
            rate = wilson(int(success.sum()), len(success))
            x = place + (number - 2) * 0.16
            spread = [[rate.estimate - rate.interval[0]], [rate.interval[1] - rate.estimate]]
            axes[2].bar(x, rate.estimate, width=0.14, color=color)
            axes[2].errorbar(x, rate.estimate, yerr=spread, color="black", linewidth=0.7, capsize=1.5)
        axes[place].axhline(0, color="0.8", linewidth=0.6)
        axes[place].set(xlabel="steps after the task has changed", ylim=(-0.45, 1.05), xlim=(1, len(mean)))
        panel(axes[place], "ab"[place], title)
    axes[0].set_ylabel("cosine with the new expert")
    axes[2].legend(*axes[0].get_legend_handles_labels(), ncols=2, loc="upper right")
    axes[2].set(ylabel="success rate", ylim=(0, 1), xticks=range(len(BENCHMARKS)), xticklabels=BENCHMARKS.values())
    panel(axes[2], "c", "closed loop")
    return made
