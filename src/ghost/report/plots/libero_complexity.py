"""fig:libero_complexity: the gain of Ghost PG over the MLP, against the nominal sub-phases of a task."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.estimators import complexity
from ghost.report.plots.style import COLUMN_IN, GHOST, THEORY, figure, note
from ghost.runs.records import Run


def draw(runs: dict[str, list[Run]]) -> Figure:
    made, axes = figure(COLUMN_IN, 1.9)
    ghost, mlp = runs["libero_ghost_pg_rollout"], runs["libero_mlp_rollout"]
    x, y = complexity(ghost, mlp)
    tasks = [m.condition for m in ghost[0].measured() if m.metric == "subphases"]
    axes.axhline(0, color=THEORY, linewidth=0.5)
    axes.plot(x, y, "o", color=GHOST)
    here: dict[tuple[float, float], list[str]] = {}  # tasks may share a place
    for task, a, b in zip(tasks, x, y, strict=True):
        here.setdefault((float(a), float(b)), []).append(task)
    for place, names in here.items():
        note(axes, ", ".join(names), place, (3, 2), fontsize=7)
    axes.set_xticks(np.arange(np.floor(x.min()), x.max() + 1))
    axes.set_xlim(x.min() - 0.5, x.max() + 0.5)
    if len(x) > 2 and np.ptp(x) > 0:
        slope, start = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, start + slope * ends, "--", color=THEORY)
    axes.set(xlabel="nominal sub-phases", ylabel="Ghost PG minus MLP (points)")
    return made
