"""What the simulation shows and takes, written as public data sets write it."""

import os
import subprocess
import sys
from ctypes.util import find_library

import numpy as np
import pytest

from ghost.errors import GhostError
from ghost.libero.assets import primitive_assets
from ghost.libero.conventions import CONVENTIONS, find_convention, hand_pose, proprioception
from ghost.libero.stepping import environment


@pytest.fixture(scope="module")
def env():
    return environment(5, primitive_assets())


def test_the_state_is_that_of_robosuites_sensors(env):
    from robosuite.utils.transform_utils import quat2axisangle

    rng = np.random.default_rng(0)
    env.reset(3, 0)
    states, rotations = [], []
    for _ in range(12):
        env.step(np.array([*rng.uniform(-1, 1, 3), *rng.uniform(-0.5, 0.5, 3), rng.choice([-1.0, 1.0])]))
        seen = env._libero._get_observations(force_update=True)
        rotation = quat2axisangle(seen["robot0_eef_quat"].copy())
        expected = np.concatenate([seen["robot0_eef_pos"], rotation, seen["robot0_gripper_qpos"]])
        states.append(proprioception(env))
        rotations.append(env.data.body("robot0_right_hand").xmat.reshape(3, 3).copy())
        assert states[-1] == pytest.approx(expected, abs=1e-9)
    position, rotation, opening = hand_pose(np.array(states))
    assert rotation == pytest.approx(np.array(rotations), abs=1e-6)
    assert opening[-1] == pytest.approx(env.look().opening, abs=1e-12)
    assert position[-1] == pytest.approx(env.look().hand, abs=1e-12)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_each_convention_opens_and_closes_the_hand(env, name):
    """With the wrong numbers the hand would do the opposite."""
    convention = find_convention(name)
    for recorded, wide in ((convention.opens, True), (convention.closes, False)):
        env.reset(3, 0)
        for _ in range(15):
            env.step(convention.command(np.array([0, 0, 0, 0, 0, 0, recorded])))
        assert (env.look().opening > 0.07) == wide
    actions = np.zeros((2, 7))
    actions[:, 6] = convention.opens, convention.closes
    assert convention.closing(actions).tolist() == [False, True]


def test_an_unknown_convention_or_camera_is_one_line(env):
    with pytest.raises(GhostError, match=r"no convention 'ipek'.*ipec"):
        find_convention("ipek")
    with pytest.raises(GhostError, match="no camera 'top' in LIBERO"):
        find_convention("ipec").picture(env, "observation.images.top")


PICTURES = """
import numpy as np
from test_libero_stepping import libero_env
from ghost.libero.assets import primitive_assets
from ghost.libero.conventions import find_convention
from ghost.libero.environment import REST, SETTLE_STEPS
from ghost.libero.stepping import environment

ours, theirs = environment(2, primitive_assets(), "libero"), libero_env(2, cameras=True)
theirs.seed(7)
theirs.reset()
theirs.set_init_state(ours.init_states[3])
for _ in range(SETTLE_STEPS):
    seen, *_ = theirs.step(REST)
ours.reset(3, 7)
convention = find_convention("ipec")
for column, camera in (("image", "agentview"), ("wrist_image", "robot0_eye_in_hand")):
    expected = seen[f"{camera}_image"][::-1, ::-1].astype(int)  # as public data sets and evaluations have it
    found = convention.picture(ours, f"observation.images.{column}").astype(int)
    for name, image in (("as recorded", found), ("mirrored again", found[:, ::-1]), ("upside down", found[::-1])):
        print(column, name, (np.abs(image - expected).max(axis=2) <= 8).mean(), sep=",")
"""


@pytest.mark.slow
def test_pictures_are_those_of_liberos_own_cameras(root):
    """In a process of its own, since OpenGL is chosen when MuJoCo is imported."""
    if not find_library("OSMesa"):
        pytest.skip("no OpenGL here: apt-get install libosmesa6")
    paths = os.pathsep.join(str(root / folder) for folder in ("src", "tests/libero"))
    done = subprocess.run(
        [sys.executable, "-c", PICTURES],
        env={**os.environ, "MUJOCO_GL": "osmesa", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    shares = {tuple(line.split(",")[:2]): float(line.split(",")[2]) for line in done.stdout.splitlines() if "," in line}
    for column in ("image", "wrist_image"):
        assert shares[column, "as recorded"] > 0.995
        assert shares[column, "mirrored again"] < 0.97
        assert shares[column, "upside down"] < 0.97
