"""Pictures in the data files instead of videos, and the tables of tasks as lerobot reads them."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from test_lerobot import CAMERAS, LENGTHS, recordings

from ghost.data.lerobot import LeRobotDataset
from ghost.data.lerobot_writer import write_dataset
from ghost.errors import GhostError
from ghost.files import read_json, write_json


def encoded(image: np.ndarray, kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind)
    return file.getvalue()


def with_pictures(folder, kind: str = "PNG", column=lambda files: pa.array([{"bytes": f, "path": "x"} for f in files])):
    """The data set of `recordings`, with its pictures in columns."""
    made = recordings()
    write_dataset(folder, recordings(videos=False), fps=10, robot="test", episodes_per_file=3)
    path = folder / "data/chunk-000/file-000.parquet"
    table, info = pq.read_table(path), read_json(folder / "meta/info.json")
    for camera in CAMERAS:
        files = [encoded(image, kind) for recording in made for image in recording.videos[camera]]
        table = table.append_column(camera, column(files))
        info["features"][camera] = {"dtype": "image", "shape": [32, 32, 3]}
    pq.write_table(table, path)
    write_json(folder / "meta/info.json", info)
    return folder


COLUMNS = {
    "struct": lambda files: pa.array([{"bytes": file, "path": "x"} for file in files]),
    "binary": lambda files: pa.array(files, pa.binary()),
    "large": lambda files: pa.array(files, pa.large_binary()),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("kind", "off"), [("PNG", 0), ("JPEG", 2)])
def test_pictures_are_those_of_the_steps(tmp_path, kind, off, column):
    data = LeRobotDataset.open(with_pictures(tmp_path / "set", kind, COLUMNS[column]))
    assert (data.cameras, data.filmed) == (CAMERAS, ())
    for index, recording in enumerate(recordings()):
        steps = [LENGTHS[index] - 1, 0, 3]
        for camera in CAMERAS:
            found = data.frames(index, camera, steps)
            assert found.dtype == np.uint8
            np.testing.assert_allclose(found.astype(int), recording.videos[camera][steps].astype(int), atol=off)
        np.testing.assert_array_equal(data.episode(index).action, recording.columns["action"])


def test_a_shape_may_be_that_of_a_tensor(tmp_path):
    """openpi's script for ALOHA writes [3, height, width] beside the same files."""
    folder = with_pictures(tmp_path / "set")
    info = read_json(folder / "meta/info.json")
    info["features"][CAMERAS[0]]["shape"] = [3, 32, 32]
    write_json(folder / "meta/info.json", info)
    found = LeRobotDataset.open(folder).frames(0, "top", [2])[0]
    np.testing.assert_array_equal(found, recordings()[0].videos[CAMERAS[0]][2])


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"no picture", r"column 'observation.images.top': a picture cannot be decoded"),
        (encoded(np.zeros((32, 32, 3), np.uint8), "PNG")[:60], "cannot be decoded"),
        (encoded(np.zeros((32, 32, 3), np.uint8), "BMP"), "cannot be decoded"),
        (encoded(np.zeros((64, 32, 3), np.uint8), "PNG"), r"a picture of 64 x 32, the meta data say \(32, 32\)"),
        (None, "must be the bytes of a PNG or JPEG file"),
    ],
)
def test_a_bad_picture_is_one_line(tmp_path, file, message):
    column = lambda files: pa.array([{"bytes": file, "path": "x"}] * len(files))  # noqa: E731
    data = LeRobotDataset.open(with_pictures(tmp_path / "set", column=column))
    with pytest.raises(GhostError, match=message):
        data.frames(0, "top", [0])


def test_pictures_without_a_size_are_refused(tmp_path):
    folder = with_pictures(tmp_path / "set")
    info = read_json(folder / "meta/info.json")
    info["features"][CAMERAS[0]]["shape"] = [10**6, 10**6, 3]
    write_json(folder / "meta/info.json", info)
    with pytest.raises(GhostError, match="must say its shape"):
        LeRobotDataset.open(folder).frames(0, "top", [0])


def test_lerobot_finds_the_instructions(tmp_path):
    """lerobot takes the index of the row: `tasks.iloc[task_index].name`."""
    folder = tmp_path / "set"
    write_dataset(folder, recordings(), fps=10, robot="test")
    tasks = pd.read_parquet(folder / "meta/tasks.parquet")
    assert [tasks.iloc[k].name for k in range(2)] == ["lift the cup", "fold"]
    assert tasks["task_index"].tolist() == [0, 1]
    assert LeRobotDataset.open(folder).tasks == {0: "lift the cup", 1: "fold"}
