"""fig:dwell_time: measured passage time against the distance from the bifurcation, and Lemma 1's lower bound."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.plots.style import COLUMN_IN, GHOST, MARKERS, RECURRENT, SERIES, THEORY, figure, panel
from ghost.runs.records import Run


def draw(runs: dict[str, list[Run]]) -> Figure:
    (run,) = runs["dwell_time"]
    arrays = run.arrays()
    made, (left, right) = figure(COLUMN_IN, 1.8, ncols=2, width_ratios=(1.25, 1))

    for name, parameter, color, marker, label in (
        ("normal_form", "mu", GHOST, "o", r"normal form, $\mu$"),
        ("double_well", "excess", RECURRENT, "s", r"double well, $h - h_c$"),
    ):
        x = arrays[f"{name}/{parameter}"]
        left.loglog(x, arrays[f"{name}/theory"], color=THEORY, linewidth=0.8, zorder=1)
        left.loglog(x, arrays[f"{name}/dwell"], marker, color=color, markersize=2.6, label=label, zorder=2)
    left.plot([], [], color=THEORY, linewidth=0.8, label="asymptotes")
    left.set(xlabel="distance from the bifurcation", ylabel="passage time")
    left.set_ylim(top=6 * left.get_ylim()[1])
    left.legend(loc="upper right", borderaxespad=0, handlelength=1.2)
    panel(left, "a", "passage time")

    ratio = arrays["lemma1/dwell_over_bound"]  # [mu, delta, drift], see the simulation
    deltas, drifts = arrays["lemma1/delta_ratio"], arrays["lemma1/drift_ratio"]
    for index, (drift, color) in enumerate(zip(drifts, SERIES, strict=False)):
        median = np.median(ratio[..., index], axis=0)
        right.plot(deltas, median, f"{MARKERS[index]}-", color=color, label=f"${drift:g}$")
    right.axhline(1, color="black", linewidth=0.6, linestyle="--")
    right.set(xlabel=r"$\delta/\mu$", ylabel="dwell time / bound", ylim=(0, 1.5 * np.median(ratio, axis=0).max()))
    right.legend(
        title=r"drift $b/\mu$", ncols=2, loc="upper left", columnspacing=0.8, handlelength=1.2, borderaxespad=0
    )
    panel(right, "b", "Lemma 1")
    return made
