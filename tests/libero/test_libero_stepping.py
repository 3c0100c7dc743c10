"""LIBERO's own reset and steps: as its evaluation has them, to the bit."""

import contextlib
import io

import numpy as np
import pytest

from ghost.libero.assets import package_folder, primitive_assets
from ghost.libero.environment import REST, SETTLE_STEPS, import_libero
from ghost.libero.stepping import environment
from ghost.libero.tasks import TASKS

PIXELS = {"camera_heights": 256, "camera_widths": 256}


def libero_env(task, cameras=False):
    """LIBERO's own class, as evaluations make it; without cameras it needs no OpenGL."""
    import_libero()._assets_path_cache = str(primitive_assets().folder)
    from libero.libero.envs.env_wrapper import ControlEnv

    path = package_folder() / "bddl_files/libero_10" / f"{TASKS[task].file}.bddl"
    with contextlib.redirect_stdout(io.StringIO()):
        return ControlEnv(bddl_file_name=str(path), has_offscreen_renderer=cameras, use_camera_obs=cameras, **PIXELS)


def libero_state(env, init_state, seed, actions):
    env.seed(seed)
    env.reset()
    env.set_init_state(init_state)
    for action in actions:
        env.step(action)
    return env.get_sim_state(), env.sim.model._model.body_pos.copy()


@pytest.mark.slow
@pytest.mark.parametrize("task", [2, 5])
def test_an_episode_is_that_of_liberos_own_class(task):
    """Twice, since its class keeps nothing of the episode before."""
    ours, theirs = environment(task, primitive_assets(), "libero"), libero_env(task)
    moves = np.random.default_rng(0).uniform(-1, 1, (8, 7))
    for init_state, seed in ((3, 7), (4, 8)):
        ours.reset(init_state, seed)
        for move in moves:
            ours.step(move)
        actions = [*[REST] * SETTLE_STEPS, *moves]
        state, places = libero_state(theirs, ours.init_states[init_state], seed, actions)
        assert (ours._libero.sim.get_state().flatten() == state).all()
        assert (ours.model.body_pos == places).all()
        assert ours.success() == theirs.check_success()


@pytest.mark.slow
def test_all_ten_tasks_run_in_liberos_own_class():
    """It looks for more of the assets than our stepping does."""
    for task in range(10):
        env = libero_env(task)
        env.reset()
        env.set_init_state(environment(task, primitive_assets()).init_states[0])
        env.step(REST)
        assert not env.check_success()


@pytest.mark.slow
def test_the_two_steppings_begin_alike_and_end_close_together():
    fast, slow = (environment(5, primitive_assets(), stepping) for stepping in ("fast", "libero"))
    hands = []
    for env in (fast, slow):
        env.reset(3, 7)
        start = env.look()
        for _ in range(20):
            env.step(np.array([0.3, -0.2, 0.1, 0, 0, 0.2, 1.0]))
        hands.append((start.hand, env.look().hand))
    assert hands[0][0] == pytest.approx(hands[1][0], abs=0.02)  # the arm moves while LIBERO's settles
    assert hands[0][1] == pytest.approx(hands[1][1], abs=0.02)
    assert np.linalg.norm(hands[0][1] - hands[0][0]) > 0.05
