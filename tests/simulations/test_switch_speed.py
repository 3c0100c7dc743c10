"""Switching speed: the GRU's steps follow from its formula, the Ghost's from the published triple's interval."""

import io
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ghost.runs.progress import Progress
from ghost.simulations.switch_speed import Settings, run

SETTINGS = Settings(
    stiffness=0.3,
    tilt=3.0,
    d=1.5,
    dt=0.16,
    euler_steps=(3, 5, 10),
    gru_alphas=(0.1, 0.28, 0.3),
    tolerance=0.15,
    max_steps=40,
    profile_steps=15,
    scan_resolution=0.01,
    published_steps=(3, 2, 1),
    published_first_ratio=0.85,
    published_min_steps=(4, 5),
)


def measure(settings):
    outcome = run(settings, seed=0, progress=Progress(stream=io.StringIO()))
    return {(m.condition, m.metric): m.value for m in outcome.measured}, outcome.arrays


@pytest.fixture(scope="module")
def measured():
    return measure(SETTINGS)


def test_gru_takes_the_steps_its_geometric_decay_implies(measured):
    rows, _ = measured
    start = rows["landscape", "basin_b"] - rows["landscape", "basin_a"]
    for alpha in SETTINGS.gru_alphas:
        implied = math.ceil(math.log(SETTINGS.tolerance / start) / math.log(1 - alpha))
        assert rows[f"gru_a{alpha:.2f}", "steps_to_converge"] == implied
        assert rows[f"gru_a{alpha:.2f}", "ratio"] == pytest.approx(1 - alpha)


def test_the_papers_more_than_20_gru_steps_do_not_follow_from_its_formula(measured):
    assert measured[0]["gru_a0.30", "steps_to_converge"] == 10


def test_the_published_step_counts_hold_inside_the_reported_interval_only(measured):
    rows, _ = measured
    for dt in (rows["paper_triple", "dt_lowest"], SETTINGS.dt, rows["paper_triple", "dt_highest"]):
        inside, _ = measure(replace(SETTINGS, dt=dt, scan_resolution=0.1))
        assert [inside[f"ghost_n{n}", "steps_to_converge"] for n in (3, 5, 10)] == [3, 2, 1]
    outside, _ = measure(replace(SETTINGS, dt=rows["published_first_ratio", "dt"], scan_resolution=0.1))
    assert outside["ghost", "first_ratio"] == pytest.approx(0.85)
    assert [outside[f"ghost_n{n}", "steps_to_converge"] for n in (3, 5, 10)] != [3, 2, 1]


def test_euler_converges_below_its_stability_limit_and_not_above(measured):
    limit = measured[0]["euler_stable", "dt_highest"]
    below, arrays = measure(replace(SETTINGS, dt=0.95 * limit, scan_resolution=0.1, max_steps=80))
    assert arrays["ghost_n10/distance"][-1] < 1e-6
    assert below["ghost_n10", "steps_to_converge"] > 0
    _, arrays = measure(replace(SETTINGS, dt=1.1 * limit, scan_resolution=0.1, max_steps=80))
    assert arrays["ghost_n10/distance"][-1] > 0.01


def test_the_ratio_rises_before_it_falls(measured):
    """Euler steps by hand, on U' = 4 k z (z² - d²) - tilt; the article has the ratio fall from its first step on."""
    z, target, away = measured[0]["landscape", "basin_a"], measured[0]["landscape", "basin_b"], []
    for _ in range(SETTINGS.profile_steps + 1):
        away.append(abs(z - target))
        z -= SETTINGS.dt * (1.2 * z * (z**2 - 1.5**2) - 3.0)
    ratios = [after / before for before, after in pairwise(away)]
    assert measured[0]["ghost", "max_ratio_step"] == 1 + ratios.index(max(ratios)) == 2


def test_the_exact_flow_contracts_fastest_in_the_basin():
    """With a dt that resolves the flow, the ratio first rises, then falls for good: no slowing at the end."""
    _, arrays = measure(replace(SETTINGS, dt=0.01, profile_steps=120))
    ratio = arrays["ghost/ratio"]
    slowest = ratio.argmax()
    assert ratio[0] < ratio[slowest]
    assert np.all(np.diff(ratio[slowest:]) < 0)


def test_same_bytes_twice(measured):
    again, arrays = measure(SETTINGS)
    assert again == measured[0]
    assert {k: v.tobytes() for k, v in arrays.items()} == {k: v.tobytes() for k, v in measured[1].items()}


@pytest.mark.parametrize(
    "wrong",
    [
        {"dt": 0.0},
        {"gru_alphas": (0.3, 1.0)},
        {"euler_steps": (0, 5, 10)},
        {"published_steps": (3, 2)},
        {"profile_steps": 4},
        {"tilt": 1.0},
        {"max_steps": 2},
    ],
)
def test_settings_say_what_is_wrong(wrong):
    with pytest.raises(ValueError, match=r"got .*" + str(next(iter(wrong.values())))[-3:-1]):
        replace(SETTINGS, **wrong)
