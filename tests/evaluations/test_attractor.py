import io
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch

from ghost.data.samples import Samples
from ghost.evaluations.attractor import Settings, continued, evaluate
from ghost.runs.progress import Progress


@pytest.fixture
def cache():
    return tiny.cache()


@pytest.fixture
def small_ghost():
    return tiny.small_ghost()


def run(cache, ghost, **settings):
    given = Settings(**{"split": "sample", "continued_steps": 5, "embedded_per_task": 3, **settings})
    return evaluate(given, cache, {"ghost": ghost}, seed=0, progress=Progress(stream=io.StringIO()))


def values(outcome):
    return {(m.condition, m.metric): m.value for m in outcome.measured}


@pytest.fixture
def bowl(small_ghost):
    """A ghost with U = |z|² and no drift: |∇U| = 2 |z|, and a step of 0.2 keeps 3/5 of z."""
    small_ghost.potential.at = lambda e: SimpleNamespace(gradient=lambda z: 2 * z)
    small_ghost.drift.at = lambda e: torch.zeros_like
    return small_ghost


def test_a_bowl_contracts_as_computed_by_hand(cache, bowl):
    bowl.drift.at = lambda e: lambda z: torch.full_like(z, 1e-9)  # a drift to divide by
    found = values(run(cache, bowl))
    assert found["flow", "contraction_percent"] == pytest.approx(100 * (1 - 0.6**3), rel=1e-4)
    assert found["flow", "monotone_share"] == found["flow", "distance_monotone_share"] == 1
    for k in range(3):
        ratio = found[f"step_{k + 1}", "gradient_norm"] / found[f"step_{k}", "gradient_norm"]
        assert ratio == pytest.approx(0.6, rel=1e-4)
    # from 0.6³ on to 0.6⁸, after a way of 1 - 0.6³
    assert found["flow", "continued_distance"] == pytest.approx((0.6**3 - 0.6**8) / (1 - 0.6**3), rel=1e-4)
    assert found["tasks", "falling"] == len(cache.task_names)
    assert found["tasks", "largest_final_distance"] == 0  # by definition
    with torch.no_grad():
        start = bowl.encoder(torch.from_numpy(cache.state)).norm(dim=-1).numpy() * (1 - 0.6**3)
    test = cache.split("sample")[1]
    book = test[cache.task[test] == 2]
    assert found["Take_book", "initial_distance"] == pytest.approx(start[book].mean(), rel=1e-4)


def test_a_hill_does_not_contract(cache, small_ghost):
    small_ghost.potential.at = lambda e: SimpleNamespace(gradient=lambda z: -2 * z)
    found = values(run(cache, small_ghost))
    assert found["flow", "contraction_percent"] < 0
    assert found["flow", "continued_distance"] > 1


def test_arrays_are_what_the_figures_draw(cache, small_ghost):
    outcome = run(cache, small_ghost)
    assert np.isfinite(list(values(outcome).values())).all()
    assert outcome.arrays["gradient/mean"].shape == (4,)
    assert outcome.arrays["distance/mean"].shape == (3, 4)
    assert (outcome.arrays["distance/mean"][:, -1] == 0).all()
    assert outcome.arrays["flow/embedding"].shape == (4, 9, 2)
    assert "flow/embedding" not in run(cache, small_ghost, embedded_per_task=0).arrays


def test_continuing_by_nothing_stays(cache, small_ghost):
    batch = Samples(cache, np.arange(4)).batch(torch.arange(4))
    with torch.no_grad():
        assert torch.equal(continued(small_ghost, batch, 0), small_ghost.latents(batch)[-1])
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        Settings("sample", -1, 0)
