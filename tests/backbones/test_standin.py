import dataclasses

import numpy as np
import pytest

from ghost.backbones import Observations
from ghost.backbones.standin import SCENE, Settings, encode
from ghost.errors import GhostError

SMALL = Settings(tokens=9, d_token=48, text_tokens=3, hidden=32, weights_seed=5)


def observations(n=12, **changes):
    rng = np.random.default_rng(0)
    columns = {
        f"observation.scene.{name}": rng.uniform(-1, 1, (n, width)).astype(np.float32) for name, width in SCENE.items()
    }
    columns["observation.scene.place"] = rng.integers(0, 5, n)
    instructions = changes.pop("instructions", ("Stack_cups", "Tidy_counter") * (n // 2))
    state, step = changes.pop("state", np.zeros((n, 64), np.float32)), np.zeros((n, 2), np.int64)

    def frames(camera):
        pytest.fail("it needs no video")

    return Observations(instructions, {**columns, **changes}, frames, (), state, step)


def cut(seen, part):
    columns = {name: value[part] for name, value in seen.columns.items()}
    return Observations(seen.instructions[part], columns, seen.frames, (), seen.state[part], seen.step[part])


def test_tokens_have_the_shape_and_type_of_the_real_ones():
    tokens = encode(SMALL, observations())
    assert tokens.shape == (12, 9, 48)
    assert tokens.dtype == np.float16
    np.testing.assert_allclose(np.square(tokens.astype(float)).mean(axis=-1), 1, rtol=0.01)  # after an RMS norm


def test_a_sample_does_not_depend_on_its_batch():
    seen = observations()
    whole = encode(SMALL, seen)
    for part in (slice(0, 1), slice(3, 10)):
        np.testing.assert_array_equal(encode(SMALL, cut(seen, part)), whole[part])


def test_the_weights_come_from_the_seed():
    seen = observations()
    np.testing.assert_array_equal(encode(SMALL, seen), encode(SMALL, seen))
    assert not np.array_equal(encode(dataclasses.replace(SMALL, weights_seed=6), seen), encode(SMALL, seen))


def test_the_instruction_is_read_word_by_word():
    one = encode(SMALL, observations(instructions=("Stack_cups",) * 12))
    np.testing.assert_array_equal(one, encode(SMALL, observations(instructions=("stack cups",) * 12)))
    other = encode(SMALL, observations(instructions=("Stack_books",) * 12))
    assert np.abs(one[:, 1] - other[:, 1]).mean() > 3 * np.abs(one[:, 0] - other[:, 0]).mean()  # its second word


def test_a_patch_sees_what_is_near():
    at = np.tile(np.float32([-0.9, -0.9, 0]), (12, 1))  # in the corner of the first patch
    moved = at + np.float32([0.1, 0, 0])
    change = encode(SMALL, observations(**{"observation.scene.object": moved})).astype(float) - encode(
        SMALL, observations(**{"observation.scene.object": at})
    )
    by_token = np.abs(change).mean(axis=(0, 2))
    assert by_token[3] > 1.5 * by_token[8]  # the nearest patch, the farthest


def test_it_sees_the_scene_and_nothing_else():
    """Neither joints nor anything that tells the choice or the future: other columns change nothing."""
    seen = observations()
    other = observations(state=np.ones((12, 64), np.float32), phase=np.ones(12))
    np.testing.assert_array_equal(encode(SMALL, seen), encode(SMALL, other))
    for name in (*SCENE, "place"):
        key = f"observation.scene.{name}"
        changed = encode(SMALL, observations(**{key: seen.columns[key] + 1}))
        assert not np.array_equal(changed, encode(SMALL, seen)), name


def test_a_missing_column_is_named():
    seen = observations()
    del seen.columns["observation.scene.hands"]
    with pytest.raises(GhostError, match=r"wants a column 'observation\.scene\.hands'; did you mean"):
        encode(SMALL, seen)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"text_tokens": 9}, "text_tokens must leave some of 9"), ({"hidden": 0}, "hidden must be at least 1, got 0")],
)
def test_settings_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SMALL, **change)
