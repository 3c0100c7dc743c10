"""The experts do what they are for, recover from a push, and say in which sub-phase they are."""

import numpy as np
import pytest

from ghost.libero.assets import primitive_assets
from ghost.libero.environment import Environment
from ghost.libero.experts import GRASP, PHASES, REACH, expert

pytest_plugins = ("libero_fixtures",)


def attempt(env, task, init_state, *, noise=0.0, push_at=-1, max_steps=450):
    rng = np.random.default_rng(init_state)
    env.reset(init_state, init_state)
    phases = []
    for step in range(max_steps):
        intent = expert(task, env.look())
        phases.append(intent.phase)
        action = intent.action.copy()
        action[:6] += noise * rng.standard_normal(6)
        if push_at <= step < push_at + 10:
            action[:3] = 1.0
        env.step(action)
        if env.success():
            return True, phases
    return False, phases


def test_the_book_into_the_caddy():
    env = Environment(5, primitive_assets())
    done, phases = attempt(env, 5, 41)
    assert done
    assert phases[0] == REACH
    assert GRASP in phases
    assert set(phases) <= set(range(len(PHASES)))
    recovered, _ = attempt(env, 5, 42, push_at=12)
    assert recovered


@pytest.mark.slow
@pytest.mark.parametrize("task", [3, 8])
def test_a_task_of_two_parts_with_noise(task):
    env = Environment(task, primitive_assets())
    results = [attempt(env, task, init_state, noise=0.08) for init_state in (40, 41)]
    assert all(done for done, _ in results)
    for _, phases in results:
        assert phases[0] == 0
        assert max(phases) >= 4  # the second part came after the first


@pytest.mark.slow
@pytest.mark.parametrize("task", [3, 5])
def test_on_liberos_own_assets(task, original_assets):
    env = Environment(task, original_assets)
    assert all(attempt(env, task, init_state)[0] for init_state in (40, 41))
