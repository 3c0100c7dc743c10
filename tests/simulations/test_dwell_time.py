"""Dwell time: slope -1/2 in the normal form and in the double well, and Lemma 1's bound holds."""

import io
from dataclasses import replace

import numpy as np
import pytest

from ghost.dynamics.normal_form import passage_time
from ghost.runs.progress import Progress
from ghost.simulations.dwell_time import Settings, run

SETTINGS = Settings(
    mu_lowest=1e-6,
    mu_highest=1.0,
    mus=5,
    window=100.0,
    stiffness=0.3,
    tilt=3.0,
    d=1.5,
    excess_lowest=1e-6,
    excess_highest=1e-2,
    excesses=3,
    delta_ratios=(1.01, 10.0),
    drift_ratios=(-0.5, 0.0, 0.5),
)


@pytest.fixture(scope="module")
def outcome():
    return run(SETTINGS, seed=0, progress=Progress(stream=io.StringIO()))


@pytest.fixture(scope="module")
def rows(outcome):
    return {(m.condition, m.metric): m.value for m in outcome.measured}


def test_slopes_are_minus_one_half(rows):
    assert rows["normal_form", "slope"] == pytest.approx(-0.5, abs=0.002)
    assert rows["double_well", "slope"] == pytest.approx(-0.5, abs=0.01)


def test_measured_passage_is_the_exact_one_for_the_finite_window(outcome):
    exact = [passage_time(mu, -100.0, 100.0) for mu in outcome.arrays["normal_form/mu"]]
    np.testing.assert_allclose(outcome.arrays["normal_form/dwell"], exact, rtol=1e-7)


def test_double_well_approaches_the_limit_as_the_excess_shrinks(outcome):
    deviation = outcome.arrays["double_well/dwell"] / outcome.arrays["double_well/theory"] - 1
    assert np.all(np.diff(np.abs(deviation)) > 0)
    assert abs(deviation[0]) < 1e-3


def test_lemma_1_bound_holds_and_is_nearly_reached(rows, outcome):
    assert outcome.arrays["lemma1/dwell_over_bound"].shape == (5, 2, 3)
    assert 1 <= rows["lemma1", "min_dwell_over_bound"] < 1.01


def test_same_bytes_twice(outcome):
    again = run(SETTINGS, seed=0, progress=Progress(stream=io.StringIO()))
    assert again.measured == outcome.measured
    assert all(again.arrays[k].tobytes() == v.tobytes() for k, v in outcome.arrays.items())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": -1.0}, "window .* got -1.0"),
        ({"mu_lowest": 2.0}, "mu_lowest < mu_highest .* got .*2.0"),
        ({"excesses": 1}, "excesses .* got 1"),
        ({"delta_ratios": (0.5,)}, "delta_ratios .* got .*0.5"),
        ({"drift_ratios": (-1.0,)}, "drift_ratios .* got .*-1.0"),
    ],
)
def test_settings_say_what_is_wrong(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(SETTINGS, **wrong)
