"""Rollouts: every policy acts; workers, a kill and a resume change nothing; a crash is no result."""

import csv

import numpy as np
import pytest
from policies import POLICIES

from ghost.errors import GhostError
from ghost.libero.policy import Policy
from ghost.runs.records import open_runs
from ghost.steps import rollout as step
from ghost.steps.rollout import Episode, Settings, Trial, rollout, measured_of, trials
from trained import row

pytest_plugins = ("libero_fixtures",)

BASE = {"backbone": "libero_standin", "tasks": [5], "trials": 2, "max_steps": 12, "execute": 8}


def run(libero_runs, name, out, seeds=(1,), **settings):
    line = row(
        f"{name}_rollout", "rollout", "ghost.steps.rollout", {**BASE, **settings}, list(seeds), ["features", name]
    )
    rollout(line, out, (libero_runs["features"], libero_runs[name]))
    return open_runs(out)


def episodes(runs):
    return [list(csv.DictReader(run.path("episodes.csv").open())) for run in runs]


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_acts(name, libero_runs, tmp_path):
    runs = run(libero_runs, name, tmp_path / "manifest.json", trials=1)
    (episode,) = episodes(runs)[0]
    assert episode["steps"] == "12"
    assert (episode["phases"] == "") == (name in ("mlp", "ghost"))
    assert {"LIBERO assets", "GR00T N1.5 backbone"} <= set(runs[0].record()["stand_ins"])
    assert runs[0].record()["facts"] == {"libero_assets": "primitives"}
    assert runs[0].value("T5", "success") in (0.0, 1.0)


@pytest.mark.slow
def test_two_workers_give_the_measured_of_one(libero_runs, tmp_path, monkeypatch):
    one = run(libero_runs, "ghost_pz", tmp_path / "one/manifest.json")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    two = run(libero_runs, "ghost_pz", tmp_path / "two/manifest.json")
    assert one[0].files == two[0].files
    assert one[0].run_id == two[0].run_id


@pytest.mark.slow
def test_a_killed_run_goes_on_behind_its_last_episode(libero_runs, tmp_path, monkeypatch):
    whole = run(libero_runs, "mlp_phase", tmp_path / "whole/manifest.json")
    out, played, play = tmp_path / "killed/manifest.json", [], step.play

    def dies_at_the_second(*arguments):
        played.append(arguments[-1])
        if len(played) == 2:
            raise KeyboardInterrupt
        return play(*arguments)

    monkeypatch.setattr(step, "play", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run(libero_runs, "mlp_phase", out)
    assert not out.exists()
    resumed = run(libero_runs, "mlp_phase", out)
    assert [trial.trial for trial in played] == [0, 1, 1]
    assert resumed[0].files == whole[0].files
    assert not list(out.parent.glob("seed*/episodes/*.json"))


@pytest.mark.slow
def test_a_crash_of_the_simulator_is_no_failed_trial(libero_runs, tmp_path, monkeypatch):
    def crash(*arguments):
        raise RuntimeError("mujoco: unstable")

    monkeypatch.setattr(step, "play", crash)
    with pytest.raises(RuntimeError, match="unstable"):
        run(libero_runs, "mlp", tmp_path / "manifest.json")
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.slow
def test_an_ensemble_is_one_run_with_all_seeds(libero_runs, tmp_path):
    runs = run(libero_runs, "ghost_pg", tmp_path / "manifest.json", seeds=(0,), ensemble=True, trials=1)
    assert [e["training_seed"] for e in episodes(runs)[0]] == ["-1"]
    with pytest.raises(GhostError, match="ghost_pg was not trained with seed 9"):
        run(libero_runs, "ghost_pg", tmp_path / "other/manifest.json", seeds=(9,))


def test_a_misdirected_trial_is_told_the_wrong_thing_first(monkeypatch):
    """A policy that notes what it was told, in an environment that never ends."""
    told = []

    class Noting(Policy):
        def __init__(self):
            pass

        def start(self, seed):
            pass

        def plan(self, look, instruction, render):
            told.append(instruction)
            return np.zeros((16, 7)), 0

    class Endless:
        def reset(self, init_state, seed):
            pass

        def look(self):
            return None

        def step(self, action):
            pass

        def success(self):
            return False

        def render(self, camera):
            raise AssertionError

    monkeypatch.setattr(step, "environment", lambda task, assets: Endless())
    settings = Settings("libero_standin", (), 1, 40, 8, misdirect=((0, 1),), switch_at=(16,))
    (trial,) = trials(settings)
    assert trial == Trial(1, 0, 0, 16)
    episode = step.play(settings, None, Noting(), 3, trial)
    assert ["soup" in text for text in told] == [True, True, False, False, False]
    assert (episode.condition, episode.init_state, episode.phases) == ("T0-T1_N16", 40, "0 0 0 0 0")


def test_phases_of_successes_and_failures():
    def episode(trial, success, phases):
        return Episode("T8", 8, trial, 1, 40, 0, 0, success, success, 100, phases)

    found = [episode(0, True, "0 1 4 4"), episode(1, True, "0 0 0 4"), episode(2, False, "0 1 0 1")]
    rows = {(r.condition, r.metric): (r.value, r.n) for r in measured_of(found, {})}
    assert rows["T8", "success"] == (pytest.approx(2 / 3), 3)
    assert rows["T8/succeeded", "transitions"] == (1.5, 2)
    assert rows["T8/failed", "transitions"] == (3.0, 1)
    assert rows["T8/succeeded", "second_object_share"] == (0.375, 2)
    assert rows["T8/failed", "share_of_phase_1"] == (0.5, 1)
    assert rows["all", "success"] == (pytest.approx(2 / 3), 3)


def test_bad_settings_are_one_line():
    with pytest.raises(ValueError, match="tasks must be some of 0 to 9, got"):
        Settings("libero_standin", (10,), 1, 1, 1)
    with pytest.raises(ValueError, match="belong together"):
        Settings("libero_standin", (1,), 1, 1, 1, misdirect=((0, 1),))
