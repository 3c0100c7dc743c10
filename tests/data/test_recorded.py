import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ghost.data.lerobot import LeRobotDataset
from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.data.normalisation import MODES, Scale
from ghost.data.recorded import Settings, make
from ghost.data.results import Measured
from ghost.errors import GhostError
from lerobot_v2 import write_version

CAMERA = "observation.images.top"
LENGTHS = (7, 12, 9)


def recordings():
    rng, made = np.random.default_rng(0), []
    for length in LENGTHS:
        action = 100 * rng.normal(size=(length, 3)) + np.array([0, 50, 0])
        action[:, 2] = 4.0  # a joint that never moves
        columns = {
            "observation.state": rng.normal(size=(length, 2)).astype(np.float32),
            "action": action.astype(np.float32),
            "phase": np.arange(length),
        }
        video = np.full((length, 32, 32, 3), 90, np.uint8)
        made.append(Recording("fold", columns, {CAMERA: video}))
    return made


@pytest.fixture(params=["v2.0", "v2.1", "v3.0"])
def source(tmp_path, request):
    write_version(request.param, tmp_path / "set", recordings(), fps=10, robot="test", episodes_per_file=2)
    return tmp_path / "set"


def test_values_are_normalised_and_the_rest_is_kept(tmp_path, source):
    outcome = make(Settings(str(source)), seed=0, folder=tmp_path / "run")
    data = LeRobotDataset.open(tmp_path / "run/dataset")
    raw = np.concatenate([recording.columns["action"] for recording in recordings()]).astype(float)
    low, high = raw.min(axis=0), raw.max(axis=0)
    scale = data.require_normalisation().action
    np.testing.assert_allclose(scale.low, low)
    np.testing.assert_allclose(scale.high, high)
    assert scale.constant.tolist() == [False, False, True]
    for index, recording in enumerate(recordings()):
        episode = data.episode(index)
        np.testing.assert_allclose(scale.undo(episode.action), recording.columns["action"], rtol=1e-4, atol=1e-3)
        assert not episode.action[:, 2].any()
        np.testing.assert_array_equal(episode.columns["phase"], recording.columns["phase"])
        assert data.frames(index, "top", [0, LENGTHS[index] - 1]).shape == (2, 32, 32, 3)
    both = np.concatenate([data.episode(index).action[:, :2] for index in range(3)])
    assert (both.min(), both.max()) == (-1, 1)
    files = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert set(outcome.files) == files
    assert not any("stats" in name for name in files)  # of raw values
    assert Measured("all", "episodes", 3) in outcome.measured  # by which the study knows that they are not the paper's
    original = LeRobotDataset.open(source).episode(0).action  # the source is as it was
    np.testing.assert_array_equal(original, recordings()[0].columns["action"])


@pytest.mark.parametrize("mode", MODES)
def test_ranges_are_those_of_the_training_episodes(tmp_path, mode):
    episodes = recordings()
    episodes[-1].columns["action"][:, 0] *= 10
    episodes[-1].columns["action"][3, 2] = 6.0  # in the test episode alone this joint moves
    write_dataset(tmp_path / "set", episodes, fps=10, robot="test")
    make(Settings(str(tmp_path / "set"), test_share=0.3, normalisation=mode), seed=0, folder=tmp_path / "run")
    data = LeRobotDataset.open(tmp_path / "run/dataset")
    raw = np.concatenate([recording.columns["action"] for recording in episodes[:-1]])
    scale, expected = data.require_normalisation().action, Scale.measured(mode, raw, "abc")
    np.testing.assert_array_equal([scale.low[:2], scale.high[:2]], [expected.low[:2], expected.high[:2]])
    assert np.abs(data.episode(2).action[:, 0]).max() > 2  # beyond the range, and not clipped
    np.testing.assert_allclose(scale.undo(data.episode(2).action), episodes[-1].columns["action"], rtol=1e-4, atol=1e-3)
    assert (scale.low[2], scale.high[2]) == (4.0, 6.0)
    with pytest.raises(GhostError, match=r"task 'fold' has 3 episodes, 3 are to test and none would be left to train"):
        make(Settings(str(tmp_path / "set"), test_share=0.9), seed=0, folder=tmp_path / "run")


def test_the_same_data_set_gives_the_same_bytes(tmp_path, source):
    runs = [make(Settings(str(source)), seed=0, folder=tmp_path / name).files for name in ("a", "b")]
    assert runs[0] == runs[1]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in runs[0])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (None, "has no column 'action'"),
        ([[1.0, 2.0], [1.0]], "column action has lists of unequal length"),
        ([[1.0, float("nan")], [1.0, 2.0]], "action must hold vectors of finite numbers"),
        ([1.0, 2.0], "action must hold vectors of finite numbers"),
    ],
)
def test_a_bad_column_is_one_line(tmp_path, source, column, message):
    path = sorted((source / "data").rglob("*.parquet"))[0]
    table = pq.read_table(path)
    number = table.column_names.index("action")
    if column is None:
        table = table.remove_column(number)
    else:
        table = table.set_column(number, "action", pa.array([*column, *[column[0]] * (len(table) - 2)]))
    pq.write_table(table, path)
    with pytest.raises(GhostError) as error:
        make(Settings(str(source)), seed=0, folder=tmp_path / "run")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_that_is_no_data_set_is_one_line(tmp_path):
    with pytest.raises(GhostError, match=r"is no LeRobot data set: it has no meta/info\.json"):
        make(Settings(str(tmp_path)), seed=0, folder=tmp_path / "run")
