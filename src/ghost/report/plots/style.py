"""One look for all figures: the report's column width, its font, and colours that every reader can tell apart."""

from typing import Any

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN_IN = 252 / 72.27  # IEEEtran's column; TeX has 72.27 pt to the inch
PAGE_IN = 516 / 72.27
PALETTE = sns.color_palette("colorblind")
# Five colours that stay apart for readers who see no green, and ten markers for more things than colours.
SERIES: tuple[Any, ...] = (*(PALETTE[number] for number in (0, 1, 2, 4)), (0.0, 0.0, 0.0))
MARKERS = "os^DvPX*<>"
GHOST, RECURRENT, THEORY, ACCENT = PALETTE[0], PALETTE[1], PALETTE[7], PALETTE[3]
AGENTS: dict[str, tuple[str, Any, Any]] = {  # label, colour, line
    "ghost": ("Ghost", SERIES[0], "-"),
    "transformer": ("Transformer", SERIES[1], "--"),
    "ad": ("AD", SERIES[2], "-."),
    "rl2": ("RL$^2$", SERIES[3], (0, (5, 1, 1, 1, 1, 1))),
}

RC: dict[str, Any] = {
    **sns.axes_style("ticks"),
    "font.family": "serif",
    "font.serif": ["STIXGeneral"],
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "ghost",
    # The report's LaTeX typesets the .pgf in its own Times.
    "pgf.texsystem": "pdflatex",
    "pgf.rcfonts": False,
    "pgf.preamble": r"\usepackage[T1]{fontenc}\usepackage{amsmath,amssymb,bm}\renewcommand{\rmdefault}{ptm}",
}


def figure(width_in: float, height_in: float, **grid: Any) -> tuple[Figure, Any]:
    """A figure with its axes. `grid` is passed to `Figure.subplots`."""
    made = Figure(figsize=(width_in, height_in), layout="constrained")
    return made, made.subplots(**grid)


def panel(axes: Axes, letter: str, title: str) -> None:
    axes.set_title(f"({letter}) {title}", loc="left")


def note(axes: Axes, text: str, at: tuple[float, float], offset_pt: tuple[float, float], **style: Any) -> None:
    """A text beside a point."""
    axes.annotate(text, at, xytext=offset_pt, textcoords="offset points", **style)


def band(axes: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, color: Any, alpha: float = 0.2) -> None:
    """The spread about a curve."""
    axes.fill_between(x, low, high, color=color, alpha=alpha, linewidth=0)


def whiskers(axes: Axes, x: Any, value: Any, errors: Any, color: Any) -> None:
    """The interval about the end of a bar. The dot tells whose it is where the bar has no height."""
    dot = {"markersize": 3, "markerfacecolor": color, "markeredgecolor": "black", "markeredgewidth": 0.4}
    axes.errorbar(x, value, errors, fmt="o", ecolor="black", elinewidth=0.6, capsize=1.2, clip_on=False, **dot)
