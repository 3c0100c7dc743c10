"""Values go to the decoders' units and back, constants included, and a file is checked before it is believed."""

import numpy as np
import pytest

from ghost.data.normalisation import MODES, Normalisation, Scale
from ghost.errors import GhostError
from ghost.files import write_json

NAMES = ("pan", "tilt", "grip", "locked")


@pytest.fixture
def raw():
    """[1000, 4]: two joints, the second with outliers, a gripper that closes in 5 of 1,000 steps, a joint at 0.1."""
    values = np.random.default_rng(0).normal([3.0, -2.0, 0.0, 0.0], [5.0, 0.1, 0.0, 0.0], (1000, 4))
    values[::200, 1] = 50.0
    values[:5, 2] = 1.0
    values[:, 3] = 0.1
    return values


@pytest.mark.parametrize("mode", MODES)
def test_undo_is_the_inverse_of_apply(mode, raw):
    scale = Scale.measured(mode, raw, NAMES)
    normalised = scale.apply(raw)
    assert normalised.dtype == np.float32
    assert scale.constant.tolist() == [False, False, False, True]
    assert not normalised[:, 3].any()
    np.testing.assert_allclose(scale.undo(normalised), raw, atol=1e-5)
    np.testing.assert_array_equal(scale.undo(normalised)[:, 3], raw[:, 3])  # the constant, whatever a decoder says
    padded = np.concatenate([normalised, np.ones((1000, 28), np.float32)], axis=1)
    np.testing.assert_array_equal(scale.undo(padded), scale.undo(normalised))


def test_each_mode_maps_what_it_says_to_minus_one_and_one(raw):
    limits, quantiles, mean_std = (Scale.measured(mode, raw, NAMES).apply(raw)[:, :3] for mode in MODES)
    np.testing.assert_array_equal([limits.min(axis=0), limits.max(axis=0)], [[-1] * 3, [1] * 3])
    assert np.quantile(quantiles[:, :2], 0.01, axis=0) == pytest.approx([-1, -1], abs=1e-5)
    assert np.quantile(quantiles[:, :2], 0.99, axis=0) == pytest.approx([1, 1], abs=1e-5)
    assert quantiles[0, 1] > 100  # an outlier is not clipped
    assert (quantiles[0, 2], quantiles[5, 2]) == (1, -1)  # its quantiles coincide: the limits
    assert mean_std.mean(axis=0) == pytest.approx([0, 0, 0], abs=1e-5)
    assert mean_std.std(axis=0) == pytest.approx([1, 1, 1], abs=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_a_file_gives_back_what_was_written(mode, raw, tmp_path):
    scale = Scale.measured(mode, raw, NAMES)
    write_json(tmp_path / "n.json", Normalisation(mode, scale, scale).plain())
    back = Normalisation.read(tmp_path / "n.json")
    assert (back.mode, back.action.names) == (mode, NAMES)
    np.testing.assert_array_equal([back.state.low, back.action.high], [scale.low, scale.high])


SCALE = {"names": ["a"], "low": [0.0], "high": [1.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "limit"}, "no mode 'limit'; did you mean limits"),
        ({"action": {**SCALE, "low": [float("inf")]}}, "action.low.0. must be a finite number"),
        ({"action": {**SCALE, "low": []}}, "action: names, low and high must be of one length"),
        ({"state": {"names": [], "low": [], "high": []}}, "state: names, low and high must be of one length, at least"),
        ({"state": {**SCALE, "low": [2.0]}}, "state: low must not lie above high, as for a"),
        ({"state": [1]}, "state must be an object"),
    ],
)
def test_a_bad_value_is_one_line(change, message):
    with pytest.raises(GhostError, match=message) as error:
        Normalisation.of({"mode": "limits", "state": SCALE, "action": SCALE, **change}, "x.json")
    assert str(error.value).startswith("x.json")
    assert "\n" not in str(error.value)
