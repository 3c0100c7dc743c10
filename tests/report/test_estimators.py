import math

import numpy as np
import pytest
import scipy.stats

from conftest import make_runs
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.report import estimators, shown
from ghost.report.rates import Outcomes, rate
from ghost.report.statistics import paired_ratio, student_mean, wilson
from ghost.runs.records import open_runs
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
        "published": "",
        "against": against,
        "against_condition": "",
        "against_metric": "",
        **more,
    }


def test_of_a_folder_from_outside_the_beginning_of_its_hash_is_shown(tmp_path):
    settings = {"folder": "0a1b2c3d4e5f" + 52 * "6", "name": "lab/cups"}
    runs = make_runs(tmp_path / "x/manifest.json", lambda seed: Outcome([]), settings=settings)
    shown = [estimate("setting", runs, metric=name).shown for name in settings]
    assert shown == ["0a1b2c3d4e5f", "lab/cups"]


@pytest.fixture
def losses(tmp_path):
    """Runs with these losses: the value of seed s is values[s]."""

    def make(values, name="tiny", seeds=None):
        def measure(seed):
            return Outcome([Measured("train", "loss", values[seed]), Measured("test", "loss", 2 * values[seed])])

        return make_runs(
            tmp_path / name / "manifest.json",
            measure,
            name=name,
            seeds=list(seeds or range(len(values))),
            settings={"values": list(values)},
        )

    return make


def estimate(estimator, runs, **more):
    return estimators.ESTIMATORS[estimator](cell(estimator, **more), runs)


def test_mean_and_interval_agree_with_scipy(losses):
    values = [0.3, 0.35, 0.1, 0.9]
    found = estimate("mean_std", losses(values))
    expected = scipy.stats.t.interval(0.95, 3, np.mean(values), scipy.stats.sem(values))
    assert found.value == pytest.approx(np.mean(values))
    assert found.interval == pytest.approx(expected)
    assert found.shown == f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
    assert found.n == 4


def test_one_run_has_neither_deviation_nor_interval(losses):
    found = estimate("mean_std", losses([0.3]))
    assert (found.shown, found.interval, found.n) == ("0.30", None, 1)


def test_value_refuses_to_choose_among_runs(losses):
    runs = losses([0.3, 0.4])
    with pytest.raises(GhostError, match="needs one run, tiny has 2"):
        estimate("value", runs)
    assert estimate("largest", runs).value == 0.4


@pytest.mark.parametrize("name", ["mean", "mean_std", "interval", "largest"])
def test_a_run_that_never_got_there_is_not_averaged_away(losses, name):
    found = estimate(name, losses([0.3, math.nan]))
    assert (found.shown, found.value) == ("undefined", None)


def test_settings_runs_curves_and_modules(tiny_manifest):
    runs = open_runs(tiny_manifest)
    assert estimate("setting", runs, metric="epochs", digits="g").shown == "3"
    assert estimate("setting", runs, metric="widths", digits="g").shown == "8, 4"
    assert estimate("runs", runs).shown == "2"
    curve = estimate("series", runs, metric="curve")
    assert curve.n == 8
    assert estimate("series", runs[:1], metric="curve").sha256 != curve.sha256
    with pytest.raises(GhostError, match="no array nope"):
        estimate("series", runs, metric="nope")
    assert estimate("module", [], metric="ghost.dynamics.networks").shown == "dynamics/networks.py"
    assert estimate("module", [], metric="ghost.nope").shown == "not built"


def test_a_cell_names_its_runs_and_what_is_to_be_said_against_it(tmp_path):
    outcome = Outcome([Measured("train", "loss", 1.0)])
    marked = {"reduced": {"epochs": {"here": 3, "paper": 9}}, "stand_ins": [{"of": "backbone"}]}
    runs = make_runs(tmp_path / "r/manifest.json", lambda seed: outcome, **marked)
    made = summarize_cell(cell("mean"), runs)
    assert made["runs"] == [run.run_id for run in runs]
    assert made["reduced"] is True
    assert made["stand_ins"] == ["backbone"]
    with pytest.raises(GhostError, match="no runs of tiny"):
        summarize_cell(cell("mean"), [])


def compare(estimator, runs, against, **more):
    return estimators.COMPARISONS[estimator](cell(estimator, against="other", **more), runs, against)


def test_comparisons_pair_by_seed_not_by_order(losses):
    a, b = [0.3, 0.35, 0.1, 0.9], [0.4, 0.5, 0.25, 1.1]
    first, second = losses(a), losses(b, "other", seeds=[2, 0, 3, 1])
    expected = scipy.stats.ttest_rel(a, b)
    p = compare("paired_p", first, second, digits=".4f")
    assert (p.value, p.n) == (pytest.approx(expected.pvalue), 4)
    assert compare("paired_d", first, second).value == pytest.approx(expected.statistic / 2)
    pooled = math.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2)
    assert compare("cohens_d", first, second).value == pytest.approx((np.mean(a) - np.mean(b)) / pooled)
    change = compare("relative_change", first, second, digits="+.1f")
    assert change.shown == f"{100 * (np.mean(a) / np.mean(b) - 1):+.1f}"
    assert compare("lower_share", first, second).shown == "4/4"
    assert compare("detectable", first, second).value > 0
    assert compare("ratio", first, second).value == pytest.approx(np.mean(a) / np.mean(b))
    doubled = compare("ratio", first, second, against_condition="test")
    assert doubled.value == pytest.approx(np.mean(a) / np.mean(b) / 2)
    assert p.unpaired == ()


def test_comparisons_pair_the_seeds_that_both_have_and_list_the_others(losses):
    a, b = [0.3, 0.35, 0.1, 0.9], [0.4, 0.5, 0.25, 1.1, 1.3]
    first, second = losses(a), losses(b, "other", seeds=[4, 3, 1, 0])
    change = compare("relative_change", first, second)
    assert change.value == pytest.approx(100 * ((0.3 + 0.35 + 0.9) / (0.4 + 0.5 + 1.1) - 1))
    assert (change.n, change.unpaired) == (3, (2, 4))
    assert compare("ratio", first, second).unpaired == ()  # of all runs, paired or not
    with pytest.raises(GhostError, match="tiny and other have no seed in common"):
        compare("paired_p", first[2:3], second)


def test_comparisons_of_one_pair_and_of_equal_runs(losses):
    one, other = losses([0.3]), losses([0.4], "other")
    for name in ("paired_p", "cohens_d", "paired_d", "detectable"):
        assert (compare(name, one, other).shown, compare(name, one, other).interval) == ("undefined", None)
    assert compare("relative_change", one, other).shown == "-25.00"
    assert compare("relative_change", one, other).interval is None
    same, twin = losses([0.3, 0.4]), losses([0.3, 0.4], "other")
    assert compare("paired_p", same, twin).shown == "1.00"
    assert compare("cohens_d", same, twin).shown == "0.00"
    assert compare("lower_share", same, twin).shown == "0/2"


def test_a_p_value_never_shows_as_zero():
    assert shown.show_p(0.0004, ".3f") == "< 0.001"
    assert shown.show_p(0.0006, ".3f") == "0.001"
    assert shown.show_p(0.0, ".2f") == "< 0.01"
    assert shown.show_p(1e-7, ".0e") == "1e-07"


def test_millions_are_shared_by_all_runs(losses):
    assert estimate("millions", losses([2315746, 2315746]), digits=".1f").shown == "2.3"
    with pytest.raises(GhostError, match="expected one number"):
        estimate("millions", losses([1, 2], "other"))


def test_a_comparison_names_both_experiments_runs(losses):
    first, second = losses([0.3, 0.4]), losses([0.5, 0.7], "other")
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
    correct(cells, dict.fromkeys("abcd", ".3f"))
    assert [cell["shown"] for cell in cells] == ["0.020", "0.020", "0.010", "undefined"]
    rates = [made("a", "rate_holm_p", 0.02), made("b", "rate_holm_p", 0.01), made("c", "rate_p", 0.01)]
    correct(rates, dict.fromkeys("abc", ".3f"))
    assert [cell["shown"] for cell in rates] == ["0.020", "0.020", "0.010"]


@pytest.fixture
def episodes(tmp_path):
    """Two runs of three episodes each."""
    found = {7: [10.0, 12.0, 14.0], 8: [20.0, 22.0, 24.0]}

    def measure(seed):
        latency = np.array(found[seed])
        means = [Measured("agent", "latency", latency.mean()), Measured("other", "latency", latency.mean() / 4)]
        return Outcome(means, {"latency": latency, "reached": (latency < 21).astype(float)})

    return make_runs(tmp_path / "e/manifest.json", measure)


def test_episodes_of_all_runs_are_pooled_and_the_interval_is_over_runs(episodes):
    found = estimate("over_episodes", episodes, metric="latency", digits=".1f")
    pooled = [10, 12, 14, 20, 22, 24]
    assert found.shown == f"{np.mean(pooled):.1f} ± {np.std(pooled, ddof=1):.1f}"
    assert (found.n, found.interval) == (6, student_mean([12, 22]).interval)


def test_a_share_of_episodes_respects_the_runs(episodes):
    found = estimate("success_share", episodes, metric="reached")
    assert (found.shown, found.value, found.n) == ("4/6", pytest.approx(4 / 6), 6)
    both = Outcomes(np.array([[1.0, 1, 1], [1, 0, 0]]), np.zeros(3), shared=False)
    assert found.interval == rate(both).interval
    assert found.interval[0] < wilson(4, 6).interval[0]
    assert estimate("success_share", episodes[:1], metric="reached").interval == pytest.approx(wilson(3, 3).interval)


def test_an_interval_stands_alone(episodes):
    latency = {"metric": "latency", "condition": "agent", "digits": ".1f"}
    low, high = student_mean([12, 22]).interval
    assert estimate("interval", episodes, **latency).shown == f"{low:.1f} to {high:.1f}"
    assert estimate("interval", episodes[:1], **latency).shown == "one run"


def test_a_ratio_of_pairs_shows_its_interval(losses):
    first, second = losses([2.0, 2.2, 1.9]), losses([1.0, 1.1, 1.0], "other")
    low, high = paired_ratio([2.0, 2.2, 1.9], [1.0, 1.1, 1.0]).interval
    assert compare("paired_ratio", first, second).shown == f"1.97 [{low:.2f}, {high:.2f}]"
    halved = compare("paired_ratio", first, second, against_condition="test")
    assert halved.value == pytest.approx(6.1 / 6.2)
    assert compare("paired_ratio", first[:1], second[:1]).shown == "2.00"


def rollouts(manifest, rates):
    """Runs whose tasks have these success rates over four trials, and so many demonstrated phases."""

    def measure(seed):
        found = [Measured(f"T{t}", "success", rate, 4) for t, rate in enumerate(rates)]
        found += [Measured(f"T{t}", "subphases", 2.0 + t) for t in range(len(rates))]
        transitions = Measured("T0/failed", "transitions", math.nan if seed == 7 else 3.0, int(seed != 7))
        return Outcome([*found, transitions])

    return make_runs(manifest, measure)


def test_means_leave_out_runs_without_such_an_episode(tmp_path):
    runs = rollouts(tmp_path / "manifest.json", [0.75])
    found = estimate("mean_where_run", runs, metric="transitions", condition="T0/failed", digits=".1f")
    assert (found.shown, found.n, found.interval) == ("3.0", 1, None)
    assert estimate("mean_where_run", runs[:1], metric="transitions", condition="T0/failed").shown == "none"


def test_a_ratio_of_two_kinds_of_episodes_is_over_the_trainings_that_had_both(tmp_path):
    failed = {7: 2.0, 8: math.nan, 9: 4.0, 10: 4.0}

    def measure(seed):
        ends = {"T8/succeeded": 3.0 + 2 * (seed == 9), "T8/failed": failed[seed]}
        return Outcome([Measured(end, "transitions", value, 5) for end, value in ends.items()])

    runs = make_runs(tmp_path / "manifest.json", measure, seeds=[7, 8, 9, 10])
    asked = {"metric": "transitions", "condition": "T8/succeeded", "against_condition": "T8/failed"}
    found = compare("ratio_where_run", runs, runs, **asked)
    expected = paired_ratio([3.0, 5.0, 3.0], [2.0, 4.0, 4.0])
    assert (found.value, found.interval, found.n) == (expected.estimate, expected.interval, 3)
    assert found.unpaired == (8,)
    assert compare("ratio_where_run", runs[1:2], runs[1:2], **asked).shown == "none"


def test_an_interval_is_shown_beside_what_has_one(tmp_path, losses):
    runs = losses([0.1, 0.2, 0.6])
    low, high = student_mean([0.1, 0.2, 0.6]).interval
    assert estimate("mean_with_interval", runs).shown == f"0.30 [{low:.2f}, {high:.2f}]"
    steps = make_runs(
        tmp_path / "steps/manifest.json", lambda seed: Outcome([Measured("T8", "steps", seed, 2)]), seeds=[7, 8, 9]
    )
    asked = {"metric": "steps", "condition": "T8", "digits": ".1f"}
    plain, more = (estimate(f"mean_where_run{suffix}", steps, **asked) for suffix in ("", "_with_interval"))
    assert plain.shown == "8.0"
    assert more.shown == "8.0 [{:.1f}, {:.1f}]".format(*plain.interval)
    assert estimate("mean_where_run_with_interval", steps[:1], **asked).shown == "7.0"  # one run has none


def test_a_mean_over_episodes_has_an_interval_over_runs(tmp_path):
    found = {7: (3.0, 18), 8: (4.0, 22), 9: (5.0, 20)}
    runs = make_runs(
        tmp_path / "manifest.json", lambda seed: Outcome([Measured("T8", "steps", *found[seed])]), seeds=[7, 8, 9]
    )
    mean = estimate("mean_where_run", runs, metric="steps", condition="T8")
    assert (mean.value, mean.n) == (pytest.approx((54 + 88 + 100) / 60), 60)
    assert mean.interval == paired_ratio([54, 88, 100], [18, 22, 20]).interval


def test_complexity_is_a_line_over_tasks(tmp_path):
    ghost = rollouts(tmp_path / "ghost/manifest.json", [0.25, 0.5, 0.75])
    mlp = rollouts(tmp_path / "mlp/manifest.json", [0.25, 0.25, 0.25])
    assert compare("complexity_slope", ghost, mlp).value == pytest.approx(25)
    assert compare("complexity_r", ghost, mlp).value == pytest.approx(1)


def test_a_difference_of_counts_and_a_reduction_in_percent(losses):
    first, second = losses([2.0, 4.0]), losses([5.0, 3.0], "other")
    found = compare("difference", first, second, digits=",.0f")
    assert (found.value, found.shown, found.n) == (-1.0, "-1", 2)
    reduced = compare("relative_reduction", first, second, digits="z.1f")
    assert (reduced.value, reduced.shown) == (pytest.approx(100 * (1 - 3 / 4)), "25.0")
