"""A film shows the recorded episode again, frame by frame; what is not recorded is refused in one line."""

import os
import re
import subprocess
import sys

import av
import pytest

from ghost.errors import GhostError
from ghost.libero.film import film
from ghost.runs.driver import execute
from ghost.steps.rollout import rollout
from trained import declared

pytest_plugins = ("libero_fixtures",)


@pytest.fixture(scope="module")
def manifest(libero_runs):
    out = libero_runs["mlp"].parents[1] / "mlp_rollout/manifest.json"
    settings = {"backbone": "libero_standin", "tasks": [5], "trials": 1, "max_steps": 12, "execute": 8}
    settings["env_seed"] = 0
    text = declared("mlp_rollout", "rollout", "ghost.steps.rollout", settings, [2], ["features", "mlp"])
    execute(rollout, text, out, [libero_runs["features"], libero_runs["mlp"]])
    return out


@pytest.mark.slow
def test_a_recorded_episode(manifest, tmp_path):
    """By the command, in a process of its own, since OpenGL is chosen when MuJoCo is imported."""
    command = [
        sys.executable,
        "-m",
        "ghost.cli",
        "film",
        str(manifest),
        "--task",
        "5",
        "--out",
        str(tmp_path / "a.mp4"),
    ]
    for backend in ("egl", "osmesa"):
        done = subprocess.run(command, env={**os.environ, "MUJOCO_GL": backend}, capture_output=True, text=True)
        if "no OpenGL" not in done.stderr:
            break
    else:
        pytest.skip("no OpenGL here: apt-get install libosmesa6 libegl1")
    assert "task 5, trial 0 failed after 12 steps, as recorded" in done.stdout, done.stderr
    with av.open(str(tmp_path / "a.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) == 12
    assert frames[0].shape == (256, 512, 3)
    assert (frames[0] != frames[-1]).any()


@pytest.mark.slow
def test_what_is_not_there_is_one_line(manifest, libero_runs, tmp_path, monkeypatch):
    out = tmp_path / "a.mp4"
    with pytest.raises(GhostError, match=re.escape("(task, trial) (8, 0) is not there; there are (5, 0)")):
        film(manifest, 8, 0, None, out)
    with pytest.raises(GhostError, match="seed 3 is not there; there are 2"):
        film(manifest, 5, 0, 3, out)
    with pytest.raises(GhostError, match=r"^mlp: "):
        film(libero_runs["mlp"], 5, 0, None, out)
    assert not out.exists()
