import io

import numpy as np
import pytest
import tiny
import torch

from ghost.evaluations import switching
from ghost.evaluations.predict import per_task
from ghost.evaluations.switching import Settings, alternate, evaluate, spread, swap, transitions
from ghost.runs.progress import Progress


@pytest.fixture
def cache():
    return tiny.cache()


@pytest.fixture
def small_ghost():
    return tiny.small_ghost()


@pytest.fixture
def small_mlp():
    return tiny.small_mlp()


SETTINGS = Settings(
    split="sample",
    ghost="ghost",
    mlp="mlp",
    transitions=20,
    hold=4,
    shortest_interval=2,
    longest_interval=4,
    embedded=30,
)


@pytest.fixture
def outcome(cache, small_ghost, small_mlp, monkeypatch):
    monkeypatch.setattr(switching, "embed", lambda points, seed: points[:, :2])  # t-SNE is sklearn's, and slow
    decoders = {"ghost": small_ghost, "mlp": small_mlp}
    return evaluate(SETTINGS, cache, decoders, seed=0, progress=Progress(stream=io.StringIO()))


def test_every_row_is_there_and_finite(outcome, cache):
    found = {(m.condition, m.metric): m.value for m in outcome.measured}
    assert len(found) == len(outcome.measured)
    assert np.isfinite(list(found.values())).all()
    assert {f"every_{k}" for k in (2, 3, 4)} <= {condition for condition, _ in found}
    assert {(task, "latent_compression") for task in cache.task_names} <= set(found)
    assert next(m.n for m in outcome.measured if m.condition == "swap") == 6  # ordered pairs of three tasks
    assert outcome.arrays["transitions/mse"].shape == (4,)


def test_boundary_and_steady_agree_in_expectation_without_a_carried_state():
    rng = np.random.default_rng(0)
    error = rng.exponential(size=300)
    positions = {name: np.arange(k, 300, 3) for k, name in enumerate("abc")}
    many = Settings("sample", "g", "m", transitions=20_000, hold=4, shortest_interval=2, longest_interval=2, embedded=1)
    after, held = transitions(error, positions, many, rng)
    by_task = np.mean([error[where].mean() for where in positions.values()])
    assert after[:, 0].mean() == pytest.approx(by_task, rel=0.02)
    assert held.mean() == pytest.approx(by_task, rel=0.02)
    assert held.shape == (20_000, 4)


def test_alternation_never_stays():
    error = np.repeat([0.0, 1.0, 2.0], 5)
    positions = {name: np.arange(5) + 5 * k for k, name in enumerate("abc")}
    found = alternate(error, positions, 3, 200, np.random.default_rng(1)).reshape(200, 3)
    assert (found == found[:, :1]).all()
    assert (np.diff(found[:, 0]) != 0).all()


class Identity:
    """z* is the action chunk itself."""

    def parameters(self):
        return [torch.zeros(())]

    def readout(self, z):
        return z.view(len(z), 4, 20)


def test_swap_of_an_identity_is_the_distance_between_the_tasks(cache):
    test = cache.split("sample")[1]
    positions = per_task(cache, test)
    means = np.stack([cache.action[cache.task == k].mean(axis=0) for k in range(3)])
    cache.action[:] = means[cache.task]  # every sample is its task's mean
    latent = cache.action[test].reshape(len(test), -1)
    rows = swap(Identity(), latent, np.full(len(test), 0.5), cache, test, positions, np.random.default_rng(0))
    found = {(row.condition, row.metric): row.value for row in rows}
    real = means[..., cache.action_mask]
    between = np.mean([((real[i] - real[j]) ** 2).mean() for i in range(3) for j in range(3) if i != j])
    assert found["swap", "mse"] == pytest.approx(between, rel=1e-5)
    assert found["swap", "inflation"] == pytest.approx(between / 0.5, rel=1e-5)
    assert found["swap", "inflation_of_means"] == pytest.approx(between / 0.5, rel=1e-5)
    assert found["within_task", "mse"] == 0


def test_spread_is_the_total_variance():
    points = np.random.default_rng(0).normal(size=(50, 3))
    assert spread(points) == pytest.approx(points.var(axis=0).sum())


def test_embedding_repeats():
    points = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).numpy()
    assert switching.embed(points, 0).shape == (20, 2)
    assert np.array_equal(switching.embed(points, 0), switching.embed(points, 0))


@pytest.mark.parametrize(("name", "value"), [("hold", 1), ("transitions", 0), ("longest_interval", 1)])
def test_settings_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        Settings(**{**vars(SETTINGS), name: value})
