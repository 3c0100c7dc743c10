"""From episodes.csv to rates: what a trial is, which trials two policies share, what is said about the others."""

import csv
import json

import numpy as np
import pytest
from test_estimators import cell, compare, estimate

from conftest import declaration, make_runs
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.report import rates
from ghost.report.rates import Outcomes
from ghost.runs.driver import Plan, execute
from ghost.runs.records import open_runs
from ghost.steps.summarize import summarize_cell

SUCCESS = {"metric": "success", "condition": "all", "digits": ".0f"}
TASKS = (0, 8)


@pytest.fixture
def rollouts(tmp_path):
    """Real runs that wrote episodes.csv. `success` has a row for each training, a column for each trial."""

    def make(name, success, *, ensemble=False, scene="", condition="T{}", phases=("", ""), **more):
        success = np.array(success, bool)
        numbers = range(success.shape[1] // len(TASKS))

        def run(unit):
            lines = [
                {"condition": condition.format(task), "task": task, "trial": number, "start": f"{scene}{task}{number}"}
                | {"training_seed": -1 if ensemble else unit.seed, "env_seed": unit.seed if ensemble else 0}
                | {"success": won, "settled": False, "phases": phases[int(won)]}
                for (task, number), won in zip(
                    ((t, k) for t in TASKS for k in numbers), success[unit.seed], strict=True
                )
            ]
            with (unit.folder / "episodes.csv").open("w", newline="") as handle:
                writer = csv.DictWriter(handle, lines[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines)
            return Outcome([Measured("all", "success", success[unit.seed].mean(), len(lines))], files=("episodes.csv",))

        manifest = tmp_path / name / "manifest.json"
        settings = {"success": success.tolist(), "scene": scene, "phases": phases}
        declared = declaration(name, seeds=list(range(len(success))), settings=settings, **more)
        execute(lambda job: Plan(run), json.dumps(declared), manifest, (), ())
        return open_runs(manifest)

    return make


def drawn(seed, trainings=3, trials=40, rate=0.6):
    return np.random.default_rng(seed).random((trainings, trials)) < rate


def matrix(success, tasks=TASKS):
    return Outcomes(np.array(success, float), np.repeat(tasks, np.shape(success)[1] // len(tasks)))


def test_a_rate_is_over_trainings_and_distinct_trials(rollouts):
    success = drawn(0)
    found = estimate("success_rate", rollouts("tiny", success), **SUCCESS)
    expected = rates.rate(matrix(success))
    assert (found.value, found.n) == (pytest.approx(100 * success.mean()), 40)
    assert found.interval == pytest.approx([100 * bound for bound in expected.interval])
    low, high = found.interval
    assert found.shown == f"{found.value:.0f} [{low:.0f}, {high:.0f}]"
    assert estimate("trials", rollouts("tiny", success), **SUCCESS).shown == "40"
    of_task = estimate("success_rate", rollouts("tiny", success), **SUCCESS | {"condition": "T8"})
    assert of_task.value == pytest.approx(100 * success[:, 20:].mean())
    for name in ("success_rate", "trials"):
        missing = estimate(name, rollouts("tiny", success), **SUCCESS | {"condition": "T9"})
        assert (missing.shown, missing.value) == ("not run", None)


def test_copies_of_a_training_are_not_more_trials(rollouts):
    """Five trainings that do the same are as sure as one: 1,000 episodes of 200 trials are not 1,000 trials."""
    once = drawn(1, trainings=1, trials=200)
    one, five = (estimate("success_rate", rollouts(f"of{n}", np.repeat(once, n, 0)), **SUCCESS) for n in (1, 5))
    assert np.ptp(five.interval) == pytest.approx(np.ptp(one.interval), rel=0.05)


def test_the_runs_of_an_ensemble_are_one_training_on_more_trials(rollouts):
    success = drawn(2, trainings=3)
    found = estimate("success_rate", rollouts("tiny", success, ensemble=True), **SUCCESS)
    assert found.n == 120
    assert found.interval == pytest.approx(
        [100 * bound for bound in rates.rate(matrix(success.reshape(1, -1))).interval]
    )


def test_a_difference_pairs_the_trials_and_respects_the_trainings(rollouts):
    a, b = drawn(3), drawn(4, trainings=3, rate=0.4)
    ghost, mlp = rollouts("ghost", a), rollouts("mlp", b)
    expected = rates.difference(matrix(a), matrix(b))
    found = compare("rate_difference", ghost, mlp, **SUCCESS)
    assert (found.value, found.n, found.unpaired) == (pytest.approx(100 * expected.estimate), 40, ())
    assert found.interval == pytest.approx([100 * bound for bound in expected.interval])
    p = compare("rate_p", ghost, mlp, **SUCCESS | {"digits": ".3f"})
    assert (p.value, p.n) == (pytest.approx(rates.difference_p(matrix(a), matrix(b)).estimate), 40)
    smallest = compare("rate_detectable", ghost, mlp, **SUCCESS)
    assert smallest.value == pytest.approx(100 * rates.detectable_difference(matrix(a), matrix(b)).estimate)
    assert compare("rate_difference", ghost, mlp, **SUCCESS | {"condition": "T9"}).shown == "not run"


def test_several_tasks_are_one_difference_and_each_evaluation_has_its_own_rate(rollouts):
    a, b = drawn(7), drawn(8, rate=0.4)
    ghost, mlp = rollouts("ghost", a), rollouts("mlp", b)
    both = compare("rate_difference", ghost, mlp, **SUCCESS | {"condition": "T8+T0"})
    assert both == compare("rate_difference", ghost, mlp, **SUCCESS)  # they are all tasks that there are
    of_tasks = [compare("rate_difference", ghost, mlp, **SUCCESS | {"condition": t}).value for t in ("T0", "T8")]
    assert both.value == pytest.approx(np.mean(of_tasks))
    assert compare("rate_difference", ghost, mlp, **SUCCESS | {"condition": "T8+T9"}).value == pytest.approx(
        of_tasks[1]
    )
    ensemble = rollouts("together", a, ensemble=True)
    for seed in range(3):
        found = estimate("success_rate", ensemble, **SUCCESS | {"condition": f"env_seed={seed}"})
        assert (found.value, found.n) == (pytest.approx(100 * a[seed].mean()), 40)
    assert estimate("success_rate", ensemble, **SUCCESS | {"condition": "env_seed=3"}).shown == "not run"


def test_a_phase_goes_back_where_it_is_earlier_than_at_the_plan_before(rollouts):
    """Of a failure two in three steps here, of a success none."""
    success = np.ones((2, 4), bool)
    success[0, 0] = success[1, :3] = False
    runs = rollouts("ghost", success, phases=("3 1 2 0", "0 0 1"))
    failed = estimate("phases_back", runs, condition="failed")
    assert failed.value == pytest.approx(100 * 2 / 3)
    assert failed.n == 3 * 4  # steps from plan to plan
    assert estimate("phases_back", runs, condition="succeeded").value == 0
    assert estimate("phases_back", rollouts("mlp", success), condition="failed").shown == "none"  # it infers none


def test_trials_that_only_one_policy_met_are_left_out_and_listed(rollouts):
    a, b = drawn(5, trials=40), drawn(6, trials=20)
    found = compare("rate_difference", rollouts("ghost", a), rollouts("mlp", b), **SUCCESS)
    both = np.r_[0:10, 20:30]  # of each task the first ten
    assert found.value == pytest.approx(100 * (a[:, both].mean() - b.mean()))
    assert (found.n, len(found.unpaired)) == (20, 20)
    assert found.unpaired[0] == "T0/0/10"
    made = summarize_cell(cell("rate_p", against="mlp", **SUCCESS), rollouts("tiny", a), rollouts("mlp", b))
    assert len(made["unpaired"]) == 20


def test_a_trial_that_began_in_another_scene_is_another_trial(rollouts):
    with pytest.raises(GhostError, match="tiny and other have no trial in common"):
        compare("rate_difference", rollouts("ghost", drawn(7)), rollouts("mlp", drawn(8), scene="other"), **SUCCESS)


def test_a_difference_may_be_to_another_condition_or_metric(rollouts):
    """What the study names as the other side is what is taken."""
    plain, misled = drawn(9), drawn(10, rate=0.3)
    first, second = rollouts("plain", plain), rollouts("misled", misled, condition="T0-T{}_N50")
    other = {"condition": "T8", "against_condition": "T0-T8_N50"}
    found = compare("rate_difference", second, first, **SUCCESS | {"condition": "T0-T8_N50", "against_condition": "T8"})
    assert found.value == pytest.approx(100 * (misled[:, 20:].mean() - plain[:, 20:].mean()))
    assert compare("rate_difference", first, second, **SUCCESS | other).value == pytest.approx(-found.value)
    settled = compare("rate_difference", first, first, **SUCCESS, against_metric="settled")
    assert settled.value == pytest.approx(100 * plain.mean())


def test_what_cannot_be_paired_is_refused(rollouts, tmp_path):
    runs = rollouts("tiny", drawn(11))
    shares = make_runs(tmp_path / "s/manifest.json", lambda seed: Outcome([Measured("all", "success", 0.5, 4)]))
    with pytest.raises(GhostError, match="has no episodes"):
        compare("rate_difference", runs, shares, **SUCCESS)
    with pytest.raises(GhostError, match="does not say nope of a trial"):
        estimate("success_rate", runs, **SUCCESS | {"metric": "nope"})
    path = runs[0].folder / "seed0/episodes.csv"
    path.write_text(path.read_text().replace("True", "False"))
    with pytest.raises(GhostError, match="is not the file that its manifest lists"):
        open_runs(runs[0].folder / "manifest.json")[0].table("episodes.csv")


def test_a_share_without_episodes_is_wilsons_for_one_run(tmp_path):
    runs = make_runs(tmp_path / "s/manifest.json", lambda seed: Outcome([Measured("all", "success", 0.75, 8)]))
    one = estimate("success_rate", runs[:1], **SUCCESS)
    assert one.interval == pytest.approx([100 * bound for bound in rates.rate(matrix([[1] * 6 + [0] * 2])).interval])
    assert (one.n, estimate("success_rate", runs, **SUCCESS).n) == (8, 16)
