"""Demonstrations: a LeRobot data set with intended actions and sub-phases, the same for any number of workers."""

import numpy as np
import pytest

from ghost.data.lerobot import LeRobotDataset
from ghost.libero import demos
from ghost.libero.demos import Attempt, Settings
from ghost.libero.tasks import TASKS
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.make_demos import make_demos
from trained import declared

pytest_plugins = ("libero_fixtures",)


@pytest.mark.slow
def test_a_data_set_of_successes(libero_runs):
    run = open_runs(libero_runs["demos"])[0]
    data = LeRobotDataset.open(libero_runs["demos"].parent / "seed0/dataset")
    assert len(data) == run.value("all", "episodes") >= 2
    episode = data.episode(0)
    assert data.tasks == {0: TASKS[5].instruction}
    assert (episode.state.shape[1], episode.action.shape[1]) == (13, 7)
    assert episode.columns["observation.scene.things"].shape[1:] == (21, 9)
    assert set(np.unique(episode.columns["phase"])) <= {0, 1, 2, 3}
    assert np.abs(episode.action).max() <= 1  # intended, without the disturbance
    assert len(set(data.starts())) == len(data)
    assert set(run.record()["stand_ins"]) == {"LIBERO demonstrations", "LIBERO assets"}
    assert run.record()["facts"] == {"libero_assets": "primitives"}


def make(out, tasks=(5,), attempts=2, noise=0.05, seeds=(0,)):
    settings = {"tasks": list(tasks), "attempts": attempts, "max_steps": 200, "noise": noise, "bursts": 0.01}
    execute(make_demos, declared("demos", "make_demos", "ghost.libero.demos", settings, list(seeds), []), out)
    return out.read_bytes()


@pytest.mark.slow
def test_any_number_of_workers_writes_the_same_bytes(tmp_path, monkeypatch):
    written = []
    for count in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        written.append(make(tmp_path / count / "manifest.json"))
    assert written[0] == written[1]


@pytest.fixture
def tried(monkeypatch):
    """Attempts that cost nothing; the second one that is tried is killed where a test asks for it."""
    tried = []

    def attempt(env, settings, seed, job):
        tried.append(job)
        if tried == [(5, 0), (5, 1)]:
            raise KeyboardInterrupt
        columns = {"observation.state": np.full((3, 2), job[1], np.float32), "action": np.ones((3, 7), np.float32)}
        return Attempt(*job, f"start {job}", job[1] != 1, {**columns, "phase": np.arange(3)}, {})

    monkeypatch.setattr(demos, "make_attempt", attempt)
    monkeypatch.setattr(demos, "environment", lambda task, assets: None)
    return tried


def test_a_killed_run_goes_on_after_its_last_attempt(tmp_path, tried):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "killed/manifest.json", attempts=3)
    resumed = make(tmp_path / "killed/manifest.json", attempts=3)
    assert tried == [(5, 0), (5, 1), (5, 1), (5, 2)]
    assert make(tmp_path / "whole/manifest.json", attempts=3) == resumed


def test_more_attempts_and_tasks_do_just_the_new_ones(tmp_path, tried):
    out = tmp_path / "manifest.json"
    tried.append("begun")
    first = make(out, attempts=2)
    assert tried[1:] == [(5, 0), (5, 1)]
    make(out, attempts=3)
    make(out, tasks=(5, 7), attempts=3)
    assert tried[3:] == [(5, 2), (7, 0), (7, 1), (7, 2)]
    assert make(out, attempts=2) == first  # fewer: nothing is tried
    make(out, attempts=2, noise=0.1)
    assert tried[7:] == [(5, 0), (5, 1)]  # another setting: other attempts
    assert make(out, attempts=2) == first  # and back: they are still there
    assert len(tried) == 9


def test_bad_settings_are_one_line():
    with pytest.raises(ValueError, match=r"tasks must be some of 0 to 9, got \(12,\)"):
        Settings((12,), 1, 1, 0.0, 0.0)
