"""The analytic potentials against finite differences, scipy's minimisers, and the paper's Lyapunov and Lemma 2."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from ghost.dynamics.integrators import euler
from ghost.dynamics.potentials import CENTRES, DoubleWell, ThreeWells, grid

WELLS = ThreeWells(alpha=0.1, sigma=0.6)
WELL = DoubleWell(stiffness=0.3, tilt=3.0, d=1.5)
ALL_ACTIVE = np.ones(3)

coordinate = st.floats(-1.8, 1.8)
weights = st.lists(st.floats(0, 1.5), min_size=3, max_size=3).map(np.array)
point = st.tuples(coordinate, coordinate).map(np.array)


def differences(f, z, h=1e-5):
    """Central differences along both axes; the new axis comes last."""
    return np.stack([(f(z + h * e) - f(z - h * e)) / (2 * h) for e in np.eye(2)], axis=-1)


@given(point, weights)
def test_three_wells_derivatives_match_finite_differences(z, w):
    np.testing.assert_allclose(WELLS.gradient(z, w), differences(lambda z: WELLS.value(z, w), z), atol=1e-8)
    np.testing.assert_allclose(WELLS.hessian(z, w), differences(lambda z: WELLS.gradient(z, w), z), atol=1e-8)


@given(coordinate, st.floats(0, 1))
def test_double_well_derivatives_match_finite_differences(z, c):
    h = 1e-5
    slope = (WELL.value(z + h, c) - WELL.value(z - h, c)) / (2 * h)
    bend = (WELL.gradient(z + h, c) - WELL.gradient(z - h, c)) / (2 * h)
    np.testing.assert_allclose([WELL.gradient(z, c), WELL.curvature(z)], [slope, bend], atol=1e-7)


def test_leading_axes_broadcast():
    z, w = np.random.default_rng(0).normal(size=(4, 5, 2)), np.random.default_rng(1).random((5, 3))
    assert WELLS.value(z, w).shape == (4, 5)
    assert WELLS.gradient(z, w).shape == (4, 5, 2)
    assert WELLS.hessian(z, w).shape == (4, 5, 2, 2)
    np.testing.assert_allclose(WELLS.gradient(z, w)[2, 3], WELLS.gradient(z[2, 3], w[3]))


def test_basins_of_the_paper_lie_at_1_9():
    assert WELL.minima(0.0) == pytest.approx([-1.9], abs=0.05)
    assert WELL.minima(1.0) == pytest.approx([1.9], abs=0.05)


@given(st.floats(0, 1))
def test_double_well_minima_are_those_scipy_finds(c):
    found = WELL.minima(c)
    for start in (-2.5, 2.5):
        best = minimize_scalar(lambda z: float(WELL.value(z, c)), bracket=(start, start * 0.99), tol=1e-10)
        assert np.min(np.abs(found - best.x)) < 1e-4
    assert np.all(WELL.curvature(found) > 0)


@given(st.floats(-4, 4))
def test_context_inverts_force(h):
    assert WELL.force(WELL.context(h)) == pytest.approx(h, abs=1e-12)


@pytest.mark.parametrize("w", [(1, 1, 1), (0.05, 1, 1), (1, 1, 0.05), (0.4, 0.9, 1.2)])
def test_three_wells_minima_are_those_scipy_finds(w):
    w = np.array(w)
    ends = [
        minimize(WELLS.value, z, args=(w,), jac=lambda z, w: WELLS.gradient(z, w), tol=1e-12).x for z in grid(1.6, 7)
    ]
    ends = [z for z in ends if np.linalg.eigvalsh(WELLS.hessian(z, w))[0] > 1e-3]  # BFGS may stop on a saddle
    found = WELLS.minima(w)
    distance = np.linalg.norm(np.array(ends)[:, None] - found, axis=-1)
    assert distance.min(axis=1).max() < 1e-4, "scipy found one that we missed"
    assert distance.min(axis=0).max() < 1e-4, "we found one that scipy did not"


@given(point, weights, st.floats(1e-4, 0.05))
def test_potential_never_rises_along_gradient_flow(z, w, dt):
    after = euler(lambda z: -WELLS.gradient(z, w), z, dt)
    assert WELLS.value(after, w) <= WELLS.value(z, w) + 1e-14


@given(point, weights, st.floats(0, 2 * np.pi), st.floats(0, 0.99))
def test_lyapunov_derivative(z, w, angle, share):
    """dV/dt = -|∇U|² + ∇U·b along dz/dt = -∇U + b, and it is negative where |b| < |∇U|."""
    slope = WELLS.gradient(z, w)
    b = share * np.linalg.norm(slope) * np.array([np.cos(angle), np.sin(angle)])
    claimed = -slope @ slope + slope @ b
    velocity, h = -slope + b, 1e-5
    measured = (WELLS.value(z + h * velocity, w) - WELLS.value(z - h * velocity, w)) / (2 * h)
    assert claimed == pytest.approx(measured, abs=1e-8)
    if np.linalg.norm(slope) > 1e-6:
        assert claimed < 0


# Lemma 2, with the three well weights as the context. Equal weights make B1 and B2 tie, so B1 starts weaker.
START = np.array([0.6, 1.0, 1.0])


def distance_to_bifurcation(k):
    """The shortest change of the weights that makes basin k's smallest Hessian eigenvalue zero, and that change.

    Each direction is followed outwards with the minimum in tow (Newton); the best one is then polished by SLSQP
    on the fold conditions ∇U = 0, det H = 0.
    """
    directions = np.random.default_rng(k).normal(size=(400, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    minima = WELLS.minima(START)
    z = np.repeat(minima[[np.linalg.norm(minima - CENTRES[k], axis=-1).argmin()]], len(directions), axis=0)
    length = np.full(len(directions), np.inf)
    at = z.copy()
    alive = np.ones(len(directions), bool)
    for r in np.arange(0.01, 1.5, 0.01):
        w = START + r * directions[alive]
        moved = z[alive]
        for _ in range(4):
            hessian = WELLS.hessian(moved, w)
            moved = moved - np.linalg.solve(hessian, WELLS.gradient(moved, w)[..., None])[..., 0]
        jumped = np.linalg.norm(moved - z[alive], axis=-1) > 0.2
        lost = jumped | (np.linalg.eigvalsh(WELLS.hessian(moved, w))[:, 0] <= 0)
        index = np.flatnonzero(alive)
        length[index[lost]], at[index[lost]] = r, z[index[lost]]
        z[index[~lost]] = moved[~lost]
        alive[index[lost]] = False
    best = length.argmin()
    fold = minimize(
        lambda x: np.sum((x[2:] - START) ** 2),
        np.concatenate([at[best], START + length[best] * directions[best]]),
        constraints=[
            {"type": "eq", "fun": lambda x: WELLS.gradient(x[:2], x[2:])},
            {"type": "eq", "fun": lambda x: np.linalg.det(WELLS.hessian(x[:2], x[2:]))},
        ],
    )
    assert fold.success
    shortest = np.linalg.norm(fold.x[2:] - START)
    assert shortest == pytest.approx(length[best], abs=0.05)
    return shortest, fold.x[2:] - START


@pytest.fixture(scope="module")
def bifurcations():
    return [distance_to_bifurcation(k) for k in range(3)]


@settings(max_examples=40, deadline=None)
@given(direction=point, lift=st.floats(-1, 1), share=st.floats(0.3, 0.99))
def test_lemma_2_at_most_one_basin_disappears(bifurcations, direction, lift, share):
    second = sorted(length for length, _ in bifurcations)[1]
    change = np.array([*direction, lift]) + 1e-6
    change *= share * second / np.linalg.norm(change)
    assert len(WELLS.minima(START + change)) >= 2


def test_lemma_2_is_not_empty_and_fails_beyond_its_bound(bifurcations):
    (first, nearest), (second, _) = sorted(bifurcations, key=lambda b: b[0])[:2]
    assert first < 0.9 * second
    assert len(WELLS.minima(START)) == 3
    assert len(WELLS.minima(START + 1.05 * nearest)) == 2, "the nearest bifurcation removes its basin"
    assert len(WELLS.minima(START + 0.95 * nearest)) == 3
    both = np.array([-0.5, -0.9, 0.0])
    assert np.linalg.norm(both) > second
    assert len(WELLS.minima(START + both)) == 1, "beyond the bound two basins can go at once"
