"""The closed forms of the ghost against quadrature, adaptive integration and root finding."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from ghost.dynamics.normal_form import dwell_bound, passage_time, saddle_node
from ghost.dynamics.potentials import DoubleWell

exponent = st.floats(-4, 1)


@given(exponent, st.floats(-3, 3), st.floats(0.01, 3))
def test_passage_time_is_the_bottleneck_integral(log_mu, a, width):
    mu = 10**log_mu
    peak = [0.0] if a < 0 < a + width else None
    integral, _ = quad(lambda z: 1 / (mu + z * z), a, a + width, points=peak, limit=200)
    assert passage_time(mu, a, a + width) == pytest.approx(integral, rel=1e-6)


def test_passage_time_is_what_integrating_the_flow_takes():
    time = passage_time(0.01, -1.0, 2.0)
    end = solve_ivp(lambda _, z: 0.01 + z**2, (0, time), [-1.0], rtol=1e-11, atol=1e-13).y[0, -1]
    assert end == pytest.approx(2.0, rel=1e-6)


@given(exponent)
def test_limit_is_the_integral_over_the_whole_line(log_mu):
    mu = 10**log_mu
    root = math.sqrt(mu)
    integral, _ = quad(lambda x: root / (mu + (root * x) ** 2), -math.inf, math.inf)  # z = √μ x
    assert passage_time(mu) == pytest.approx(integral, rel=1e-8)
    assert passage_time(mu) == math.pi / root


@given(exponent, st.floats(1.001, 100), st.floats(-0.99, 3))
def test_lemma_1_bound_is_never_above_the_exact_dwell(log_mu, delta_ratio, drift_ratio):
    mu = 10**log_mu
    half = math.sqrt(mu * (delta_ratio - 1))
    dwell = passage_time(mu * (1 + drift_ratio), -half, half)
    assert dwell >= dwell_bound(2 * half, delta_ratio * mu, abs(drift_ratio) * mu) * (1 - 1e-12)


@given(st.floats(0.1, 2), st.floats(0.5, 3))
def test_saddle_node_is_where_the_basin_dies(stiffness, d):
    well = DoubleWell(stiffness, 1.0, d)
    node = saddle_node(well)
    assert len(well.minima(well.context(0.999 * node.h_c))) == 2
    assert len(well.minima(well.context(1.001 * node.h_c))) == 1
    flat = brentq(lambda z: float(well.curvature(z)), -d, 0.0)  # U'' = 0
    assert node.z == pytest.approx(flat)
    assert float(well.gradient(flat, well.context(node.h_c))) == pytest.approx(0, abs=1e-9 * node.h_c)


@given(st.floats(0.1, 2), st.floats(0.5, 3), st.floats(1e-3, 0.1))
def test_normal_form_of_the_double_well(stiffness, d, excess):
    """-U' = excess + a x² + O(x³) around the saddle-node."""
    well = DoubleWell(stiffness, 1.0, d)
    node = saddle_node(well)
    x = 1e-3 * d
    flow = -well.gradient(np.array([node.z - x, node.z, node.z + x]), well.context(node.h_c + excess))
    assert flow[1] == pytest.approx(excess, rel=1e-6)
    assert (flow[0] + flow[2] - 2 * flow[1]) / (2 * x * x) == pytest.approx(node.a, rel=1e-4)
    assert node.passage_time_limit(excess) == pytest.approx(math.pi / math.sqrt(node.a * excess))
