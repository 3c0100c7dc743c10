"""A policy that learned one filmed demonstration by heart, from pixels, completes that episode in closed loop."""

import json
import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest
from overfitting import SLACK, WRONG

pytestmark = pytest.mark.slow
TASKS = ("5", "6")  # a book into a caddy; a mug onto a plate and a pudding beside it


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Steps of each episode, 0 where it was not completed. In a process of its own, for OpenGL."""
    if not find_library("OSMesa"):
        pytest.skip("no OpenGL here: apt-get install libosmesa6")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("overfitting.py")), str(tmp_path_factory.mktemp("film")), *TASKS],
        env={**os.environ, "MUJOCO_GL": "osmesa"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("task", TASKS)
def test_the_loop_sees_and_does_at_recorded_steps_what_the_samples_have(played, task):
    """Tokens of both cameras but for the video's losses, the state, and actions through normalisation and back."""
    away = played[task]["away"]
    assert away["tokens"] < 0.1
    assert away["unmirrored"] > 0.3
    assert away["state"] < 1e-4
    assert away["command"] < 1e-6


@pytest.mark.parametrize("task", TASKS)
def test_it_completes_the_episode_of_its_film(played, task):
    assert 0 < played[task]["nothing"] <= SLACK * played[task]["film"]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("task", TASKS)
def test_it_does_not_with_a_wrong_convention(played, task, wrong):
    assert played[task][wrong] == 0
