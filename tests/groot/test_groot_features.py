"""Features of GR00T's own classes: what is cached, what the record says, killed, split over jobs."""

from __future__ import annotations

import numpy as np
import pytest

from ghost.data.features import FeatureCache

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot


def test_a_cache_has_tokens_and_predictions(cached):
    cache = FeatureCache.open(cached)
    assert len(cache) == 50
    everything = np.arange(50)
    assert cache.tokens(everything).shape == (50, 8, 64)
    assert cache.predicted_action(everything).shape == (50, 17, 32)
    assert np.isfinite(cache.tokens(everything).astype(float)).all()
