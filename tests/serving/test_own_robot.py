"""A decoder of a lab's own data behind `ghost serve`: a robot sends what it sees, and gets actions in its own units."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import labs
from conftest import ROOT
from ghost.data.features import FeatureCache
from ghost.data.lerobot import STATE, LeRobotDataset
from ghost.data.samples import Samples
from ghost.errors import GhostError
from ghost.evaluations.predict import predict
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.serving.client import Robot
from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from ghost.steps.train import train
from ghost.study import builds
from ghost.training.checkpoint import load_decoder

pytestmark = pytest.mark.slow
STEPS = {"dual_arm": make_demos, "dual_arm_features": cache_features, "mlp": train}
LONGEST_S = 300.0


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> LeRobotDataset:
    return LeRobotDataset.open(labs.write_filmed(tmp_path_factory.mktemp("lab") / "set"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory, source) -> dict[str, Path]:
    """The manifests of the data set, its features and a decoder, as a build makes them."""
    split = {"by": "episode", "test_share": 0.2, "samples": 60}
    given = {"scale": "smoke", "max_seeds": 1, "demos": str(source.folder), "backbone": "pixels", "split": split}
    build, folder = builds.load(given, ROOT), tmp_path_factory.mktemp("runs")
    made: dict[str, Path] = {}
    for name, step in STEPS.items():
        needs = [made[need] for need in build.experiment(name).needs]
        made[name] = folder / name / "manifest.json"
        execute(step, json.dumps(build.declaration(name)), made[name], needs)
    return made


@pytest.fixture(scope="module")
def robot(runs, tmp_path_factory) -> Iterator[Robot]:
    socket = tmp_path_factory.mktemp("s") / "p"  # the name of a socket must be short
    command = [Path(sys.executable).with_name("ghost"), "serve", runs["mlp"], "--unix", socket]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    until = time.monotonic() + LONGEST_S
    with subprocess.Popen(command, env=environment) as server:
        try:
            while not socket.exists():
                assert server.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
            connected = Robot(f"unix:{socket}")
            yield connected
            connected.close()
        finally:
            server.terminate()


def look(source: LeRobotDataset, episode: int, step: int) -> dict[str, np.ndarray]:
    """What the robot saw then, as it was recorded."""
    pictures = {camera: source.frames(episode, camera, [step])[0] for camera in labs.CAMERAS}
    return {STATE: source.episode(episode).state[step], **pictures}


def test_the_actions_are_those_of_the_pipeline_in_raw_units(robot, runs, source):
    cache, run = FeatureCache.open(runs["dual_arm_features"]), open_runs(runs["mlp"])[0]
    chosen = np.arange(0, len(cache), 5)
    ours = cache.normalisation.action.undo(predict(load_decoder(run), Samples(cache, chosen), seed=0))  # [n, H, 14]
    robot.start(seed=0)
    for place, expected in zip(chosen, ours, strict=True):
        episode, step = int(cache.episode[place]), int(cache.timestep[place])
        action = robot.plan(look(source, episode, step), source.instruction(episode)).actions
        np.testing.assert_allclose(action, expected, rtol=1e-5, atol=1e-5 * np.abs(ours).max())
        np.testing.assert_allclose(action[:, labs.CONSTANT], labs.STUCK_AT)
    assert np.abs(ours).max() > 2  # not in normalised units
    shuffled = robot.plan(
        look(source, episode, step), labs.TASKS[0 if source.instruction(episode) != labs.TASKS[0] else 1]
    )
    assert np.abs(shuffled.actions - expected).max() > 1e-4  # it reads the instruction


def test_the_server_says_what_it_wants_and_what_the_actions_are(robot):
    assert set(robot.hello["observation_spec"]) == {STATE, *labs.CAMERAS, "language"}
    assert robot.hello["observation_spec"][STATE]["dims"] == 14
    assert robot.hello["action_spec"]["action"]["names"] == [f"joint_{k}" for k in range(14)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({STATE: np.zeros(3, np.float32)}, r"observation\.state must have 14 values, not \(3,\)"),
        ({STATE: np.zeros(1, np.float32)}, r"observation\.state must have 14 values, not \(1,\)"),
        ({labs.CAMERAS[0]: np.zeros((32, 32), np.uint8)}, r"images\.top must be a picture \[height, width, 3\] uint8"),
        ({labs.CAMERAS[1]: np.zeros((32, 32, 3))}, r"images\.wrist must be a picture \[height, width, 3\] uint8"),
        (labs.CAMERAS[1], r"an observation has no 'observation\.images\.wrist'"),
    ],
)
def test_a_wrong_observation_is_one_line(robot, source, wrong, message):
    seen = look(source, 0, 0)
    robot.start(seed=0)
    if isinstance(wrong, str):
        del seen[wrong]
    else:
        seen |= wrong
    with pytest.raises(GhostError, match=message):
        robot.plan(seen, labs.TASKS[0])
