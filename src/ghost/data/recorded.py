"""A recorded LeRobot data set, v2.0 to v3.0, as demonstrations: `--config demos=<folder>`.

The data set keeps its version and its tree. Two things change: states and actions are normalised, dimension by
dimension, so that the smallest recorded value is -1 and the largest 1 (a dimension that never changes is 0), as
GR00T N1.5 has them; meta/normalisation.json holds the raw values of -1 and 1. Statistics of the raw values are left
out. Videos are linked where the file system can, else copied.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ghost.data.dual_arm import FOLDER, TASKS
from ghost.data.lerobot import ACTION, LIMITS, STATE, LeRobotDataset, as_array
from ghost.data.lerobot_meta import read_parquet
from ghost.data.lerobot_writer import write_parquet
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.files import confined, link, write_json

META = ("info.json", "modality.json", "tasks.jsonl", "tasks.parquet", "episodes.jsonl", "episodes/**/*.parquet")


@dataclass(frozen=True)
class Settings:
    path: str


def make(settings: Settings, *, seed: int, folder: Path) -> Outcome:
    """Write the data set into the run's folder."""
    dataset = LeRobotDataset.open(Path(settings.path))
    root = folder / FOLDER
    shutil.rmtree(root, ignore_errors=True)  # of a killed run, of another data set
    source = dataset.folder
    tables = sorted({dataset.data_file(index) for index in range(len(dataset))})
    videos = sorted({dataset.video_file(k, camera) for k in range(len(dataset)) for camera in dataset.filmed})
    for index in range(len(dataset)):
        dataset.episode(index)  # checks it, before anything is written
    limits = {name: _limits(_columns(tables, name), source, name) for name in (STATE, ACTION)}
    for path in tables:
        _write_normalised(path, root / path.relative_to(source), limits)
    for path in videos:
        link(path, root / path.relative_to(source))
    meta = sorted(path for pattern in META for path in (source / "meta").glob(pattern))
    for path in meta:
        confined(source, str(path.relative_to(source)))
        target = root / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    raw = {name: {"min": low.tolist(), "max": high.tolist()} for name, (low, high) in limits.items()}
    write_json(root / LIMITS, {"state": raw[STATE], "action": raw[ACTION]})

    steps = dataset.lengths()
    published = {task.name for task in TASKS}
    measured = [
        Measured("all", "episodes", len(dataset)),
        Measured("all", "steps", float(steps.sum())),
        Measured("all", "published_tasks", len(published) if set(dataset.tasks.values()) == published else 0),
    ]
    files = [str(path.relative_to(source)) for path in (*tables, *videos, *meta)]
    names = tuple(f"{FOLDER}/{name}" for name in (*files, LIMITS))
    return Outcome(measured, files=names)


def _columns(tables: Iterable[Path], name: str) -> Iterable[np.ndarray]:
    """A column of every file: [steps, d]."""
    return (_values(read_parquet(path)[name], path, name) for path in tables)


def _values(column: pa.ChunkedArray, path: Path, name: str) -> np.ndarray:
    values = as_array(column, f"{path}: column {name!r}")
    if values.ndim != 2 or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise GhostError(f"{path}: column {name!r} must hold vectors of finite numbers")
    return values.astype(np.float64)


def _limits(columns: Iterable[np.ndarray], source: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value of every dimension [d]."""
    lows, highs = zip(*((values.min(axis=0), values.max(axis=0)) for values in columns), strict=True)
    if len({low.shape for low in lows}) != 1:
        raise GhostError(f"{source}: column {name!r} is not as wide in every file")
    return np.min(lows, axis=0), np.max(highs, axis=0)


def normalised(raw: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """raw [..., d] -> [-1, 1] float32; 0 where a dimension never changes."""
    span = np.where(high > low, high - low, 1.0)
    return np.asarray(np.where(high > low, 2 * (raw - low) / span - 1, 0.0), dtype=np.float32)


def _write_normalised(path: Path, to: Path, limits: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    table = read_parquet(path)
    for name, (low, high) in limits.items():
        values = normalised(_values(table[name], path, name), low, high)
        column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        table = table.set_column(table.column_names.index(name), name, column)
    write_parquet(to, table)
