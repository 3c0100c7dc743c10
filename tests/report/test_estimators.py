import math

import numpy as np
import pytest
import scipy.stats

from ghost.errors import GhostError
from ghost.report import estimators
from ghost.report.statistics import wilson
from ghost.runs.records import open_runs, record_runs
from ghost.runs.results import Measured, Outcome
from ghost.steps.summarize import correct, summarize_cell


def cell(estimator, metric="loss", condition="train", digits=".2f", against="", **more):
    return {
        "id": "tab:x/y",
        "experiment": "tiny",
        "metric": metric,
        "condition": condition,
        "estimator": estimator,
        "digits": digits,
        "unit": "",
        "against": against,
        "against_condition": "",
        "against_metric": "",
        **more,
    }


@pytest.fixture
def make_runs(tmp_path, tiny_row):
    def make(values, name="tiny", seeds=None):
        row = {**tiny_row, "name": name, "seeds": seeds or list(range(len(values)))}
        manifest = tmp_path / name / "manifest.json"
        record_runs(
            row,
            ("ghost.steps.simulate",),
            manifest,
            lambda seed, folder: Outcome(
                [Measured("train", "loss", values[seed]), Measured("test", "loss", 2 * values[seed])]
            ),
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


def test_one_run_has_neither_deviation_nor_interval(make_runs):
    found = estimators.mean_std(cell("mean_std"), make_runs([0.3]))
    assert (found.shown, found.interval, found.n) == ("0.30", None, 1)


def test_bootstrap_shows_its_interval(make_runs):
    found = estimators.bootstrap(cell("bootstrap"), make_runs([0.3, 0.35, 0.1, 0.9]))
    low, high = found.interval
    assert found.shown == f"0.41 [{low:.2f}, {high:.2f}]"
    assert estimators.bootstrap(cell("bootstrap"), make_runs([0.3], "other")).shown == "0.30"


def test_value_refuses_to_choose_among_runs(make_runs):
    runs = make_runs([0.3, 0.4])
    with pytest.raises(GhostError, match="wants one run, tiny has 2"):
        estimators.value(cell("value"), runs)
    assert estimators.largest(cell("largest"), runs).value == 0.4


@pytest.mark.parametrize("name", ["mean", "mean_std", "bootstrap", "largest"])
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
        ("ghost.steps.simulate",),
        manifest,
        lambda seed, folder: Outcome([Measured("train", "loss", 1.0)]),
        stand_ins=["backbone"],
    )
    runs = open_runs(manifest)
    made = summarize_cell(cell("mean"), runs)
    assert made["runs"] == [run.run_id for run in runs]
    assert made["reduced"] is True
    assert made["stand_ins"] == ["backbone"]
    with pytest.raises(GhostError, match="no runs of tiny"):
        summarize_cell(cell("mean"), [])


def compare(estimator, runs, against, **more):
    return estimators.COMPARISONS[estimator](cell(estimator, against="other", **more), runs, against)


def test_comparisons_pair_by_seed_not_by_order(make_runs):
    a, b = [0.3, 0.35, 0.1, 0.9], [0.4, 0.5, 0.25, 1.1]
    first, second = make_runs(a), make_runs(b, "other", seeds=[2, 0, 3, 1])
    expected = scipy.stats.ttest_rel(a, b)
    p = compare("paired_p", first, second, digits=".4f")
    assert (p.value, p.n) == (pytest.approx(expected.pvalue), 4)
    assert compare("paired_d", first, second).value == pytest.approx(expected.statistic / 2)
    pooled = math.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2)
    assert compare("cohens_d", first, second).value == pytest.approx((np.mean(a) - np.mean(b)) / pooled)
    change = compare("relative_change", first, second, digits="+.1f")
    assert change.shown == f"{100 * (np.mean(a) / np.mean(b) - 1):+.1f}"
    assert compare("improved_share", first, second).shown == "4/4"
    assert compare("detectable", first, second).value > 0
    assert compare("ratio", first, second).value == pytest.approx(np.mean(a) / np.mean(b))
    doubled = compare("ratio", first, second, against_condition="test")
    assert doubled.value == pytest.approx(np.mean(a) / np.mean(b) / 2)
    with pytest.raises(GhostError, match=r"tiny has seeds \[0, 1, 2, 3\], other has \[0, 2, 3\]"):
        compare("paired_p", first, [run for run in second if run.seed != 1])


def test_comparisons_of_one_pair_and_of_equal_runs(make_runs):
    one, other = make_runs([0.3]), make_runs([0.4], "other")
    for name in ("paired_p", "cohens_d", "paired_d", "detectable"):
        assert (compare(name, one, other).shown, compare(name, one, other).interval) == ("undefined", None)
    assert compare("relative_change", one, other).shown == "-25.00"
    assert compare("relative_change", one, other).interval is None
    same, twin = make_runs([0.3, 0.4]), make_runs([0.3, 0.4], "other")
    assert compare("paired_p", same, twin).shown == "1.00"
    assert compare("cohens_d", same, twin).shown == "0.00"
    assert compare("improved_share", same, twin).shown == "0/2"


def test_a_p_value_never_shows_as_zero():
    assert estimators.show_p(0.0004, ".3f") == "< 0.001"
    assert estimators.show_p(0.0006, ".3f") == "0.001"
    assert estimators.show_p(0.0, ".2f") == "< 0.01"
    assert estimators.show_p(1e-7, ".0e") == "1e-07"


def test_millions_are_shared_by_all_runs(make_runs):
    assert estimators.millions(cell("millions", digits=".1f"), make_runs([2315746, 2315746])).shown == "2.3"
    with pytest.raises(GhostError, match="expected one number"):
        estimators.millions(cell("millions"), make_runs([1, 2], "other"))


def test_a_comparison_names_both_experiments_runs(make_runs):
    first, second = make_runs([0.3, 0.4]), make_runs([0.5, 0.7], "other")
    made = summarize_cell(cell("paired_p", against="other"), first, second)
    assert made["runs"] == [run.run_id for run in (*first, *second)]
    assert made["against"] == "other"
    with pytest.raises(GhostError, match="no runs of other"):
        summarize_cell(cell("paired_p", against="other"), first, [])
    with pytest.raises(GhostError, match="paired_p lacks `against`"):
        summarize_cell(cell("paired_p"), first)
    with pytest.raises(GhostError, match="mean has no use for `against`"):
        summarize_cell(cell("mean", against="other"), first, second)


def test_holm_corrects_the_family_and_leaves_the_rest():
    def made(name, estimator, p):
        return {"id": name, "estimator": estimator, "value": p, "shown": "undefined" if p is None else f"{p:.3f}"}

    cells = [
        made("a", "holm_p", 0.02),
        made("b", "holm_p", 0.01),
        made("c", "paired_p", 0.01),
        made("d", "holm_p", None),
    ]
    shown = [cell["shown"] for cell in correct(cells, dict.fromkeys("abcd", ".3f"))]
    assert shown == ["0.020", "0.020", "0.010", "undefined"]


@pytest.fixture
def episodes(tmp_path, tiny_row):
    """Two runs of three episodes each."""
    found = {7: [10.0, 12.0, 14.0], 8: [20.0, 22.0, 24.0]}

    def run(seed, folder):
        latency = np.array(found[seed])
        rows = [Measured("agent", "latency", latency.mean()), Measured("other", "latency", latency.mean() / 4)]
        return Outcome(rows, {"latency": latency, "reached": (latency < 21).astype(float)})

    record_runs(tiny_row, ("ghost.steps.simulate",), tmp_path / "e/manifest.json", run)
    return open_runs(tmp_path / "e/manifest.json")


def test_episodes_of_all_runs_are_pooled_and_the_interval_is_over_runs(episodes):
    found = estimators.over_episodes(cell("over_episodes", "latency", digits=".1f"), episodes)
    pooled = [10, 12, 14, 20, 22, 24]
    assert found.shown == f"{np.mean(pooled):.1f} ± {np.std(pooled, ddof=1):.1f}"
    assert (found.n, found.interval) == (6, (12, 22))


def test_a_share_of_episodes_has_wilsons_interval(episodes):
    found = estimators.success_share(cell("success_share", "reached"), episodes)
    assert (found.shown, found.value) == ("4/6", pytest.approx(4 / 6))
    assert found.interval[0] < 4 / 6 < found.interval[1]


def test_an_interval_stands_alone(episodes):
    found = estimators.interval(cell("interval", "latency", "agent", ".1f"), episodes)
    assert found.shown == "12.0 to 22.0"
    assert estimators.interval(cell("interval", "latency", "agent", ".1f"), episodes[:1]).shown == "one run"


def test_a_ratio_of_two_conditions_has_an_interval_over_pairs(episodes):
    asked = cell("bootstrap_ratio", "latency", "agent", ".1f", against="tiny", against_condition="other")
    assert estimators.bootstrap_ratio(asked, episodes, episodes).shown == "4.0 [4.0, 4.0]"


def rollouts(tmp_path, tiny_row, rates, name="tiny"):
    """Runs whose tasks have these success rates over four trials, and so many demonstrated phases."""
    manifest = tmp_path / name / "manifest.json"

    def run(seed, folder):
        rows = [Measured(f"T{t}", "success", rate, 4) for t, rate in enumerate(rates)]
        rows += [Measured(f"T{t}", "demonstrated_phases", 2.0 + t) for t in range(len(rates))]
        return Outcome(
            [*rows, Measured("T0/failed", "transitions", float("nan") if seed == 7 else 3.0, int(seed != 7))]
        )

    record_runs(tiny_row, ("ghost.steps.simulate",), manifest, run)
    return open_runs(manifest)


def test_success_rates_pool_all_trials(tmp_path, tiny_row):
    runs = rollouts(tmp_path, tiny_row, [0.75, 0.5])
    rate = estimators.success_rate(cell("success_rate", "success", "T0", ".0f"), runs)
    low, high = (100 * bound for bound in wilson(6, 8).interval)
    assert (rate.value, rate.n, rate.interval) == (75.0, 8, (low, high))
    assert rate.shown == f"75 [{low:.0f}, {high:.0f}]"
    assert estimators.trials(cell("trials", "success", "T0"), runs).shown == "8"
    missing = estimators.success_rate(cell("success_rate", "success", "T9"), runs)
    assert (missing.shown, missing.value) == ("not run", None)


def test_means_leave_out_runs_without_such_an_episode(tmp_path, tiny_row):
    runs = rollouts(tmp_path, tiny_row, [0.75])
    found = estimators.mean_where_run(cell("mean_where_run", "transitions", "T0/failed", ".1f"), runs)
    assert (found.shown, found.n) == ("3.0", 1)


def test_complexity_is_a_line_over_tasks(tmp_path, tiny_row):
    ghost = rollouts(tmp_path, tiny_row, [0.25, 0.5, 0.75], "ghost")
    mlp = rollouts(tmp_path, tiny_row, [0.25, 0.25, 0.25], "mlp")
    assert estimators.complexity_slope(cell("complexity_slope"), ghost, mlp).value == pytest.approx(25)
    assert estimators.complexity_r(cell("complexity_r"), ghost, mlp).value == pytest.approx(1)
    assert estimators.rate_difference(cell("rate_difference", "success", "T2"), ghost, mlp).value == pytest.approx(50)
