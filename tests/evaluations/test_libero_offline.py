import numpy as np
import pytest

from ghost.evaluations.libero_offline import contraction_percent


def test_a_flow_that_halves_its_step_contracts_by_half():
    steps = 0.5 ** np.arange(5)
    z = np.concatenate([[0], steps.cumsum()])[:, None, None] * np.ones((1, 3, 4))
    assert contraction_percent(z, 4) == pytest.approx(50)


def test_only_the_basins_dimensions_count():
    z = np.zeros((4, 2, 3))
    z[:, :, 0] = np.array([0, 1, 1.25, 1.3125])[:, None]  # steps 1, 1/4, 1/16
    z[:, :, 1:] = np.arange(4)[:, None, None]  # constant speed
    assert contraction_percent(z, 1) == pytest.approx(75)
    assert contraction_percent(z, 3) < 40
