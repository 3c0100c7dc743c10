import pytest

from ghost.data.lerobot import LeRobotDataset
from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.make_demos import make_demos
from trained import declared

SETTINGS = {"episodes": 20, "steps": 30, "fps": 20, "robot_seed": 2026, "state_noise": 0.01, "scene_noise": 0.02}


def make(out, **changes):
    settings = {**SETTINGS, "episodes_per_file": 8, **changes}
    execute(make_demos, declared("dual_arm", "make_demos", "ghost.data.dual_arm", settings, [0], []), out)


def test_an_experiment_becomes_a_data_set(tmp_path):
    manifest = tmp_path / "manifest.json"
    make(manifest)
    run = open_runs(manifest)[0]
    assert run.record()["stand_ins"] == ["dual-arm data set"]
    assert "ghost/data/dual_arm.py" in run.record()["code"]["files"]
    data = LeRobotDataset.open(tmp_path / "seed0/dataset")
    assert (len(data), data.lengths().sum()) == (run.value("all", "episodes"), run.value("all", "steps"))
    on_disk = {str(p.relative_to(tmp_path)) for p in (tmp_path / "seed0/dataset").rglob("*") if p.is_file()}
    assert on_disk == {name for name in run.files if "/dataset/" in name}


def test_bad_settings_are_one_line(tmp_path):
    with pytest.raises(GhostError, match="dual_arm: episodes must be at least 10, one per task, got 3"):
        make(tmp_path / "manifest.json", episodes=3)
