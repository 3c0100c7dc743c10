import math

import numpy as np
import pytest
import scipy.stats

from ghost import estimators
from ghost.errors import GhostError
from ghost.outcome import Outcome, Row
from ghost.records import open_runs, record_runs
from ghost.summarize import summarize_cell


def cell(estimator, metric="loss", condition="train", digits=".2f"):
    return {
        "id": "tab:x/y",
        "experiment": "tiny",
        "metric": metric,
        "condition": condition,
        "estimator": estimator,
        "digits": digits,
        "unit": "",
        "published": "",
    }


@pytest.fixture
def make_runs(tmp_path, tiny_row):
    def make(values):
        row = {**tiny_row, "seeds": list(range(len(values)))}
        manifest = tmp_path / "r/manifest.json"
        record_runs(
            row, ("ghost.simulate",), manifest, lambda seed, folder: Outcome([Row("train", "loss", values[seed])])
        )
        return open_runs(manifest)

    return make


def test_mean_and_interval_agree_with_scipy(make_runs):
    values = [0.3, 0.35, 0.1, 0.9]
    found = estimators.mean_std(cell("mean_std"), make_runs(values))
    expected = scipy.stats.t.interval(0.95, 3, np.mean(values), scipy.stats.sem(values))
    assert found.value == pytest.approx(np.mean(values))
    assert found.interval == pytest.approx(expected)
    assert found.shown == f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
    assert found.n == 4


def test_one_run_has_no_interval(make_runs):
    found = estimators.mean_std(cell("mean_std"), make_runs([0.3]))
    assert (found.shown, found.interval, found.n) == ("0.30 ± 0.00", None, 1)


def test_value_refuses_to_choose_among_runs(make_runs):
    runs = make_runs([0.3, 0.4])
    with pytest.raises(GhostError, match="wants one run, tiny has 2"):
        estimators.value(cell("value"), runs)
    assert estimators.largest(cell("largest"), runs).value == 0.4


@pytest.mark.parametrize("name", ["mean", "mean_std", "largest"])
def test_a_run_that_never_got_there_is_not_averaged_away(make_runs, name):
    found = estimators.ESTIMATORS[name](cell(name), make_runs([0.3, math.nan]))
    assert (found.shown, found.value) == ("undefined", None)


def test_settings_runs_curves_and_modules(tiny_manifest):
    runs = open_runs(tiny_manifest)
    assert estimators.setting(cell("setting", "epochs", digits="g"), runs).shown == "3"
    assert estimators.setting(cell("setting", "widths", digits="g"), runs).shown == "8, 4"
    assert estimators.runs(cell("runs"), runs).shown == "2"
    curve = estimators.series(cell("series", "curve"), runs)
    assert curve.n == 8
    assert estimators.series(cell("series", "curve"), runs[:1]).sha256 != curve.sha256
    with pytest.raises(GhostError, match="no array nope"):
        estimators.series(cell("series", "nope"), runs)
    assert estimators.module(cell("module", "ghost.dynamics.networks"), []).shown == "dynamics/networks.py"
    assert estimators.module(cell("module", "ghost.nope"), []).shown == "not built"


def test_a_cell_names_its_runs_and_what_is_to_be_said_against_it(tmp_path, tiny_row):
    manifest = tmp_path / "r/manifest.json"
    row = {**tiny_row, "reduced": {"epochs": {"here": 3, "paper": 9}}}
    record_runs(
        row,
        ("ghost.simulate",),
        manifest,
        lambda seed, folder: Outcome([Row("train", "loss", 1.0)]),
        stand_ins=["backbone"],
    )
    runs = open_runs(manifest)
    made = summarize_cell(cell("mean"), runs)
    assert made["runs"] == [run.run_id for run in runs]
    assert made["reduced"] is True
    assert made["stand_ins"] == ["backbone"]
    with pytest.raises(GhostError, match="no runs of tiny"):
        summarize_cell(cell("mean"), [])
