"""Write a data set in LeRobot's format, v2.0, v2.1 or v3.0, for `ghost.data.lerobot` to read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ghost.data.lerobot import ACTION, CHUNK, PATHS, STATE, VERSIONS
from ghost.errors import GhostError, did_you_mean
from ghost.files import atomic, write_json, write_text


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
    version: str = "v3.0",
    episodes_per_file: int = 250,
    tasks: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Write a data set and return the names of its files below `folder`. The same recordings give the same bytes.

    `tasks` fixes the order of the task indices; without it the tasks are numbered as they first appear.
    """
    if version not in VERSIONS:
        raise GhostError(f"LeRobot {version!r}; this writes {', '.join(VERSIONS)}")
    if not recordings:
        raise GhostError(f"{folder}: no episodes to write")
    old = version.startswith("v2")
    group = 1 if old else episodes_per_file
    tasks = list(dict.fromkeys(tasks if tasks is not None else (recording.task for recording in recordings)))
    files: list[str] = []
    episodes: list[dict[str, Any]] = []
    totals: dict[str, _Totals] = {}
    episode_stats: list[dict[str, Any]] = []
    first = 0  # index of a file's first step in the whole data set
    for number, start in enumerate(range(0, len(recordings), group)):
        places = {"chunk_index": number // CHUNK, "file_index": number % CHUNK}
        values = {"episode_index": number, "episode_chunk": number // CHUNK, **places}
        held = recordings[start : start + group]
        tables = []
        for index, recording in enumerate(held, start):
            columns = _all_columns(recording, index, first, fps, tasks)
            length = len(columns["index"])
            offset = first - (episodes[start]["dataset_from_index"] if index > start else first)
            meta = {
                "episode_index": index,
                "tasks": [recording.task],
                "length": length,
                **{f"data/{key}": value for key, value in places.items()},
                "dataset_from_index": first,
                "dataset_to_index": first + length,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                **recording.facts,
            }
            for camera in recording.videos:
                meta |= {f"videos/{camera}/{key}": value for key, value in places.items()}
                meta[f"videos/{camera}/from_timestamp"] = offset / fps
                meta[f"videos/{camera}/to_timestamp"] = (offset + length) / fps
            for name, column in columns.items():
                totals.setdefault(name, _Totals()).add(column)
            if version == "v2.1":  # which needs them per episode
                own = {name: _Totals().add(column).summary() for name, column in columns.items()}
                episode_stats.append({"episode_index": index, "stats": own})
            episodes.append(meta)
            tables.append(_table(columns))
            first += length
        name = PATHS["v2" if old else "v3"][0].format(**values)
        _write_parquet(folder / name, pa.concat_tables(tables))
        files.append(name)
        for camera in held[0].videos:
            name = PATHS["v2" if old else "v3"][1].format(video_key=camera, **values)
            write_video(folder / name, [recording.videos[camera] for recording in held], fps=fps)
            files.append(name)
    stats = {name: total.summary() for name, total in totals.items()}
    info = _info(recordings, tasks, first, files, version, fps, robot)
    if not old:
        return (*files, *_write_meta_v3(folder, info, tasks, episodes, stats))
    return (*files, *_write_meta_v2(folder, info, tasks, episodes, episode_stats, stats))


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

    def __init__(self) -> None:
        self.count = 0

    def add(self, column: np.ndarray) -> _Totals:
        values = column.astype(np.float64)
        low, high, mean = values.min(axis=0), values.max(axis=0), values.mean(axis=0)
        squares = ((values - mean) ** 2).sum(axis=0)
        if not self.count:
            self.low, self.high, self.mean, self.squares, self.count = low, high, mean, squares, len(values)
            return self
        both, shift = self.count + len(values), mean - self.mean
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.squares = self.squares + squares + shift**2 * self.count * len(values) / both
        self.mean, self.count = self.mean + shift * len(values) / both, both
        return self

    def summary(self) -> dict[str, Any]:
        std = np.sqrt(self.squares / self.count)
        lists = {"min": self.low, "max": self.high, "mean": self.mean, "std": std}
        return {**{name: np.atleast_1d(value).tolist() for name, value in lists.items()}, "count": [self.count]}


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


def _write_parquet(path: Path, table: pa.Table) -> None:
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", use_dictionary=False)  # floats hardly repeat


def _info(
    recordings: Sequence[Recording],
    tasks: Sequence[str],
    steps: int,
    files: Sequence[str],
    version: str,
    fps: int,
    robot: str,
) -> dict[str, Any]:
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
    data_path, video_path = PATHS["v2" if version.startswith("v2") else "v3"]
    info = {
        "codebase_version": version,
        "robot_type": robot,
        "total_episodes": len(recordings),
        "total_frames": steps,
        "total_tasks": len(tasks),
        "chunks_size": CHUNK,
        "fps": fps,
        "splits": {"train": f"0:{len(recordings)}"},
        "data_path": data_path,
        "video_path": video_path if recordings[0].videos else None,
        "features": features,
    }
    if version.startswith("v2"):
        videos = sum(name.endswith(".mp4") for name in files)
        return {**info, "total_videos": videos, "total_chunks": 1 + (len(recordings) - 1) // CHUNK}
    return {**info, "data_files_size_in_mb": 100, "video_files_size_in_mb": 500}


def _write_meta_v2(
    folder: Path,
    info: Mapping[str, Any],
    tasks: Sequence[str],
    episodes: Sequence[Mapping[str, Any]],
    episode_stats: Sequence[Mapping[str, Any]],
    stats: Mapping[str, Any],
) -> tuple[str, ...]:
    v3_only = ("data/", "videos/", "meta/", "dataset_")
    lines: dict[str, Sequence[Mapping[str, Any]]] = {
        "meta/tasks.jsonl": [{"task_index": index, "task": task} for index, task in enumerate(tasks)],
        "meta/episodes.jsonl": [
            {key: value for key, value in episode.items() if not key.startswith(v3_only)} for episode in episodes
        ],
        **({"meta/episodes_stats.jsonl": episode_stats} if episode_stats else {}),
    }
    for name, entries in lines.items():
        write_text(folder / name, "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
    write_json(folder / "meta/stats.json", stats)
    write_json(folder / "meta/info.json", info)
    return (*lines, "meta/stats.json", "meta/info.json")


def _write_meta_v3(
    folder: Path,
    info: Mapping[str, Any],
    tasks: Sequence[str],
    episodes: Sequence[Mapping[str, Any]],
    stats: Mapping[str, Any],
) -> tuple[str, ...]:
    names = ("meta/tasks.parquet", "meta/episodes/chunk-000/file-000.parquet", "meta/stats.json", "meta/info.json")
    _write_parquet(folder / names[0], pa.table({"task_index": np.arange(len(tasks)), "task": list(tasks)}))
    _write_parquet(folder / names[1], pa.Table.from_pylist([dict(episode) for episode in episodes]))
    write_json(folder / names[2], stats)
    write_json(folder / names[3], info)
    return names
