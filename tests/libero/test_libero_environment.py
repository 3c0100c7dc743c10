"""Our stepping: robosuite's control law, and episodes that depend on nothing but what they are given."""

import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from ghost.errors import GhostError
from ghost.libero.assets import primitive_assets
from ghost.libero.environment import Environment, build
from ghost.libero.tasks import THINGS


@pytest.fixture(scope="module")
def env():
    return Environment(5, primitive_assets())


def play(env, init_state, seed, steps=15):
    env.reset(init_state, seed)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        env.step(rng.uniform(-1, 1, 7))
    return np.concatenate([env.data.qpos, env.data.qvel])


@pytest.mark.slow  # compiles robosuite's part
def test_the_torques_are_robosuites(env):
    """Against robosuite's own OSC_POSE at states along a random movement."""
    robot = env._libero.robots[0]
    controller = robot.controller
    rng = np.random.default_rng(1)
    env.reset(3, 0)
    for _ in range(5):
        env.step(rng.uniform(-1, 1, 7))
        action = rng.uniform(-0.5, 0.5, 6)
        controller.initial_joint = env._posture
        controller.update(force=True)
        controller.set_goal(action)
        expected = controller.run_controller()
        env._drive_arm(controller.goal_pos, controller.goal_ori)
        found = env.data.ctrl[robot._ref_joint_actuator_indexes]
        assert found == pytest.approx(np.clip(expected, *robot.torque_limits), rel=1e-6, abs=1e-6)


def test_an_episode_depends_on_nothing_but_what_it_is_given(env):
    first = play(env, 40, 7)
    play(env, 41, 8, steps=5)  # something else in between
    assert (play(env, 40, 7) == first).all()
    assert (play(Environment(5, primitive_assets()), 40, 7) == first).all()
    assert (play(env, 42, 7) != first).any()


def test_the_seed_places_the_fixtures(env):
    env.reset(0, 1)
    there = env.look().at("caddy").copy()
    env.reset(0, 2)
    assert 0 < np.linalg.norm(env.look().at("caddy") - there) < 0.05


def starts(env, init_states, seeds):
    found = []
    for init_state, seed in zip(init_states, seeds, strict=True):
        env.reset(init_state, seed)
        found.append(env.start)
    return found


def test_official_init_states_are_all_different_where_no_furniture_is_left_to_move():
    """In task 0 the seed moves nothing, so only the init state tells trials apart."""
    basket = Environment(0, primitive_assets())
    assert len(set(starts(basket, range(50), [0] * 50))) == 50
    assert len(set(starts(basket, [3, 3], [1, 2]))) == 1
    with pytest.raises(IndexError):
        basket.reset(50, 0)


def test_a_drawn_scene_depends_on_its_seed_alone_and_looks_like_an_official_one(env):
    """LIBERO's own reset draws both: objects from the same regions, and the arm with the same noise."""
    first = starts(env, [None] * 20, range(20))
    assert len(set(first)) == 20
    assert starts(env, [None, 7, None], [4, 0, 3])[2] == first[3]
    drawn = []
    for seed in range(50):
        env.reset(None, seed)
        drawn.append(np.concatenate([env.look().at("book")[:2], env._posture]))
    book = env.model.jnt_qposadr[env.model.joint("black_book_1_joint0").id]
    official = env.init_states[:, 1 + np.array([book, book + 1, *env._qpos])]
    assert np.mean(drawn, axis=0) == pytest.approx(official.mean(axis=0), abs=0.015)
    assert np.std(drawn, axis=0) / official.std(axis=0) == pytest.approx(np.ones(9), abs=0.4)


def test_the_global_generator_is_left_alone(env):
    np.random.seed(5)
    expected = np.random.rand()
    np.random.seed(5)
    env.reset(0, 1)
    assert np.random.rand() == expected


def test_what_is_seen(env):
    env.reset(0, 0)
    look = env.look()
    assert {name for name, thing in zip(THINGS, look.things, strict=True) if thing.any()} == {
        "yellow_mug",
        "book",
        "caddy",
    }
    assert look.axes("book").T @ look.axes("book") == pytest.approx(np.eye(3), abs=1e-9)
    assert 0.07 < look.opening < 0.081


def test_the_physics_is_that_of_the_whole_model(env):
    """What is only seen is left out of the model; the scene moves as with it, to the bit."""
    whole = build(env.task, env.assets, seen=True).sim.model._model
    assert whole.nmesh > 2 * env.model.nmesh
    found = []
    for model in (whole, env.model):
        data = mujoco.MjData(model)
        model.body_pos[:], model.body_quat[:] = env.model.body_pos, env.model.body_quat
        data.qpos[:] = env.init_states[3][1 : 1 + model.nq]
        rng = np.random.default_rng(0)
        for _ in range(200):
            data.ctrl[:] = rng.uniform(-1, 1, model.nu) * 20  # the arm falls on the table
            mujoco.mj_step(model, data)
        found.append(np.concatenate([data.qpos, data.qvel, [data.ncon]]))
    assert (found[0] == found[1]).all()


def test_without_opengl_a_picture_is_one_line(env, monkeypatch):
    def no_library(*arguments):
        raise AttributeError("'NoneType' object has no attribute 'eglQueryString'")

    monkeypatch.setattr("mujoco.Renderer", no_library)
    monkeypatch.setenv("MUJOCO_GL", "egl")
    with pytest.raises(GhostError, match=r"no OpenGL for pictures \(MUJOCO_GL='egl'\): 'NoneType'"):
        env.render("agentview")


@pytest.mark.slow
def test_cameras_see_the_scene():
    """In a process of its own, since OpenGL is chosen when MuJoCo is imported."""
    code = (
        "from ghost.libero.assets import primitive_assets;"
        "from ghost.libero.environment import IMAGE, Environment; from ghost.libero.tasks import CAMERAS;"
        "env = Environment(5, primitive_assets()); env.reset(0, 0);"
        "images = [env.render(camera) for camera in CAMERAS];"
        "assert all(image.shape == (IMAGE, IMAGE, 3) and image.std() > 5 for image in images), 'blank';"
        "[env.step([0, 1, 0, 0, 0, 0, 0]) for _ in range(10)];"
        "assert all((env.render(camera) != image).any() for camera, image in zip(CAMERAS, images)), 'blank: frozen'"
    )
    for backend in ("egl", "osmesa"):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "MUJOCO_GL": backend}, capture_output=True
        )
        if done.returncode == 0:
            return
        assert b"blank" not in done.stderr
    pytest.skip("no OpenGL here: apt-get install libosmesa6 libegl1")
