"""Every figure of a smoke build as a reviewer looks at it: sizes of texts, colours, nothing cut off or covered."""

from __future__ import annotations

import importlib
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ghost.report.plots.libero_per_task import moved
from ghost.report.plots.style import PAGE_IN, RC, SERIES, figure
from ghost.runs.records import open_runs
from ghost.study import ARTEFACTS

DRAWN = [artefact for artefact in ARTEFACTS if artefact.step == "plot"]
LABELS = [artefact.label for artefact in DRAWN]
SMALLEST_PT = 7  # of a text; its indices are smaller
SMALLEST_INDEX_PT = 4.8  # LaTeX sets an index of 7 pt in 5 pt
APART = 20  # CIE76; two colours below it are hard to tell apart in a thin line
WALLS = {("switch_speed", 0), ("ghost_mechanism", 0), ("ghost_mechanism", 1)}  # landscapes, whose walls leave the panel


@pytest.fixture(scope="module")
def figures(project) -> dict[str, Figure]:
    return {artefact.label: drawn(artefact, project / "data/smoke/runs") for artefact in DRAWN}


def drawn(artefact, runs) -> Figure:
    cells = artefact.within({manifest.parent.name for manifest in runs.glob("*/manifest.json")}).cells
    names = dict.fromkeys(name for cell in cells for name in (cell.experiment, cell.against) if name)
    with mpl.rc_context(RC):
        module = importlib.import_module(f"ghost.report.plots.{artefact.label}")
        made: Figure = module.draw({name: open_runs(runs / name / "manifest.json") for name in names})
        FigureCanvasAgg(made).draw()
    return made


def texts(made: Figure) -> list[Text]:
    """All that are drawn: of the labels of ticks those within the limits."""
    labels, ticks = set(), []
    for axis in (axis for axes in made.axes for axis in (axes.xaxis, axes.yaxis)):
        labels |= {id(text) for text in axis.get_ticklabels(which="both")}
        ticks += [tick.label1 for tick in axis._update_ticks()]
    others = [text for text in made.findobj(Text) if id(text) not in labels and text not in ticks]
    return [text for text in (*others, *ticks) if text.get_text().strip() and text.get_visible()]


def legends(made: Figure) -> list[Legend]:
    return made.findobj(Legend)


def where(artist: Any) -> Bbox:
    return artist.get_window_extent()


# ------------------------------------------------------------------------------------------------------------- colours


def seen_without_green(color: Any) -> np.ndarray:
    """A colour in CIELAB as deuteranopes see it: Machado et al. (2009), all of it."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    machado = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    linear = np.clip(np.array(machado) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(a: Any, b: Any) -> float:
    return float(np.linalg.norm(seen_without_green(a) - seen_without_green(b)))


def look(handle: Any) -> tuple[Any, tuple[Any, ...]]:
    """The colour of an entry of a legend, and what else tells it from others."""
    if isinstance(handle, ErrorbarContainer):
        handle = handle.lines[0]
    if isinstance(handle, Rectangle):
        return handle.get_facecolor(), (handle.get_hatch(),)
    return handle.get_color(), (handle.get_marker(), str(handle._unscaled_dash_pattern))


def test_the_distance_of_colours_is_that_of_deuteranopes():
    """Red and green of the same lightness are far apart for most readers, and close for these."""
    assert apart("#d55e00", "#7f8a00") < 15
    assert apart("blue", "yellow") > 100
    assert apart("0.5", "0.5") == 0


def test_the_colours_of_series_stay_apart():
    assert min(apart(a, b) for a, b in combinations(SERIES, 2)) > APART


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_no_two_entries_of_a_legend_look_alike(label, figures):
    for legend in legends(figures[label]):
        looks = [look(handle) for handle in legend.legend_handles]
        for (color, shape), (other, other_shape) in combinations(looks, 2):
            assert shape != other_shape or apart(color, other) > APART


# --------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_every_text_can_be_read(label, figures, project):
    small = {text.get_text() for text in texts(figures[label]) if text.get_fontsize() < SMALLEST_PT}
    assert not small
    document = pypdfium2.PdfDocument(project / f"data/smoke/figures/{label}.pdf")
    page = document[0].get_textpage()
    letters = range(page.count_chars())
    sizes_pt = [pdfium.FPDFText_GetFontSize(page, k) for k in letters if page.get_text_range(k, 1).strip()]
    assert min(sizes_pt) >= SMALLEST_INDEX_PT


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_no_text_is_cut_off_or_on_an_axis(label, figures):
    made = figures[label]
    page = made.bbox.padded(1)
    assert [text.get_text() for text in texts(made) if not inside(where(text), page)] == []
    for axes in made.axes:
        spines = [where(spine) for spine in axes.spines.values() if spine.get_visible()]
        assert [text.get_text() for text in axes.texts if any(map(where(text).overlaps, spines))] == []


# ---------------------------------------------------------------------------------------------------------------- data


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_nothing_that_was_measured_is_cut_off(label, figures):
    """Points with the whole of their marker, and curves."""
    for number, axes in enumerate(figures[label].axes):
        frame = axes.get_window_extent()
        for line in axes.lines:
            at = pixels(line)
            if not len(at) or not line.get_clip_on() or ((label, number) in WALLS and line.get_marker() == "None"):
                continue
            marker = line.get_marker() not in ("None", "", None)
            reach = line.get_markersize() / 2 * axes.figure.dpi / 72 * 0.9 if marker else -1
            assert inside(Bbox([at.min(axis=0) - reach, at.max(axis=0) + reach]), frame), line.get_label()


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_no_legend_covers_what_was_measured(label, figures):
    for axes in figures[label].axes:
        legend = axes.get_legend()
        if legend is None:
            continue
        box = where(legend)
        for line in axes.lines:
            at = dense(pixels(line))
            hidden = (at[:, 0] > box.x0) & (at[:, 0] < box.x1) & (at[:, 1] > box.y0) & (at[:, 1] < box.y1)
            assert not hidden.any(), line.get_label()
        bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        assert not [bar for bar in bars if where(bar).overlaps(box)]


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_no_curve_lies_under_another_one(label, figures):
    """Two curves may agree. Then the upper one has gaps, through which the lower one is seen."""
    for axes in figures[label].axes:
        drawn = sorted((line for line in axes.lines if line.get_linestyle() != "None"), key=lambda line: line.zorder)
        for below, above in combinations([line for line in drawn if len(pixels(line)) > 1], 2):
            if above.get_linestyle() == "-":
                assert not covered(dense(pixels(below)), dense(pixels(above)), above), below.get_label()


def covered(below: np.ndarray, above: np.ndarray, line: Any) -> bool:
    """Whether all points [n, 2] are within the width of the line whose points [m, 2] are above them."""
    apart = np.array([np.hypot(*(above - point).T).min() for point in below])
    return bool((apart < line.get_linewidth() / 2 * line.axes.figure.dpi / 72).all())


def inside(box: Bbox, frame: Bbox) -> bool:
    slack = 1.5  # pixels: the width of a line
    return bool(
        box.x0 >= frame.x0 - slack
        and box.y0 >= frame.y0 - slack
        and box.x1 <= frame.x1 + slack
        and box.y1 <= frame.y1 + slack
    )


def pixels(line: Any) -> np.ndarray:
    """The points of a line on the screen [n, 2]. A line across the panel (axvline, axhline) has none of its own."""
    axes: Axes = line.axes
    if line.get_transform() != axes.transData:
        return np.empty((0, 2))
    at = axes.transData.transform(np.column_stack([line.get_xdata(), line.get_ydata()]).astype(float))
    return at[np.isfinite(at).all(axis=1)]


def dense(at: np.ndarray) -> np.ndarray:
    """Also what lies between the points."""
    steps = np.linspace(0, 1, 20)[:, None, None]
    return np.concatenate([at, (at[:-1] * (1 - steps) + at[1:] * steps).reshape(-1, 2)]) if len(at) else at


@pytest.mark.slow
def test_steps_and_phases_are_whole_numbers(figures):
    for label, panel in (("diagnostic", "(g)"), ("attractor_basins", "(b)"), ("libero_complexity", "")):
        (axes,) = [axes for axes in figures[label].axes if axes.get_title(loc="left").startswith(panel)][:1]
        assert all(float(tick).is_integer() for tick in axes.get_xticks()), label


@pytest.mark.slow
def test_a_rate_stands_on_its_line(figures):
    """fig:switch_speed (b): no label is further from a line than the height of its text."""
    axes = figures["switch_speed"].axes[1]
    ends = [pixels(line)[-1, 1] for line in axes.lines]
    for text in axes.texts:
        if "alpha" in text.get_text():
            box = where(text)
            assert min(abs(end - (box.y0 + box.y1) / 2) for end in ends) < box.height / 2


@pytest.mark.slow
def test_every_task_is_named(figures):
    assert "T5\nbook" in [text.get_text() for text in figures["libero_per_task"].axes[0].get_xticklabels()]


def test_the_names_of_ten_tasks_stand_side_by_side():
    with mpl.rc_context(RC):
        made, axes = figure(PAGE_IN, 2.1)
        axes.set(xlim=(-0.6, 9.6), ylabel="success (percent)")
        axes.set_xticks(range(10), [f"T{task}\n{moved(f'T{task}')}" for task in range(10)])
        FigureCanvasAgg(made).draw()
        boxes = [where(label) for label in axes.get_xticklabels()]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
