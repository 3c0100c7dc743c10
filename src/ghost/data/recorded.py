"""A recorded LeRobot data set, v2.0 to v3.0, as demonstrations: `--config demos=<folder>`.

The data set keeps its version and its tree. Two things change: states and actions are normalised, dimension by
dimension, so that the smallest recorded value is -1 and the largest 1 (a dimension that never changes is 0), as
GR00T N1.5 has them; meta/normalisation.json holds the raw values of -1 and 1. Statistics of the raw values are left
out. Videos are linked where the file system can, else copied.
"""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ghost.data.dual_arm import FOLDER, TASKS
from ghost.data.lerobot import ACTION, STATE, LeRobotDataset, as_array
from ghost.data.lerobot_meta import read_parquet
from ghost.data.lerobot_writer import write_parquet
from ghost.data.normalisation import FILE as NORMALISATION
from ghost.data.normalisation import Normalisation, Scale, check_mode, numbered, stacked
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.files import confined, link, write_json

META = ("info.json", "modality.json", "tasks.jsonl", "tasks.parquet", "episodes.jsonl", "episodes/**/*.parquet")


@dataclass(frozen=True)
class Settings:
    path: str
    normalisation: str = "limits"  # ghost.data.normalisation has the modes

    def __post_init__(self) -> None:
        check_mode(self.normalisation)


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
    scales = {name: _scale(settings.normalisation, tables, source, name) for name in (STATE, ACTION)}
    for path in tables:
        _write_normalised(path, root / path.relative_to(source), scales)
    for path in videos:
        link(path, root / path.relative_to(source))
    meta = sorted(path for pattern in META for path in (source / "meta").glob(pattern))
    for path in meta:
        confined(source, str(path.relative_to(source)))
        target = root / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    write_json(root / NORMALISATION, Normalisation(settings.normalisation, scales[STATE], scales[ACTION]).plain())

    steps = dataset.lengths()
    published = {task.name for task in TASKS}
    measured = [
        Measured("all", "episodes", len(dataset)),
        Measured("all", "steps", float(steps.sum())),
        Measured("all", "published_tasks", len(published) if set(dataset.tasks.values()) == published else 0),
    ]
    files = [str(path.relative_to(source)) for path in (*tables, *videos, *meta)]
    names = tuple(f"{FOLDER}/{name}" for name in (*files, NORMALISATION))
    return Outcome(measured, files=names)


def _scale(mode: str, tables: Iterable[Path], source: Path, name: str) -> Scale:
    """Of a column of all files."""
    values = stacked((_values(read_parquet(path)[name], path, name) for path in tables), f"{source}: column {name!r}")
    return Scale.measured(mode, values, numbered(name.rpartition(".")[2], values.shape[1]))


def _values(column: pa.ChunkedArray, path: Path, name: str) -> np.ndarray:
    values = as_array(column, f"{path}: column {name!r}")
    if values.ndim != 2 or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise GhostError(f"{path}: column {name!r} must hold vectors of finite numbers")
    return values.astype(np.float64)


def _write_normalised(path: Path, to: Path, scales: Mapping[str, Scale]) -> None:
    table = read_parquet(path)
    for name, scale in scales.items():
        values = scale.apply(_values(table[name], path, name))
        column = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        table = table.set_column(table.column_names.index(name), name, column)
    write_parquet(to, table)
