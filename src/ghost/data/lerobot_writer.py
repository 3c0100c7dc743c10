"""Write a data set in LeRobot's format, v3.0, for `ghost.data.lerobot` to read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ghost.data.lerobot import ACTION, CHUNK, STATE
from ghost.errors import GhostError, did_you_mean
from ghost.files import atomic, write_json

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"


@dataclass(frozen=True)
class Recording:
    """An episode to write. `columns` must have observation.state and action; LeRobot's own columns are added."""

    task: str
    columns: Mapping[str, np.ndarray]  # each [S, ...]
    videos: Mapping[str, np.ndarray] = field(default_factory=dict)  # camera -> [S, height, width, 3] uint8
    facts: Mapping[str, Any] = field(default_factory=dict)  # further columns of meta/episodes: one value each


def write_dataset(
    folder: Path,
    recordings: Sequence[Recording],
    *,
    fps: int,
    robot: str,
    episodes_per_file: int = 250,
    tasks: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Write a data set and return the names of its files below `folder`. The same recordings give the same bytes.

    `tasks` fixes the order of the task indices; without it the tasks are numbered as they first appear.
    """
    if not recordings:
        raise GhostError(f"{folder}: no episodes to write")
    tasks = list(dict.fromkeys(tasks if tasks is not None else (recording.task for recording in recordings)))
    files: list[str] = []
    episodes: list[dict[str, Any]] = []
    totals: dict[str, _Totals | _Shades] = {}
    first = 0  # index of an episode's first step in the whole data set
    for number, start in enumerate(range(0, len(recordings), episodes_per_file)):
        place = {"chunk_index": number // CHUNK, "file_index": number % CHUNK}
        held = recordings[start : start + episodes_per_file]
        tables = []
        file_first = first
        for index, recording in enumerate(held, start):
            columns = _all_columns(recording, index, first, fps, tasks)
            after = first + len(columns["index"])
            meta = {
                "episode_index": index,
                "tasks": [recording.task],
                "length": after - first,
                **{f"data/{key}": value for key, value in place.items()},
                "dataset_from_index": first,
                "dataset_to_index": after,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                **recording.facts,
            }
            for camera in recording.videos:
                meta |= {f"videos/{camera}/{key}": value for key, value in place.items()}
                meta[f"videos/{camera}/from_timestamp"] = (first - file_first) / fps
                meta[f"videos/{camera}/to_timestamp"] = (after - file_first) / fps
            for name, column in columns.items():
                totals.setdefault(name, _Totals()).add(column)
            for camera, pictures in recording.videos.items():
                totals.setdefault(camera, _Shades()).add(pictures)
            episodes.append(meta)
            tables.append(_table(columns))
            first = after
        files.append(DATA_PATH.format(**place))
        write_parquet(folder / files[-1], pa.concat_tables(tables))
        for camera in held[0].videos:
            files.append(VIDEO_PATH.format(video_key=camera, **place))
            write_video(folder / files[-1], [recording.videos[camera] for recording in held], fps=fps)
    tables_of_meta = {
        "meta/tasks.parquet": task_table(tasks),
        "meta/episodes/chunk-000/file-000.parquet": pa.Table.from_pylist(episodes),
    }
    for name, table in tables_of_meta.items():
        write_parquet(folder / name, table)
    write_json(folder / "meta/stats.json", {name: total.summary() for name, total in totals.items()})
    write_json(folder / "meta/info.json", _info(recordings, tasks, first, fps, robot))
    return (*files, *tables_of_meta, "meta/stats.json", "meta/info.json")


def write_video(path: Path, clips: Sequence[np.ndarray], *, fps: int) -> None:
    """Write clips [S, height, width, 3] uint8, one after the other, as one h264 mp4."""
    height, width = clips[0].shape[1:3]
    with atomic(path) as temporary, av.open(str(temporary), "w") as container:
        stream = container.add_stream("h264", rate=fps, options={"g": "10", "crf": "18", "threads": "1"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for image in (image for clip in clips for image in clip):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")))
        container.mux(stream.encode())


class _Totals:
    """Smallest, largest, mean and standard deviation of a column, added up episode by episode."""

    count = 0

    def add(self, column: np.ndarray) -> None:
        values = column.astype(np.float64)
        low, high, mean = values.min(axis=0), values.max(axis=0), values.mean(axis=0)
        squares = ((values - mean) ** 2).sum(axis=0)
        if not self.count:
            self.low, self.high, self.mean, self.squares, self.count = low, high, mean, squares, len(values)
            return
        both, shift = self.count + len(values), mean - self.mean
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.squares = self.squares + squares + shift**2 * self.count * len(values) / both
        self.mean, self.count = self.mean + shift * len(values) / both, both

    def summary(self) -> dict[str, Any]:
        std = np.sqrt(self.squares / self.count)
        lists = {"min": self.low, "max": self.high, "mean": self.mean, "std": std}
        return {**{name: np.atleast_1d(value).tolist() for name, value in lists.items()}, "count": [self.count]}


class _Shades:
    """The same of pictures, as lerobot has it: for each colour, [3, 1, 1], from 0 to 1; the count is of pictures."""

    def __init__(self) -> None:
        self.pictures, self.counts = 0, np.zeros((3, 256), np.int64)  # pixels of each colour and shade

    def add(self, pictures: np.ndarray) -> None:
        self.pictures += len(pictures)
        self.counts += [np.bincount(pictures[..., colour].ravel(), minlength=256) for colour in range(3)]

    def summary(self) -> dict[str, Any]:
        shades, seen = np.arange(256) / 255, self.counts > 0
        share = self.counts / self.counts.sum(axis=1, keepdims=True)
        mean = share @ shades
        std = np.sqrt((share * (shades - mean[:, None]) ** 2).sum(axis=1))
        low, high = np.where(seen, shades, 1.0).min(axis=1), np.where(seen, shades, 0.0).max(axis=1)
        lists = {"min": low, "max": high, "mean": mean, "std": std}
        return {**{name: value.reshape(3, 1, 1).tolist() for name, value in lists.items()}, "count": [self.pictures]}


def _all_columns(recording: Recording, index: int, first: int, fps: int, tasks: Sequence[str]) -> dict[str, np.ndarray]:
    missing = [name for name in (STATE, ACTION) if name not in recording.columns]
    if missing:
        raise GhostError(f"episode {index} has no {missing[0]}")
    if recording.task not in tasks:
        raise GhostError(f"episode {index}: task {recording.task!r} is not listed{did_you_mean(recording.task, tasks)}")
    lengths = {name: len(value) for name, value in {**recording.columns, **recording.videos}.items()}
    length = lengths[ACTION]
    wrong = [name for name in lengths if lengths[name] != length]
    if wrong:
        raise GhostError(f"episode {index}: {wrong[0]} has {lengths[wrong[0]]} steps, action has {length}")
    steps = np.arange(length)
    return {
        **recording.columns,
        "timestamp": (steps / fps).astype(np.float32),
        "frame_index": steps,
        "episode_index": np.full(length, index),
        "index": first + steps,
        "task_index": np.full(length, tasks.index(recording.task)),
    }


def _table(columns: Mapping[str, np.ndarray]) -> pa.Table:
    arrays = {}
    for name, value in columns.items():
        array = pa.array(np.ascontiguousarray(value).ravel())
        for width in value.shape[:0:-1]:
            array = pa.FixedSizeListArray.from_arrays(array, width)
        arrays[name] = array
    return pa.table(arrays)


def task_table(tasks: Sequence[str]) -> pa.Table:
    """Task indices with the instructions as pandas' index, where lerobot looks for them."""
    table = pa.table({"task_index": np.arange(len(tasks)), "task": tasks})
    kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
    columns = [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy, "metadata": None}
        for name, (kind, numpy) in kinds.items()
    ]
    known = {"index_columns": ["task"], "column_indexes": [], "columns": columns}
    return table.replace_schema_metadata({"pandas": json.dumps(known)})


def write_parquet(path: Path, table: pa.Table) -> None:
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", use_dictionary=False)  # floats hardly repeat


def _info(recordings: Sequence[Recording], tasks: Sequence[str], steps: int, fps: int, robot: str) -> dict[str, Any]:
    """The content of meta/info.json. The features are those of the first episode."""
    columns = _all_columns(recordings[0], 0, 0, fps, tasks)
    features: dict[str, Any] = {
        name: {"dtype": str(value.dtype), "shape": list(value.shape[1:]) or [1], "names": None}
        for name, value in columns.items()
    }
    for camera, images in recordings[0].videos.items():
        height, width = images.shape[1:3]
        facts = {"video.fps": fps, "video.codec": "h264", "video.height": height, "video.width": width}
        names = ["height", "width", "channels"]
        features[camera] = {"dtype": "video", "shape": [height, width, 3], "names": names, "info": facts}
    return {
        "codebase_version": "v3.0",
        "robot_type": robot,
        "total_episodes": len(recordings),
        "total_frames": steps,
        "total_tasks": len(tasks),
        "chunks_size": CHUNK,
        "fps": fps,
        "splits": {"train": f"0:{len(recordings)}"},
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH if recordings[0].videos else None,
        "features": features,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 500,
    }
