import numpy as np
import pytest

from ghost.environments.metaworld import TASKS, World, features, tasks

pytestmark = pytest.mark.slow  # compiles MuJoCo models


def test_the_benchmarks_are_meta_worlds_own():
    assert tasks("ml10")[:3] == ("reach-v3", "push-v3", "pick-place-v3")
    assert set(tasks("ml10")) < set(tasks("ml45"))
    assert not {"bin-picking-v3", "box-close-v3", "hand-insert-v3", "door-lock-v3"} & set(tasks("ml45"))  # held out
    assert {name: len(tasks(name)) for name in TASKS} == TASKS


@pytest.mark.parametrize("task", ["reach-v3", "drawer-close-v3"])
def test_the_expert_gets_it_done_and_a_still_arm_does_not(task):
    world = World(task)
    seen, done = world.reset(5), False
    for _ in range(150):
        seen, _, success = world.step(world.expert(seen))
        done |= success
    assert done
    world.reset(5)
    assert not any(world.step(np.zeros(4))[2] for _ in range(20))


def test_a_seed_draws_the_variation():
    world = World("reach-v3")
    first, other, again = (world.reset(seed) for seed in (1, 2, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first[36:], other[36:])  # the goal, which is not hidden
    assert first[36:].any()


def test_features_are_centred_positions_and_offsets():
    seen = World("reach-v3").reset(1)
    made = features(np.stack([seen, seen]))
    assert made.shape == (2, 51)
    np.testing.assert_allclose(made[0, 39:42], 5 * (seen[4:7] - seen[:3]), rtol=1e-5)  # first object from the hand
    np.testing.assert_allclose(made[0, 42:45], 5 * (seen[36:] - seen[:3]), rtol=1e-5)  # goal from the hand
    assert not made[0, 48:].any()  # there is no second object
    assert np.abs(made).max() < 5
