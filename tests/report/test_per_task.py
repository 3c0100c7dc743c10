"""fig:per_task: a page holds one task or forty, and every training of every decoder is there."""

from dataclasses import dataclass
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from ghost.data.results import Measured
from ghost.report.plots.per_task import MOST_PANELS, draw
from ghost.report.plots.style import RC
from ghost.study.offline import SHOWN

PAGE_IN = 9.6 - 0.5  # without a caption of two lines
TRAININGS = 5


@dataclass
class Run:
    errors: dict[str, float]

    def value(self, task, metric):
        return self.errors[task]

    def measured(self):
        return [Measured(task, "predict_the_mean_mse", 1.0) for task in (*self.errors, "all", "mean_of_tasks")]


@pytest.mark.parametrize("number", [1, 2, MOST_PANELS, MOST_PANELS + 1, 40, 60])
def test_every_training_of_every_task_is_drawn_within_a_page(number):
    rng = np.random.default_rng(number)
    tasks = [f"put thing {k} into 50 % of the boxes" for k in range(number)]
    scale = np.geomspace(0.01, 1, number)  # tasks of very different errors

    def run():
        return Run(dict(zip(tasks, scale * rng.uniform(0.5, 1, number), strict=True)))

    runs = {decoder.tested: [run() for _ in range(TRAININGS)] for decoder in SHOWN}
    with mpl.rc_context(RC):
        made = draw(runs)
        FigureCanvasAgg(made).draw()
    assert made.get_figheight() <= PAGE_IN
    shown = [axes for axes in made.axes if axes.get_visible()]
    rows = number > MOST_PANELS
    labels = [text for axes in shown for text in axes.findobj(Text) if not text.get_parse_math()]
    assert [text.get_text() for text in labels] == tasks
    dots = [line for axes in shown for line in axes.lines if len(line.get_xdata()) == TRAININGS]
    errors = np.sort(np.concatenate([line.get_xdata() if rows else line.get_ydata() for line in dots]))
    np.testing.assert_array_equal(
        errors, np.sort([e for own in runs.values() for run in own for e in run.errors.values()])
    )
    for line in dots:
        low, high = line.axes.get_xlim() if rows else line.axes.get_ylim()
        assert low <= line.get_xydata()[:, 0 if rows else 1].min()
        assert line.get_xydata()[:, 0 if rows else 1].max() <= high
    if rows:
        boxes = [text.get_window_extent() for text in labels]
        assert min(box.x0 for box in boxes) >= 0
        assert not any(one.y0 < other.y1 for one, other in pairwise(boxes))
        assert [text.get_text() for text in made.legends[0].get_texts()] == [d.name.replace("_", " ") for d in SHOWN]
