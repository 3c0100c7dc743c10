"""Demonstrations: a LeRobot data set with intended actions and sub-phases, the same for any number of workers."""

import numpy as np
import pytest

from ghost.data.lerobot import LeRobotDataset
from ghost.libero import demos
from ghost.libero.assets import Assets
from ghost.libero.demos import Attempt, Settings, make
from ghost.libero.tasks import TASKS
from ghost.runs.records import open_runs

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
    assert set(run.record()["stand_ins"]) == {"LIBERO demonstrations", "LIBERO assets"}
    assert run.record()["facts"] == {"libero_assets": "primitives"}


@pytest.mark.slow
def test_any_number_of_workers_writes_the_same_bytes(tmp_path, monkeypatch):
    settings = Settings((5,), 2, 200, 0.05, 0.01)
    written = []
    for count in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        outcome = make(settings, seed=0, folder=tmp_path / count)
        written.append({name: (tmp_path / count / name).read_bytes() for name in outcome.files})
    assert written[0] == written[1]


def test_a_killed_run_goes_on_behind_its_last_attempt(tmp_path, monkeypatch):
    """With attempts that cost nothing: what is kept, and for which settings it counts."""
    tried = []

    def attempt(env, settings, seed, job):
        tried.append(job)
        if len(tried) == 2:
            raise KeyboardInterrupt
        columns = {"observation.state": np.full((3, 2), job[1], np.float32), "action": np.ones((3, 7), np.float32)}
        return Attempt(*job, job[1], job[1] != 1, {**columns, "phase": np.arange(3)}, {})

    monkeypatch.setattr(demos, "make_attempt", attempt)
    monkeypatch.setattr(demos, "environment", lambda task, assets: None)
    settings = Settings((5,), 3, 200, 0.1, 0.0)
    with pytest.raises(KeyboardInterrupt):
        make(settings, seed=0, folder=tmp_path)
    outcome = make(settings, seed=0, folder=tmp_path)
    assert tried == [(5, 0), (5, 1), (5, 1), (5, 2)]
    assert not (tmp_path / "parts").exists()
    tried.clear()
    tried += [(0, 0)] * 2
    whole = make(settings, seed=0, folder=tmp_path / "whole")
    assert whole.measured == outcome.measured
    assert all((tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in whole.files)


def test_what_another_setting_left_is_tried_again(tmp_path, monkeypatch):
    tried = []

    def attempt(env, settings, seed, job):
        tried.append(settings.noise)
        return Attempt(*job, 0, True, {"action": np.ones((3, 7), np.float32)}, {})

    monkeypatch.setattr(demos, "make_attempt", attempt)
    monkeypatch.setattr(demos, "environment", lambda task, assets: None)
    for noise in (0.1, 0.1, 0.2):
        settings = Settings((5,), 1, 200, noise, 0.0)
        found = demos._kept_attempt(settings, Assets(tmp_path, primitive=True), 0, tmp_path, (5, 0))
        assert (found.success, found.columns["action"].shape) == (True, (3, 7))
    assert tried == [0.1, 0.2]


def test_bad_settings_are_one_line():
    with pytest.raises(ValueError, match=r"tasks must be some of 0 to 9, got \(12,\)"):
        Settings((12,), 1, 1, 0.0, 0.0)
