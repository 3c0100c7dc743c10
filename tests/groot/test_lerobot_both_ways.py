"""lerobot 0.4.4 itself reads what our writer writes, and we read what it writes: samples, pictures, tasks, statistics.

lerobot's two ways to decode a video are torchcodec, which needs FFmpeg's libraries, and `torchvision.io.VideoReader`,
which torchvision has dropped. So a reader of the same calls takes the latter's place, by PyAV as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch

import labs
from ghost.backbones.groot_environment import import_lerobot
from ghost.data.lerobot import LeRobotDataset
from ghost.data.lerobot_writer import write_dataset

pytestmark = pytest.mark.groot
FPS = 10
LOSSY = 4  # of 255, on average: videos are compressed


class VideoReader:
    """torchvision's, as lerobot calls it."""

    def __init__(self, path: str, _: str) -> None:
        self.container = av.open(path)

    def seek(self, at_s: float, keyframes_only: bool) -> None:
        self.container.seek(int(at_s * av.time_base))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for frame in self.container.decode(video=0):
            yield {"pts": frame.time, "data": torch.from_numpy(frame.to_ndarray(format="rgb24")).permute(2, 0, 1)}


@pytest.fixture(scope="module")
def lerobot() -> Any:
    """Its class of data sets."""
    import_lerobot()
    import torchvision
    from lerobot.datasets import lerobot_dataset, video_utils

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(video_utils.torchvision.io, "VideoReader", VideoReader, raising=False)
        patch.setattr(torchvision, "set_video_backend", lambda _: None, raising=False)
        yield lerobot_dataset.LeRobotDataset


@pytest.fixture(scope="module")
def made() -> list[labs.Recording]:
    return labs.recordings(4, 7, labs.TASKS[:2], seed=2)


@pytest.fixture(scope="module")
def ours(tmp_path_factory, made) -> Path:
    folder = tmp_path_factory.mktemp("ours") / "set"
    write_dataset(folder, made, fps=FPS, robot="arm", episodes_per_file=3)
    return folder


@pytest.fixture(scope="module", params=["video", "image"])
def theirs(tmp_path_factory, made, lerobot, request) -> Path:
    """The same recordings, written by lerobot."""
    folder = tmp_path_factory.mktemp("theirs") / request.param
    vector = {"dtype": "float32", "shape": (7,)}
    names = [f"joint_{k}" for k in range(7)]
    features = {"observation.state": {**vector, "names": None}, "action": {**vector, "names": names}}
    picture = {"dtype": request.param, "shape": (labs.PIXELS, labs.PIXELS, 3), "names": ["height", "width", "channels"]}
    features |= dict.fromkeys(labs.CAMERAS, picture)
    film = request.param == "video"
    data = lerobot.create("lab/theirs", FPS, features, root=folder, use_videos=film, video_backend="pyav")
    for recording in made:
        steps = {**recording.columns, **recording.videos}
        for step in range(len(recording.columns["action"])):
            data.add_frame({name: values[step] for name, values in steps.items()} | {"task": recording.task})
        data.save_episode()
    data.finalize()
    return folder


def test_lerobot_reads_what_we_write(ours, made, lerobot):
    data = lerobot("lab/ours", root=ours, video_backend="pyav")
    assert list(data.meta.tasks.index) == list(labs.TASKS[:2])
    assert (len(data), data.meta.total_episodes) == (sum(len(each.columns["action"]) for each in made), len(made))
    first = 0
    for number, recording in enumerate(made):
        length = len(recording.columns["action"])
        for step in {0, length // 2, length - 1}:
            sample = data[first + step]
            assert (sample["task"], int(sample["episode_index"])) == (recording.task, number)
            assert float(sample["timestamp"]) == pytest.approx(step / FPS)
            for name, values in recording.columns.items():
                np.testing.assert_array_equal(sample[name].numpy(), values[step])
            for camera, pictures in recording.videos.items():
                seen = 255 * sample[camera].permute(1, 2, 0).numpy()
                assert np.abs(seen - pictures[step]).mean() < LOSSY
        first += length


def test_we_read_what_lerobot_writes(theirs, made):
    data = LeRobotDataset.open(theirs)
    assert list(data.tasks.values()) == list(labs.TASKS[:2])
    assert len(data) == len(made)
    for number, recording in enumerate(made):
        episode = data.episode(number)
        assert data.instruction(number) == recording.task
        np.testing.assert_array_equal(episode.state, recording.columns["observation.state"])
        np.testing.assert_array_equal(episode.action, recording.columns["action"])
        for camera, pictures in recording.videos.items():
            seen = data.frames(number, camera, range(len(episode))).astype(float)
            errors = np.abs(seen - pictures).mean(axis=(1, 2, 3))  # of each step
            assert errors.max() < (LOSSY if camera in data.filmed else 1e-9)


def test_the_statistics_are_those_that_lerobot_writes(ours, theirs, made, lerobot):
    """But for the deviation of pictures: lerobot squares bytes, which overflow."""
    mine, its = (lerobot("lab/set", root=folder, video_backend="pyav").meta.stats for folder in (ours, theirs))
    assert its.keys() <= mine.keys()
    for name in its:
        for kind in ("min", "max", "mean", "std"):
            assert mine[name][kind].shape == its[name][kind].shape, (name, kind)
            if (name in labs.CAMERAS, kind) == (True, "std"):
                every = np.concatenate([each.videos[name] for each in made]) / 255  # [steps, height, width, 3]
                its[name][kind] = every.std(axis=(0, 1, 2)).reshape(3, 1, 1)
            np.testing.assert_allclose(mine[name][kind], its[name][kind], 1e-4, 1e-5, err_msg=f"{name} {kind}")
