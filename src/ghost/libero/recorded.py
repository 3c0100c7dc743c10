"""Recorded demonstrations of LIBERO-10: `--config libero_demos=<folder> libero_convention=ipec`.

A LeRobot data set, v2.0 to v3.0, with videos or with pictures in its data files, or LIBERO's own HDF5 files
(`ghost.libero.hdf5`). Episodes of other tasks are left out, by their instruction. What is written is a data set of
version 3.0 under our own column names. States and actions are normalised (`ghost.data.normalisation`); the column
`phase` has the sub-phases that `ghost.libero.phases` infers from the raw recording; meta/info.json names the
convention, for the closed loop. Videos are linked where the file system can, else copied.

A wrong convention would train a policy that fails in the loop, so it is checked against the recording itself: the
numbers of the gripper, which of them closes the fingers, the hand that follows its commands, steps without commands.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ghost.data.lerobot import ACTION, CHUNK, STATE, LeRobotDataset, as_array
from ghost.data.lerobot_frames import is_picture
from ghost.data.lerobot_meta import read_parquet
from ghost.data.lerobot_writer import DATA_PATH, VIDEO_PATH, task_table, write_parquet
from ghost.data.normalisation import FILE as NORMALISATION
from ghost.data.normalisation import Normalisation, Scale, check_mode
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.files import link, write_json
from ghost.libero.checks import check_convention, choose_convention, noop_percent
from ghost.libero.conventions import D_ACTION, D_STATE, Convention, find_convention, hand_pose
from ghost.libero.hdf5 import NAME as HDF5
from ghost.libero.hdf5 import convert, is_hdf5
from ghost.libero.phases import infer_phases
from ghost.libero.tasks import TASKS
from ghost.runs.outside import fetched

FOLDER = "dataset"
KEY = "libero_demos"  # of a configuration
STATE_NAMES = ("x", "y", "z", "axis_angle_x", "axis_angle_y", "axis_angle_z", "finger_left", "finger_right")
ACTION_NAMES = ("x", "y", "z", "rotation_x", "rotation_y", "rotation_z", "gripper")


@dataclass(frozen=True)
class Settings:
    path: str  # a folder, or a name on the hub
    revision: str  # the commit, for a name on the hub
    convention: str  # of ghost.libero.conventions; empty: by the names of the columns
    tasks: tuple[int, ...]
    normalisation: str = "limits"

    def __post_init__(self) -> None:
        check_mode(self.normalisation)
        if self.convention:
            find_convention(self.convention)
        if not self.tasks or not set(self.tasks) <= set(range(len(TASKS))):
            raise ValueError(f"tasks must be some of 0 to {len(TASKS) - 1}, got {self.tasks}")


@dataclass(frozen=True)
class Demonstration:
    """One episode of S steps as it was recorded."""

    source: int  # its index in the data set
    task: int
    state: np.ndarray  # [S, 8] raw
    action: np.ndarray  # [S, 7] raw
    phase: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # [S]


def make(settings: Settings, *, seed: int, folder: Path) -> Outcome:
    """Write the demonstrations of these tasks as a data set into the run's folder."""
    where = fetched(settings.path, settings.revision, KEY, f"{KEY}_revision", kind="dataset")
    if not is_hdf5(where):
        return make_from(LeRobotDataset.open(where), settings, folder)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        converted = LeRobotDataset.open(convert(where, settings.tasks, Path(scratch) / FOLDER))
        return make_from(converted, replace(settings, convention=HDF5), folder)


def make_from(dataset: LeRobotDataset, settings: Settings, folder: Path) -> Outcome:
    where, name = dataset.folder, settings.convention or choose_convention(dataset)
    convention = find_convention(name)
    found = list(read_demonstrations(dataset, convention, settings.tasks))
    check_tasks(found, settings.tasks, where)
    check_convention(name, [(one.state, one.action) for one in found], dataset.fps, where)
    demonstrations = [_with_phases(one, convention) for one in found]
    scales = Normalisation(
        settings.normalisation,
        Scale.measured(settings.normalisation, np.concatenate([d.state for d in demonstrations]), STATE_NAMES),
        Scale.measured(settings.normalisation, np.concatenate([d.action for d in demonstrations]), ACTION_NAMES),
    )
    root = folder / FOLDER
    shutil.rmtree(root, ignore_errors=True)  # of a killed run, of another data set
    files = write(root, dataset, demonstrations, convention, name, scales, settings.tasks)
    return Outcome(measured_of(demonstrations, settings.tasks), files=tuple(f"{FOLDER}/{name}" for name in files))


def read_demonstrations(
    dataset: LeRobotDataset, convention: Convention, tasks: Sequence[int]
) -> Iterator[Demonstration]:
    """The episodes whose instruction is that of one of these tasks."""
    wanted = {_words(TASKS[task].instruction): task for task in tasks}
    chosen = [(index, wanted.get(_words(dataset.instruction(index)))) for index in range(len(dataset))]
    for index, task in chosen:
        if task is not None:
            table, place = _steps(dataset, index), f"{dataset.data_file(index)}: episode {index}"
            state = _vectors(table, convention.state, D_STATE, place)
            action = _vectors(table, convention.action, D_ACTION, place)
            yield Demonstration(index, task, state, action)


def _words(text: str) -> str:
    return " ".join(text.lower().split())


@lru_cache(maxsize=1)  # a file of version 3.0 holds several episodes
def _table(path: Path) -> pa.Table:
    return read_parquet(path)


def _steps(dataset: LeRobotDataset, index: int) -> pa.Table:
    """The rows of one episode, whatever its columns are called."""
    path = dataset.data_file(index)
    table = _table(path)
    if "episode_index" not in table.column_names:
        raise GhostError(f"{path} has no column 'episode_index'")
    own = np.flatnonzero(as_array(table["episode_index"], f"{path}: column episode_index") == index)
    if len(own) != dataset.lengths()[index] or np.any(np.diff(own) != 1):
        raise GhostError(f"{path}: episode {index} does not have its {dataset.lengths()[index]} steps, one by one")
    return table.slice(int(own[0]), len(own))


def _vectors(table: pa.Table, name: str, width: int, where: str) -> np.ndarray:
    if name not in table.column_names:
        raise GhostError(f"{where} has no column {name!r}; its columns are {', '.join(table.column_names)}")
    values = as_array(table[name], f"{where}: column {name!r}")
    if values.ndim != 2 or values.shape[1] != width or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise GhostError(f"{where}: column {name!r} must hold vectors of {width} finite numbers, as LIBERO's have")
    return values.astype(np.float64)


def _with_phases(one: Demonstration, convention: Convention) -> Demonstration:
    phase = infer_phases(*hand_pose(one.state), convention.closing(one.action))
    return Demonstration(one.source, one.task, one.state, one.action, phase)


def check_tasks(found: Sequence[Demonstration], tasks: Sequence[int], where: Path) -> None:
    for task in tasks:
        if not any(one.task == task for one in found):
            raise GhostError(f"{KEY}: {where} has no episode of task {task}, {TASKS[task].instruction!r}")


def measured_of(demonstrations: Sequence[Demonstration], tasks: Sequence[int]) -> list[Measured]:
    """As for the scripted experts; what was recorded has succeeded."""
    measured = []
    for task in tasks:
        own = [one for one in demonstrations if one.task == task]
        changes = [1 + np.count_nonzero(np.diff(one.phase)) for one in own]
        measured += [
            Measured(f"T{task}", "episodes", len(own)),
            Measured(f"T{task}", "steps", float(np.mean([len(one.action) for one in own])), len(own)),
            Measured(f"T{task}", "phases", float(np.mean(changes)), len(own)),
        ]
    return [
        *measured,
        Measured("all", "episodes", len(demonstrations)),
        Measured("all", "steps", sum(len(one.action) for one in demonstrations)),
        Measured("all", "noop_percent", noop_percent([one.action for one in demonstrations])),
    ]


def write(
    root: Path,
    dataset: LeRobotDataset,
    demonstrations: Sequence[Demonstration],
    convention: Convention,
    name: str,
    scales: Normalisation,
    tasks: Sequence[int],
) -> list[str]:
    """Write the data set; returns the names of its files."""
    cameras = [camera for camera in dataset.cameras if camera.rsplit(".", 1)[-1] in convention.cameras]
    videos = _Videos(root, dataset, [camera for camera in cameras if camera in dataset.filmed])
    files, lines, first = [], [], 0
    for index, one in enumerate(demonstrations):
        place = {"chunk_index": index // CHUNK, "file_index": index % CHUNK}
        files.append(DATA_PATH.format(**place))
        steps, task = np.arange(len(one.action)), list(tasks).index(one.task)
        columns = {
            STATE: _lists(scales.state.apply(one.state)),
            ACTION: _lists(scales.action.apply(one.action)),
            "phase": one.phase,
            "timestamp": (steps / dataset.fps).astype(np.float32),
            "frame_index": steps,
            "episode_index": np.full(len(steps), index),
            "index": first + steps,
            "task_index": np.full(len(steps), task),
            **_pictures(dataset, one.source, cameras),
        }
        write_parquet(root / files[-1], pa.table(columns))
        lines.append(
            {
                "episode_index": index,
                "tasks": [TASKS[one.task].instruction],
                "length": len(steps),
                **{f"data/{key}": value for key, value in place.items()},
                "dataset_from_index": first,
                "dataset_to_index": first + len(steps),
                "libero_task": one.task,
                "source_episode": one.source,
                **videos.place(one.source),
            }
        )
        first += len(steps)
    meta = {"meta/tasks.parquet": task_table([TASKS[task].instruction for task in tasks])}
    meta["meta/episodes/chunk-000/file-000.parquet"] = pa.Table.from_pylist(lines)
    for file, table in meta.items():
        write_parquet(root / file, table)
    write_json(root / NORMALISATION, scales.plain())
    write_json(root / "meta/info.json", _info(dataset, cameras, lines, name, first, len(tasks)))
    return [*files, *videos.files, *meta, NORMALISATION, "meta/info.json"]


class _Videos:
    """Links to the videos of chosen episodes, under the names of version 3.0."""

    def __init__(self, root: Path, dataset: LeRobotDataset, cameras: Sequence[str]) -> None:
        self.root, self.dataset, self.cameras = root, dataset, cameras
        self.files: list[str] = []
        self.numbers: dict[str, dict[Path, int]] = {camera: {} for camera in cameras}

    def place(self, source: int) -> dict[str, Any]:
        """What the meta data of an episode say about its videos."""
        said: dict[str, Any] = {}
        for camera in self.cameras:
            path, known = self.dataset.video_file(source, camera), self.numbers[camera]
            if path not in known:
                known[path] = len(known)
                numbers = {"chunk_index": known[path] // CHUNK, "file_index": known[path] % CHUNK}
                self.files.append(VIDEO_PATH.format(video_key=camera, **numbers))
                link(path, self.root / self.files[-1])
            meta, number = self.dataset.episodes[source], known[path]
            said |= {
                f"videos/{camera}/chunk_index": number // CHUNK,
                f"videos/{camera}/file_index": number % CHUNK,
                f"videos/{camera}/from_timestamp": float(meta.get(f"videos/{camera}/from_timestamp", 0.0)),
            }
        return said


def _pictures(dataset: LeRobotDataset, source: int, cameras: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """The columns of pictures, where they are no videos."""
    kept = [camera for camera in cameras if camera not in dataset.filmed]
    table = _steps(dataset, source) if kept else None
    for camera in kept:
        if table is None or camera not in table.column_names or not is_picture(table[camera].type):
            raise GhostError(f"{dataset.data_file(source)}: column {camera!r} holds no pictures")
    return {camera: table[camera] for camera in kept} if table is not None else {}


def _lists(values: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def _info(
    dataset: LeRobotDataset, cameras: Sequence[str], lines: list[Any], name: str, steps: int, tasks: int
) -> dict[str, Any]:
    vectors: Mapping[str, tuple[str, ...]] = {STATE: STATE_NAMES, ACTION: ACTION_NAMES}
    features: dict[str, Any] = {
        column: {"dtype": "float32", "shape": [len(names)], "names": list(names)} for column, names in vectors.items()
    }
    features["phase"] = {"dtype": "int64", "shape": [1], "names": None}
    features |= {camera: dataset.info["features"][camera] for camera in cameras}
    return {
        "codebase_version": "v3.0",
        "robot_type": "Panda in LIBERO",
        "convention": name,
        "total_episodes": len(lines),
        "total_frames": steps,
        "total_tasks": tasks,
        "chunks_size": CHUNK,
        "fps": dataset.fps,
        "splits": {"train": f"0:{len(lines)}"},
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH if any(camera in dataset.filmed for camera in cameras) else None,
        "features": features,
    }
