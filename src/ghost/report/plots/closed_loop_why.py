"""fig:closed_loop_why: what the phase head infers, and what more demonstrations change, in the closed-loop study."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ghost.report.estimators import ESTIMATORS
from ghost.report.plots.style import MARKERS, PAGE_IN, SERIES, THEORY, figure, panel
from ghost.report.shown import Estimate
from ghost.runs.records import Run
from ghost.study.closed_loop_claims import AT_EASY, ENDS, GATED, LEVELS, acting, recorded, short, why

NAMES = {
    "libero_mlp": "MLP",
    "libero_mlp_phase": "MLP, phase",
    "libero_gru_phase": "GRU, phase",
    "libero_ghost_pg": "Ghost PG",
    "libero_ghost_pz": "persistent",
}
Runs = dict[str, list[Run]]


def draw(runs: Runs) -> Figure:
    made, (first, second, third) = figure(PAGE_IN, 1.9, ncols=3)
    cells = {cell["name"]: cell for cell in why().declaration()}

    def estimate(name: str) -> Estimate:
        return ESTIMATORS[cells[name]["estimator"]](cells[name], runs[cells[name]["experiment"]])

    heads(first, runs)
    steadiness(second, estimate)
    levels(third, estimate)
    return made


def heads(axes: Axes, runs: Runs) -> None:
    """A dot a training: how often its head is right on held-out demonstrations, and how often it succeeds."""
    panel(axes, "a", "a training of a gated policy")
    for number, policy in enumerate(GATED):
        succeeded = {run.seed: 100 * run.value("all", "success") for run in runs[acting(policy)]}
        offline = [run for run in runs[recorded(f"{policy}_offline")] if run.seed in succeeded]
        right = [run.value("all", "phase_accuracy") for run in offline]
        y = [succeeded[run.seed] for run in offline]
        axes.plot(right, y, MARKERS[number], color=SERIES[number], label=NAMES[policy])
    axes.set(xlabel="share of right phases, held out", ylabel="success (percent)")
    axes.margins(0.12)
    axes.legend(handletextpad=0.1, borderaxespad=0.1)


def steadiness(axes: Axes, estimate: Callable[[str], Estimate]) -> None:
    """How often the inferred phase goes back, in successes and in failures."""
    panel(axes, "b", "the inferred phase goes back")
    for side, end in enumerate(ENDS):
        for at, policy in enumerate(GATED):
            _interval(axes, estimate(f"back/{short(policy)}/{end}"), at + 0.24 * (side - 0.5), side, end * (at == 0))
    axes.set_yticks(range(len(GATED)), [NAMES[policy] for policy in GATED])
    axes.set_ylim(len(GATED) - 0.4, -1.0)  # the first on top, with room for the legend
    axes.set_xlim(left=0)
    axes.set(xlabel="of 100 plans")
    axes.legend(ncols=2, loc="upper center", borderaxespad=0, handletextpad=0.1, columnspacing=1)


def levels(axes: Axes, estimate: Callable[[str], Estimate]) -> None:
    """Success against the number of demonstrations."""
    panel(axes, "c", "more demonstrations")
    x = np.array([estimate(f"{level}/demos").value for level in LEVELS], dtype=float)
    for number, policy in enumerate(AT_EASY):
        found = [estimate(f"{level}/{short(policy)}") for level in LEVELS]
        values = np.array([each.value for each in found], dtype=float)
        bounds = np.array([each.interval for each in found], dtype=float)
        errors = np.maximum(0, [values - bounds[:, 0], bounds[:, 1] - values])
        aside = 0.02 * np.ptp(x) * (number - 1)  # so that intervals stand side by side
        look: dict[str, Any] = {"marker": MARKERS[number], "color": SERIES[number], "elinewidth": 0.6, "capsize": 1.2}
        axes.errorbar(x + aside, values, errors, label=NAMES[policy], **look)
    axes.set_xticks(x, [f"{count:.0f}" for count in x])
    axes.set(xlabel="demonstrations", ylabel="success (percent)", ylim=(0, 105))
    axes.legend(loc="lower right", borderaxespad=0.1)


def _interval(axes: Axes, found: Estimate, at: float, side: int, label: str) -> None:
    """A dot with its interval; nothing where no episode ended so."""
    color = (SERIES[0], THEORY)[side]
    value = np.nan if found.value is None else found.value
    axes.plot(found.interval or (np.nan, np.nan), [at, at], color=color)
    axes.plot([value], [at], MARKERS[side], color=color, label=label or None)
