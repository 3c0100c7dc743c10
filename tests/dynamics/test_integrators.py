"""The integrators against exact solutions, with their order of convergence."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ghost.dynamics.integrators import euler, hamiltonian, rollout, steps_to_converge


def nothing(z):
    return 0 * z


def test_euler_converges_to_the_exponential_at_first_order():
    errors = [abs(rollout(lambda z: -z, np.array(1.0), 1 / n, n)[-1] - np.exp(-1)) for n in (50, 100, 200)]
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.05)
    assert errors[1] / errors[2] == pytest.approx(2, abs=0.05)


def damped_oscillator(steps, *, eta, m, force):
    """z(1) from z = 1 at rest in V = z²/2 under a constant force."""
    z, p = np.array(1.0), np.array(0.0)
    for _ in range(steps):
        z, p = hamiltonian(lambda z: z, lambda z: force + 0 * z, z, p, 1 / steps, eta, m)
    return float(z)


@pytest.mark.parametrize(("eta", "m", "force"), [(0.5, 1.0, 0.0), (0.5, 2.0, 0.3), (0.1, 0.5, -1.0)])
def test_hamiltonian_converges_to_the_damped_oscillator_at_first_order(eta, m, force):
    decay = eta / 2  # dp/dt = -z - ηp, dz/dt = p/m: z'' + η z' + z/m = force/m
    omega = np.sqrt(1 / m - decay**2)
    exact = force + (1 - force) * np.exp(-decay) * (np.cos(omega) + decay / omega * np.sin(omega))
    errors = [abs(damped_oscillator(n, eta=eta, m=m, force=force) - exact) for n in (200, 400)]
    assert errors[1] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)


def test_hamiltonian_follows_the_papers_two_equations():
    z, p = hamiltonian(lambda z: 3 * z, lambda z: z + 1, np.array(2.0), np.array(0.5), 0.1, 0.5, 4.0)
    assert p == pytest.approx(0.5 + 0.1 * (-6.0 - 0.25 + 3.0))
    assert z == pytest.approx(2.0 + 0.1 * p / 4.0)  # the new momentum moves the position


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0.05, 2), st.floats(0.2, 3))
def test_energy_decays_at_the_rate_of_the_damping(z, p, eta, m):
    """d/dt (p²/2m + V) = -η p²/m: what one small step loses, to first order in dt."""

    def energy(z, p):
        return p * p / (2 * m) + z**4 / 4

    def rate(dt):
        after = hamiltonian(lambda z: z**3, nothing, np.array(z), np.array(p), dt, eta, m)
        return float(energy(*after) - energy(z, p)) / dt

    extrapolated = 2 * rate(5e-6) - rate(1e-5)
    assert extrapolated == pytest.approx(-eta * p * p / m, abs=1e-5)


def test_energy_is_spent_in_the_end():
    z, p = np.array(1.5), np.array(0.0)
    for _ in range(40_000):
        z, p = hamiltonian(lambda z: z**3 - z, nothing, z, p, 1e-3, 0.5, 1.0)
    assert z == pytest.approx(1.0, abs=1e-3)  # a bottom of V = z⁴/4 - z²/2
    assert p == pytest.approx(0.0, abs=1e-3)


def test_torch_and_numpy_agree_and_torch_is_differentiable():
    start = np.random.default_rng(0).normal(size=(3, 2))
    arrays = rollout(np.sin, start, 0.1, 7)
    z = torch.tensor(start, requires_grad=True)
    tensors = rollout(torch.sin, z, 0.1, 7)
    np.testing.assert_allclose(np.stack(arrays), torch.stack(tensors).detach().numpy(), rtol=1e-14)
    tensors[-1].sum().backward()
    assert z.grad.abs().min() > 0
    stepped = hamiltonian(torch.sin, torch.cos, torch.tensor(start), torch.tensor(start), 0.1, 0.5, 2.0)
    expected = hamiltonian(np.sin, np.cos, start, start, 0.1, 0.5, 2.0)
    for ours, theirs in zip(stepped, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-14)


def test_rollout_keeps_the_start_and_every_step():
    trajectory = rollout(lambda z: z, np.array(1.0), 0.5, 3)
    assert trajectory == pytest.approx([1.0, 1.5, 2.25, 3.375])
    assert trajectory[1] == euler(lambda z: z, np.array(1.0), 0.5)


def test_steps_to_converge_wants_it_to_stay():
    assert steps_to_converge(np.array([2.0, 0.1, 0.3, 0.1, 0.0]), 0.15) == 3
    assert steps_to_converge(np.array([0.1, 0.1]), 0.15) == 0
    assert math.isnan(steps_to_converge(np.array([2.0, 0.1, 0.3]), 0.15))
