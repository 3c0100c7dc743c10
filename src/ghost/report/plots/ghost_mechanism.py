"""fig:ghost_mechanism: two basins, a ghost in place of the first, and the escape, all computed."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import ACCENT, COLUMN_IN, GHOST, RECURRENT, THEORY, figure, note, panel
from ghost.runs.records import Run


def draw(runs: dict[str, list[Run]]) -> Figure:
    (run,) = runs["ghost_mechanism"]
    arrays = run.arrays()
    z, edges = arrays["landscape/z"], arrays["ghost/edges"]
    path, time_s = arrays["trajectory/z"], arrays["trajectory/time_s"]
    made, (stable, ghost, escape) = figure(COLUMN_IN, 1.6, ncols=3)

    u = arrays["landscape/u_stable"]
    b1, top, b2 = arrays["stable/equilibria"]
    stable.plot(z, u, color=GHOST)
    for at, name in ((b1, r"$\mathcal{B}_1$"), (b2, r"$\mathcal{B}_2$")):
        stable.plot(at, np.interp(at, z, u), "o", color="black")
        note(stable, name, (at, np.interp(at, z, u)), (0, -12), ha="center")
    note(stable, "barrier", (top, np.interp(top, z, u)), (0, 4), ha="center")
    panel(stable, "a", "stable")

    u = arrays["landscape/u_ghost"]
    inside = (z >= edges[0]) & (z <= edges[1])
    ghost.plot(z, u, color=GHOST)
    ghost.plot(z[inside], u[inside], color=RECURRENT, linewidth=6, alpha=0.5, solid_capstyle="round")
    dots = path[:: max(1, round(0.4 / (time_s[1] - time_s[0])))]  # one every 0.4 s, so they crowd in the ghost
    ghost.plot(dots, np.interp(dots, z, u), "o", color="black", markersize=1.4)
    note(ghost, "ghost", (edges.mean(), np.interp(edges.mean(), z, u)), (2, 8))
    panel(ghost, "b", "ghost")

    escape.axhspan(*edges, color=RECURRENT, alpha=0.35, linewidth=0)
    escape.axhline(arrays["ghost/b2"][0], color=THEORY, linewidth=0.6, linestyle="--")
    escape.plot(time_s, path, color=ACCENT)
    note(escape, r"$\mathcal{B}_2$", (0.5, arrays["ghost/b2"][0]), (0, -9))
    escape.set(xlabel="time (s)", ylabel="$z$")
    panel(escape, "c", "escape")

    for axes in (stable, ghost):
        near = (z > 1.45 * b1) & (z < 1.45 * b2)
        axes.set(xlabel="$z$", yticks=[], xlim=(z[near][0], z[near][-1]))
        drawn = axes.lines[0].get_ydata()[near]
        axes.set_ylim(drawn.min() - 0.5 * np.ptp(drawn), drawn.max() + 0.12 * np.ptp(drawn))
    stable.set_ylabel("$U(z)$")
    return made
