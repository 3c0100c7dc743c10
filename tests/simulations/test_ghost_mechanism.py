"""The ghost mechanism: its region, dwell and barrier against independent formulas and an adaptive solver."""

import io
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from ghost.dynamics.normal_form import saddle_node
from ghost.dynamics.potentials import DoubleWell
from ghost.runs.progress import Progress
from ghost.simulations.ghost_mechanism import Settings, run

SETTINGS = Settings(stiffness=0.3, tilt=3.0, d=1.5, excess=0.05, delta=0.2, dt=0.002, duration_s=15.0, tolerance=0.15)
WELL = DoubleWell(0.3, 3.0, 1.5)
GHOST = WELL.context(saddle_node(WELL).h_c + SETTINGS.excess)


@pytest.fixture(scope="module")
def outcome():
    return run(SETTINGS, seed=0, progress=Progress(stream=io.StringIO()))


@pytest.fixture(scope="module")
def rows(outcome):
    return {(m.condition, m.metric): m.value for m in outcome.measured}


def test_barrier_is_the_quartics(rows):
    assert rows["stable", "barrier_height"] == pytest.approx(0.3 * 1.5**4)


def test_dwell_is_the_time_the_flow_needs_from_edge_to_edge(rows, outcome):
    left, right = outcome.arrays["ghost/edges"]
    exact, _ = quad(lambda z: -1 / WELL.gradient(z, GHOST), left, right)
    assert rows["ghost", "dwell_s"] == pytest.approx(exact, rel=2e-3)
    assert rows["ghost", "dwell_s"] > rows["ghost", "lemma1_bound_s"]


def test_ghost_is_where_the_gradient_is_below_delta_with_no_equilibrium(outcome):
    left, right = outcome.arrays["ghost/edges"]
    inside = np.abs(WELL.gradient(np.linspace(left, right, 200), GHOST))
    assert SETTINGS.excess * 0.999 < inside.min() < inside.max() < SETTINGS.delta * (1 + 1e-9)
    assert np.abs(WELL.gradient(np.array([left - 1e-3, right + 1e-3]), GHOST)).min() > SETTINGS.delta


def test_trajectory_leaves_b1_and_ends_in_b2(rows, outcome):
    z = outcome.arrays["trajectory/z"]
    assert z[0] == pytest.approx(-1.5)
    assert np.all(np.diff(outcome.arrays["trajectory/u"]) <= 1e-12)
    assert rows["escape", "final_distance"] < 1e-6
    assert rows["escape", "arrival_s"] > rows["ghost", "dwell_s"]


def test_same_bytes_twice(outcome):
    again = run(SETTINGS, seed=0, progress=Progress(stream=io.StringIO()))
    assert again.measured == outcome.measured
    assert all(again.arrays[k].tobytes() == v.tobytes() for k, v in outcome.arrays.items())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delta": 0.01}, "delta .* got 0.01"),
        ({"dt": 0.0}, "dt .* got 0.0"),
        ({"duration_s": 0.001}, "duration_s .* got 0.001"),
    ],
)
def test_settings_say_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **wrong)
