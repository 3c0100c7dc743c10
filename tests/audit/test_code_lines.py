"""Names lead to lines: every estimator, and every metric that the report shows."""

from __future__ import annotations

import ast

import pytest

from ghost.audit.code_lines import _places, function_line, metric_line
from ghost.audit.lookup import NO_METRIC
from ghost.report.over_cells import OVER_CELLS
from ghost.study import ARTEFACTS, DECLARED
from ghost.study.groot import replaced

CELLS = [cell for artefact in ARTEFACTS for cell in artefact.cells]
OPTIONAL = replaced(DECLARED, backbone="groot", checkpoint={}, demos="", libero_demos={"path": "x"}).experiments
MODULES = {experiment.name: experiment.modules for experiment in (*OPTIONAL, *DECLARED)}


def test_every_estimator_of_the_study_is_found():
    for name in {cell.estimator for cell in CELLS}:
        line = function_line("ghost.report.over_cells" if name in OVER_CELLS else "ghost.report.estimators", name)
        assert line is not None
        assert line.text.startswith((f"def {name}(", f'"{name}": over_'))
    assert function_line("ghost.report.estimators", "no_such_estimator") is None


def test_every_metric_of_the_study_is_found():
    measured = [cell for cell in CELLS if cell.estimator not in (*NO_METRIC, *OVER_CELLS)]
    wanted = {(MODULES[cell.experiment], cell.condition, cell.metric) for cell in measured}
    assert len(wanted) > 200
    for modules, condition, metric in wanted:
        line = metric_line(modules, condition, metric)
        assert line is not None, (modules, metric)
        name = metric.split("/")[-1].rstrip("0123456789")
        of_a_group = f"}}_{name.rpartition('_')[2]}"  # f"{group}_mse"
        assert name in line.text or of_a_group in line.text, (line.where, metric)


@pytest.mark.parametrize(
    ("condition", "metric", "text"),
    [
        ("all", "mse", '"mse": squared_errors('),  # where it is computed, not where it is used
        ("all", "cosine", 'means["cosine"] = '),
    ],
)
def test_the_line_is_the_one_that_gives_the_value(condition, metric, text):
    line = metric_line(("ghost.steps.evaluate", "ghost.evaluations.offline"), condition, metric)
    assert line is not None
    assert text in line.text
    assert line.function == "evaluate"
    assert line.where.startswith("src/ghost/evaluations/offline.py:")


def test_the_condition_decides_between_two_lines_of_a_metric():
    code = """
use(found["rate"])
Measured("other", "rate", 1)
Measured(task, "rate", 2)
Measured("all", "rate", 3)
"""
    tree = ast.parse(code)
    assert min(_places(tree, "all", "rate"))[1] == 5
    assert min(_places(tree, "T8", "rate"))[1] == 4
    assert list(_places(tree, "all", "rat")) == []


def test_a_name_that_is_put_together_is_found():
    tree = ast.parse('arrays[f"{name}/reward"] = 1\nother[f"{a}{b}"] = 2')
    assert list(_places(tree, "", "ghost/reward")) == [(4, 1)]
    assert list(_places(tree, "", "ghost/phase/reward")) == []
