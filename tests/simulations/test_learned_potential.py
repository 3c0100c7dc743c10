"""The learned potential at a tiny size: behaviour alone carves basins where the demonstrator has them."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch

from ghost.dynamics.networks import Potential
from ghost.dynamics.potentials import ThreeWells
from ghost.runs.progress import Progress
from ghost.simulations.learned_potential import (
    Settings,
    act,
    all_contexts,
    demonstrate,
    distances_to_match,
    run,
)

SETTINGS = Settings(
    alpha=0.1,
    sigma=0.6,
    collapsed_weight=0.05,
    reach=1.5,
    train_per_context=48,
    heldout_per_context=32,
    horizon_s=20.0,
    demonstrator_dt=0.1,
    hidden=(24, 24),
    epochs=250,
    learning_rate=1e-2,
    euler_steps=5,
    dt=0.2,
    tolerance=0.15,
    max_control_steps=4,
    grid_points=11,
)
TINY = replace(SETTINGS, epochs=5, train_per_context=4, heldout_per_context=4, hidden=(4,))


@pytest.fixture(scope="module")
def outcome():
    return run(SETTINGS, seed=0, progress=Progress(stream=io.StringIO()))


def test_it_learns_far_better_than_the_mean(outcome):
    rows = {(m.condition, m.metric): m.value for m in outcome.measured}
    assert rows["train", "final_loss"] < 0.1 * rows["heldout", "predict_the_mean_loss"]
    assert rows["heldout", "loss"] < 0.5 * rows["heldout", "predict_the_mean_loss"]


def test_basins_emerge_where_the_demonstrator_has_them(outcome):
    rows = {(m.condition, m.metric): m.value for m in outcome.measured}
    assert rows["c1", "basins"] >= 3
    assert rows["c1", "largest_distance"] < 0.15


def test_found_minima_are_minima_of_the_stored_weights(outcome):
    model = Potential(2, 3, SETTINGS.hidden)
    model.load_state_dict(
        {k.removeprefix("model/"): torch.from_numpy(v) for k, v in outcome.arrays.items() if k[:6] == "model/"}
    )
    minima = torch.from_numpy(outcome.arrays["c1/learned_minima"])
    c = torch.ones(len(minima), 3, dtype=torch.float64)
    model = model.double()
    assert model.gradient(minima, c).abs().max() < 1e-8
    for angle in np.linspace(0, 2 * np.pi, 8):
        step = 0.02 * torch.tensor([np.cos(angle), np.sin(angle)])
        assert torch.all(model(minima + step, c) > model(minima, c))


def test_demonstrations_end_where_the_demonstrator_settles():
    z0, c, action = demonstrate(SETTINGS, np.random.default_rng(3), 8)
    assert z0.shape == action.shape == (32, 2)
    np.testing.assert_array_equal(c[::8], all_contexts(SETTINGS))
    slope = np.linalg.norm(ThreeWells(0.1, 0.6).gradient(action, c), axis=-1)
    assert np.median(slope) < 1e-6


def test_policy_is_n_euler_steps_down_the_potential():
    model = Potential(2, 3, (6,))
    z, c = torch.randn(5, 2), torch.rand(5, 3)
    expected = z
    for _ in range(SETTINGS.euler_steps):
        leaf = expected.detach().requires_grad_()
        (slope,) = torch.autograd.grad(model(leaf, c).sum(), leaf)
        expected = leaf - SETTINGS.dt * slope
    torch.testing.assert_close(act(model, SETTINGS, z, c), expected)


def test_a_basin_that_was_not_learned_has_no_distance():
    analytic = np.array([[-1.0, 1.0], [1.0, 1.0], [0.0, -1.0]])
    learned = np.array([[0.1, -1.0], [-1.0, 1.2]])
    np.testing.assert_allclose(distances_to_match(analytic, learned), [0.2, np.nan, 0.1])
    assert np.isnan(distances_to_match(analytic, learned[:0])).all()


def test_same_bytes_twice_and_another_seed_differs():
    def weights(seed):
        arrays = run(TINY, seed=seed, progress=Progress(stream=io.StringIO())).arrays
        return {name: value.tobytes() for name, value in arrays.items()}

    torch.manual_seed(1)
    first = weights(0)
    torch.manual_seed(2)  # the global generator must not matter
    assert weights(0) == first
    assert weights(1)["model/layers.0.weight"] != first["model/layers.0.weight"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate .* got 0.0"),
        ({"epochs": 0}, "epochs .* got 0"),
        ({"hidden": (8, 0)}, "hidden .* got .*8, 0"),
        ({"horizon_s": 0.01}, "horizon_s .* got 0.01"),
        ({"collapsed_weight": 1.5}, "collapsed_weight .* got 1.5"),
    ],
)
def test_settings_say_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **wrong)
