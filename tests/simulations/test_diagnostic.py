"""The diagnostic: topology under both contexts, the escape against an adaptive solver, and its constants."""

import io
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from ghost.dynamics.potentials import CENTRES, ThreeWells
from ghost.runs.progress import Progress
from ghost.simulations.diagnostic import Settings, escape, run

SETTINGS = Settings(
    alpha=0.1,
    sigma=0.6,
    collapsed_weight=0.05,
    dt=0.01,
    hold_s=0.5,
    duration_s=12.0,
    reach=1.6,
    grid_points=21,
    arrow_points=5,
)
WELLS = ThreeWells(0.1, 0.6)
C2 = np.array([0.05, 1.0, 1.0])


@pytest.fixture(scope="module")
def outcome():
    return run(SETTINGS, seed=0, progress=Progress(stream=io.StringIO()))


@pytest.fixture(scope="module")
def rows(outcome):
    return {(m.condition, m.metric): m.value for m in outcome.measured}


def test_three_basins_then_two_and_the_first_is_gone(rows, outcome):
    assert (rows["c1", "minima"], rows["c2", "minima"]) == (3, 2)
    assert np.linalg.norm(outcome.arrays["c2/minima"] - CENTRES[0], axis=-1).min() > 1
    assert 0.05 < rows["ghost", "critical_weight"] < 1


def test_dwell_is_when_an_adaptive_solver_crosses_the_former_ridge(rows, outcome):
    def ridge(_, z):
        return z[0]

    ridge.terminal = True
    start = outcome.arrays["trajectory/z"][0]
    exact = solve_ivp(lambda _, z: -WELLS.gradient(z, C2), (0, 20), start, events=ridge, rtol=1e-9, atol=1e-11)
    assert rows["ghost", "dwell_s"] == pytest.approx(exact.t_events[0][0], rel=0.01)


def test_escape_dips_then_peaks_and_ends_in_b2(rows):
    assert 0 < rows["ghost", "dip_s"] < rows["ghost", "dwell_s"] < rows["escape", "peak_s"]
    assert rows["ghost", "dip_speed"] < rows["c2", "gradient_at_b1"] < rows["escape", "peak_speed"]
    assert rows["escape", "ends_in"] == 2
    assert rows["escape", "final_distance"] < 1e-6


def test_the_action_is_held_until_the_context_changes(outcome):
    time_s, action = outcome.arrays["trajectory/time_s"], outcome.arrays["trajectory/action"]
    assert time_s[0] == pytest.approx(-0.5)
    assert np.all(action[time_s < 0] == action[0])
    np.testing.assert_allclose(WELLS.gradient(action[0], np.ones(3)), 0, atol=1e-8)


def test_lemma_1_holds_along_the_dwell(rows, outcome):
    z, time_s = outcome.arrays["trajectory/z"], outcome.arrays["trajectory/time_s"]
    dwelling = z[(time_s >= 0) & (time_s <= rows["ghost", "dwell_s"])]
    length = np.linalg.norm(np.diff(dwelling, axis=0), axis=-1).sum()
    assert rows["ghost", "dwell_s"] >= length / rows["ghost", "delta"] * (1 - 1e-9)


def test_the_landscape_is_drawn_with_rows_for_z_2(outcome):
    u, axis = outcome.arrays["c2/u"], outcome.arrays["grid/axis"]
    assert u[3, 17] == pytest.approx(float(WELLS.value(np.array([axis[17], axis[3]]), C2)), rel=1e-6)


def test_the_constants_alone_meet_the_published_topology():
    """Three minima under c1, none within 0.5 of μ_1 under c2, and an end in B2."""
    kept = set()
    for alpha, sigma in product((0.1, 0.3), (0.4, 0.6)):
        found = escape(replace(SETTINGS, alpha=alpha, sigma=sigma))
        gone = np.linalg.norm(found.minima_c2 - CENTRES[0], axis=-1).min() >= 0.5
        if len(found.minima_c1) == 3 and gone and found.ends_in == 2:
            kept.add((alpha, sigma))
    assert kept == {(0.1, 0.6)}


def test_a_time_without_event_is_nan():
    short = escape(replace(SETTINGS, duration_s=0.5))
    assert np.isnan(short.dwell_s)
    assert np.isnan(short.dip_s)


def test_same_bytes_twice(outcome):
    again = run(SETTINGS, seed=0, progress=Progress(stream=io.StringIO()))
    assert again.measured == outcome.measured
    assert all(again.arrays[k].tobytes() == v.tobytes() for k, v in outcome.arrays.items())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": -0.6}, "sigma .* got -0.6"),
        ({"collapsed_weight": 1.0}, "collapsed_weight .* got 1.0"),
        ({"duration_s": 0.0}, "duration_s .* got 0.0"),
        ({"grid_points": 1}, "got 1"),
    ],
)
def test_settings_say_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **wrong)
