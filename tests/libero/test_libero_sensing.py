"""What a policy in the loop sees and does is what its training data show and mean."""

import numpy as np
import pytest

from ghost.data.normalisation import Scale, numbered
from ghost.errors import GhostError
from ghost.libero.assets import primitive_assets
from ghost.libero.conventions import find_convention, proprioception
from ghost.libero.sensing import Senses
from ghost.libero.stepping import environment
from ghost.runs.records import open_runs
from ghost.steps.cache_features import open_demos

pytest_plugins = ("libero_fixtures",)
LOW, HIGH = np.array([0.0, -2, 1, 0, 0, 0, 0]), np.array([1.0, 2, 1, 3, 3, 3, 1])


@pytest.fixture(scope="module")
def env():
    made = environment(5, primitive_assets())
    made.reset(3, 0)
    return made


def scale(low, high):
    return Scale(numbered("x", len(low)), low, high)


def senses(name="ipec", **more):
    return Senses(find_convention(name), (), 64, **more)


def test_the_state_is_normalised_and_padded(env):
    raw = senses().sense(env)
    assert list(raw) == ["observation.state"]
    low, high = raw["observation.state"] - 1, raw["observation.state"] + 3
    seen = senses(state=scale(low, high)).observations([raw, raw], ["a", "b"], np.zeros((2, 2), np.int64))
    assert seen.state.shape == (2, 64)
    assert seen.state[1, :8] == pytest.approx(np.full(8, -0.5), abs=1e-6)
    assert not seen.state[:, 8:].any()
    assert (seen.instructions, seen.cameras) == (("a", "b"), ())
    assert raw["observation.state"] == pytest.approx(proprioception(env), abs=1e-6)


def test_a_chunk_is_undone_and_its_gripper_is_robosuites():
    """IPEC's gripper is 1 for an open hand, and 0 for a closed one; -1 and 1 of the normalised action are 0 and 1."""
    chunk = np.zeros((2, 32))
    chunk[:, :7] = [[1, -1, 0.3, 0, 0, 0, 1], [-1, 1, 0.9, 0, 0, 0, -1]]
    found = senses(action=scale(LOW, HIGH)).command(chunk)
    assert found.shape == (2, 7)
    assert found == pytest.approx(np.array([[1, -2, 1, 1.5, 1.5, 1.5, -1], [0, 2, 1, 1.5, 1.5, 1.5, 1]]))
    assert senses("openpi").command(chunk) == pytest.approx(chunk[:, :7])
    raw = np.random.default_rng(0).uniform(LOW, HIGH, (5, 7))
    own = scale(LOW, HIGH)
    assert own.undo(own.apply(raw)) == pytest.approx(raw, abs=1e-6)


def test_an_observation_that_lacks_something_is_one_line(env):
    with pytest.raises(GhostError, match=r"no 'observation\.images\.image'"):
        Senses(find_convention("ipec"), ("observation.images.image",), 64).observations(
            [senses().sense(env)], ["a"], np.zeros((1, 2), np.int64)
        )


@pytest.mark.slow
def test_scripted_demonstrations_go_the_same_way(env, libero_runs):
    """The stand-in's own state and scene, without normalisation and without pictures."""
    (features,) = open_runs(libero_runs["features"])
    (demos,) = open_runs(libero_runs["demos"])
    own, raw = Senses.of(features), Senses.of(features).sense(env)
    assert (own.convention, own.cameras) == (find_convention("ghost"), ())
    seen = own.observations([raw], ["a"], np.zeros((1, 2), np.int64))
    recorded = open_demos(demos).episode(0)
    assert seen.columns.keys() == {name for name in recorded.columns if name.startswith("observation.scene")}
    assert seen.state[0, :13].tolist() == env.look().columns()["observation.state"].tolist()
    chunk = np.random.default_rng(0).normal(size=(16, 7)).astype(np.float32)
    assert own.command(chunk).tolist() == chunk.astype(np.float64).tolist()
