"""Crops and colours: the middle where nothing is drawn, other places and colours in training."""

import numpy as np

from ghost.backbones.views import jittered, middle

PLACES = np.stack(np.meshgrid(np.arange(100), np.arange(100), indexing="ij"), axis=-1)
IMAGE = np.concatenate([PLACES, np.full((100, 100, 1), 90)], axis=2).astype(np.uint8)  # row, column, 90


def test_the_middle_is_cut_out_and_resized():
    (cut,) = middle(IMAGE[None], 0.9, 0)
    assert cut.shape == (90, 90, 3)
    assert cut[0, 0].tolist() == [5, 5, 90]
    assert cut[-1, -1].tolist() == [94, 94, 90]
    (small,) = middle(IMAGE[None], 0.9, 45)
    assert small.shape == (45, 45, 3)
    assert np.abs(small[:, :, 0].mean(axis=1) - (5.5 + 2 * np.arange(45))).max() <= 1  # each row is the mean of two
    assert middle(IMAGE[None], 1.0, 0)[0].tolist() == IMAGE.tolist()


def test_training_draws_places_and_colours_by_the_generator_alone():
    first, again, other = (jittered([IMAGE, IMAGE], 0.9, 45, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert [view.shape for view in first] == [(45, 45, 3)] * 2
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert (first[0] == first[1]).all()  # all cameras of a step have the same, as in NVIDIA's transforms


def test_places_of_crops_cover_the_free_margin():
    """Without colours the corner tells where a crop was taken."""
    rng = np.random.default_rng(0)
    grey = np.full((100, 100, 3), 128, np.uint8)
    means = [jittered([grey], 0.9, 0, rng)[0].mean() for _ in range(50)]
    assert 128 * 0.6 < min(means) < 115
    assert 140 < max(means) <= 128 * 1.35
