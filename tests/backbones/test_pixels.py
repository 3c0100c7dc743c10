"""The backbone of pixels sees each patch where it is and each word, and nothing that a batch or a run would change."""

import dataclasses

import numpy as np
import pytest

from ghost.backbones import Observations
from ghost.backbones.pixels import SIDE, Settings, encode, grid, patches
from ghost.errors import GhostError

SMALL = Settings(tokens=10, d_token=48, text_tokens=2, hidden=64, weights_seed=5)
CAMERAS = ("observation.images.wrist", "observation.images.top")
PICTURES = {
    camera: np.random.default_rng(k).integers(0, 256, (6, 48, 64, 3), dtype=np.uint8)
    for k, camera in enumerate(CAMERAS)
}


def observations(pictures=PICTURES, part=slice(None), instruction="stack cups"):
    n = len(next(iter(pictures.values()))[part])
    state, step = np.zeros((n, 4), np.float32), np.zeros((n, 2), np.int64)
    return Observations((instruction,) * n, {}, lambda name: pictures[name][part], tuple(pictures), state, step)


def test_tokens_have_the_shape_and_type_of_the_real_ones():
    tokens = encode(SMALL, observations())
    assert tokens.shape == (6, 10, 48)
    assert tokens.dtype == np.float16
    np.testing.assert_allclose(np.square(tokens.astype(float)).mean(axis=-1), 1, rtol=0.01)  # after an RMS norm


def test_a_sample_does_not_depend_on_its_batch():
    whole = encode(SMALL, observations())
    for part in (slice(0, 1), slice(2, 5)):
        np.testing.assert_array_equal(encode(SMALL, observations(part=part)), whole[part])


def test_the_weights_come_from_the_seed():
    np.testing.assert_array_equal(encode(SMALL, observations()), encode(SMALL, observations()))
    other = encode(dataclasses.replace(SMALL, weights_seed=6), observations())
    assert not np.array_equal(other, encode(SMALL, observations()))


def test_a_patch_sees_its_part_of_its_camera_alone():
    """Two rows and two columns a camera; cameras in the order of their names, after two words."""
    changed = {name: images.copy() for name, images in PICTURES.items()}
    changed[CAMERAS[0]][:, 24:, :32] = 0  # below, left, of the wrist's camera, the second by name
    differs = (encode(SMALL, observations(changed)) != encode(SMALL, observations())).any(axis=(0, 2))
    assert np.flatnonzero(differs).tolist() == [2 + 4 + 2]


def test_every_patch_knows_of_the_instruction():
    told = encode(SMALL, observations(instruction="fold a towel"))
    assert (told != encode(SMALL, observations())).any(axis=(0, 2)).all()


def test_a_patch_is_the_mean_of_its_pixels():
    """Against a mean by hand: a picture of 2 x 3 patches, each pixel of a patch a block of 4 x 2."""
    picture = np.random.default_rng(3).integers(0, 256, (1, 2 * SIDE * 4, 3 * SIDE * 2, 3), dtype=np.uint8)
    found = patches(picture, 2, 3)[0].reshape(2, 3, SIDE, SIDE, 3)
    block = picture[0, 4 * SIDE : 4 * SIDE + 4, 2 * SIDE * 2 : 2 * SIDE * 2 + 2].mean(axis=(0, 1))
    np.testing.assert_allclose(found[1, 2, 0, 0], 4 * (block / 255 - 0.5), atol=4 * 0.51 / 255)


def test_the_instruction_is_read_word_by_word():
    one = encode(SMALL, observations())
    np.testing.assert_array_equal(one, encode(SMALL, observations(instruction="Stack_cups")))
    other = encode(SMALL, observations(instruction="stack books"))
    assert np.abs(one[:, 1] - other[:, 1]).mean() > 3 * np.abs(one[:, 0] - other[:, 0]).mean()  # its second word


def test_cameras_are_chosen_and_tokens_left_over_are_zeros():
    tokens = encode(dataclasses.replace(SMALL, cameras=CAMERAS[:1], tokens=9), observations())
    assert tokens[:, :8].any(axis=2).all()  # 2 words, 2 x 3 patches of the 7 that would fit
    assert not tokens[:, 8:].any()


def test_too_few_tokens_and_no_camera_are_one_line():
    with pytest.raises(GhostError, match="1 tokens for pictures are too few for 2 cameras"):
        encode(dataclasses.replace(SMALL, tokens=3), observations())
    blind = dataclasses.replace(observations(), cameras=())
    with pytest.raises(GhostError, match="needs pictures, and the data set has no camera"):
        encode(SMALL, blind)
    with pytest.raises(ValueError, match="text_tokens must leave some of 2"):
        dataclasses.replace(SMALL, tokens=2)
    assert grid(7, 1) == (2, 3)
