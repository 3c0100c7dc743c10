"""fig:diagnostic: the three wells, the collapsed one, the escape; below, the potential learned from behaviour."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ghost.report.plots.style import ACCENT, GHOST, PAGE_IN, RECURRENT, SERIES, THEORY, figure, panel
from ghost.runs.records import Run

SHOWN_STEPS = 8  # control steps after the change; the learned system is at rest long before


def draw(runs: dict[str, list[Run]]) -> Figure:
    (analytic,), learned = runs["diagnostic"], runs["learned_potential"]
    made, (above, below) = figure(PAGE_IN, 3.5, nrows=2, ncols=4)
    _analytic(analytic, above)
    _learned(learned, below)
    return made


def _landscape(axes: Axes, axis: np.ndarray, u: np.ndarray) -> None:
    """Filled contours up to the height between the wells. What lies higher only confines the latent."""
    axes.contourf(axis, axis, np.minimum(u, np.quantile(u, 0.8)), levels=14, cmap="Blues_r")
    axes.set(xlabel="$z_1$", ylabel="$z_2$", aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])


def _minima(axes: Axes, minima: np.ndarray) -> None:
    axes.plot(*minima.T, "o", color="white", markeredgecolor="black", markersize=4)


def _analytic(run: Run, axes: Iterable[Axes]) -> None:
    arrays = run.arrays()
    active, collapsed, path, signals = axes
    axis, z, time_s = arrays["grid/axis"], arrays["trajectory/z"], arrays["trajectory/time_s"]
    dwell_s = run.value("ghost", "dwell_s")

    for panel_axes, context in ((active, "c1"), (collapsed, "c2")):
        _landscape(panel_axes, axis, arrays[f"{context}/u"])
        at, arrow = arrays["arrows/z"].reshape(-1, 2), arrays[f"{context}/arrows"].reshape(-1, 2)
        near = np.abs(at).max(axis=1) < 1.7
        panel_axes.quiver(*at[near].T, *arrow[near].T, color="black", alpha=0.6, scale=14, width=0.006)
        _minima(panel_axes, arrays[f"{context}/minima"])
    panel(active, "a", r"all wells, $\mathbf{c}_1$")
    slope = np.hypot(*np.gradient(arrays["c2/u"], axis, axis))  # |∇U| under c2, [z_2, z_1]
    far = np.stack([np.hypot(axis - x, axis[:, None] - y) for x, y in arrays["c1/minima"]])  # [minimum, z_2, z_1]
    weak = np.ma.masked_where(far.argmin(axis=0) != 0, slope)  # the side of the former B1
    ghost = [run.value("c2", "gradient_at_b1")]
    collapsed.contour(axis, axis, weak, levels=ghost, colors=[RECURRENT], linestyles="--", linewidths=1.2)
    panel(collapsed, "b", r"first well collapsed, $\mathbf{c}_2$")

    _landscape(path, axis, arrays["c2/u"])
    steps = slice(None, None, 5)
    segments = np.stack([z[steps][:-1], z[steps][1:]], axis=1)
    line = LineCollection(list(segments), array=time_s[steps][:-1], cmap="inferno", linewidth=1.6)
    path.add_collection(line)
    bar = path.figure.colorbar(line, ax=path, label="time (s)", shrink=0.8, pad=0.02)
    for mesh in bar.ax.collections:
        mesh.set_rasterized(False)  # so that the .pgf stays one file
    panel(path, "c", "escape")

    for k, color in ((0, SERIES[0]), (1, SERIES[2])):
        signals.plot(time_s, arrays["trajectory/action"][:, k], color=color, label=f"$a_{k + 1}$")
    signals.plot(time_s, arrays["trajectory/speed"], color=ACCENT, linestyle="--", label=r"$\|\dot{\mathbf{z}}\|$")
    signals.axvline(0, color=THEORY, linewidth=0.6)
    signals.axvline(dwell_s, color=THEORY, linewidth=0.6, linestyle=":")
    signals.set(xlabel="time since the change (s)", ylabel="action, speed")
    signals.legend(loc="lower right", handlelength=1.2, borderaxespad=0)
    panel(signals, "d", "signals")


def _learned(runs: list[Run], axes: Iterable[Axes]) -> None:
    """The landscapes of the first run, the curves of all."""
    active, collapsed, switch, loss = axes
    first = runs[0].arrays()
    for panel_axes, context in ((active, "c1"), (collapsed, "c2")):
        _landscape(panel_axes, first["grid/axis"], first[f"{context}/u"])
        _minima(panel_axes, first[f"{context}/learned_minima"])
        panel_axes.plot(*first[f"{context}/analytic_minima"].T, "x", color=ACCENT, markersize=5)
    panel(active, "e", r"learned, $\mathbf{c}_1$")
    panel(collapsed, "f", r"learned, $\mathbf{c}_2$")

    for run in runs:
        arrays = run.arrays()
        z = arrays["switch/z"][: SHOWN_STEPS + 1]  # [control steps + 1, 2]
        to_b2 = np.linalg.norm(z - arrays["c2/analytic_minima"][-1], axis=1)  # from left to right: B3, B2
        switch.plot(np.arange(len(z)), to_b2, "o-", color=GHOST, alpha=0.6)
        loss.semilogy(np.arange(1, len(arrays["training/loss"]) + 1), arrays["training/loss"], color=GHOST, alpha=0.6)
    switch.set(xlabel="control step after the change", ylabel=r"distance to $\mathcal{B}_2$")
    switch.set_xticks(range(0, SHOWN_STEPS + 1, 2))
    panel(switch, "g", "switch of the learned system")
    loss.set(xlabel="epoch", ylabel=r"$\mathcal{L}_{\mathrm{BC}}$")
    panel(loss, "h", "training")
