"""A recorded LeRobot data set, v2.0 to v3.0, as demonstrations: `--config demos=<folder>`.

The run's data set is in v3.0, whatever the source is, with the names of columns that the pipeline knows. It holds the
chosen tasks, cameras and action dimensions. States and actions are normalised (`ghost.data.normalisation`) by the
ranges of the training episodes; meta/normalisation.json says how, and has the names of the dimensions. Statistics of
the raw values are left out. Videos are linked where the file system can, else copied. The source is only read, and
every episode and camera is looked at before anything is written.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ghost.data.dual_arm import DIMENSIONS, FOLDER, GROUPS, TASKS
from ghost.data.lerobot import ACTION, CHUNK, STATE, TASK, Columns, LeRobotDataset
from ghost.data.lerobot_frames import check_video
from ghost.data.lerobot_meta import dimension_names
from ghost.data.lerobot_writer import DATA_PATH, VIDEO_PATH, task_table, write_parquet
from ghost.data.normalisation import FILE as NORMALISATION
from ghost.data.normalisation import Normalisation, Scale, check_mode
from ghost.data.results import Measured, Outcome
from ghost.data.sampling import held_back
from ghost.errors import GhostError, did_you_mean
from ghost.files import link, write_json
from ghost.runs.outside import HUB_ID
from ghost.runs.settings import below_one

PUBLISHED = frozenset(task.name for task in TASKS)
OF_THE_FORMAT = ("data/", "videos/", "meta/", "stats/", "dataset_")  # meta data of episodes that are written anew


@dataclass(frozen=True)
class Settings:
    path: str  # a folder, or a name on the hub
    revision: str = ""  # the commit, for a name on the hub
    tasks: tuple[str, ...] = ()  # all when empty
    cameras: tuple[str, ...] = ()  # likewise
    action_groups: Mapping[str, Any] = field(default_factory=dict)  # name: [first dimension, the one after the last]
    state: str = STATE  # columns, as the data set names them
    action: str = ACTION
    task: str = TASK
    normalisation: str = "limits"  # ghost.data.normalisation has the modes
    test_share: float = 0.0  # of each task's episodes, the last ones: they are to test, so no range is measured on them

    def __post_init__(self) -> None:
        check_mode(self.normalisation)
        below_one(self, "test_share")


def find_data_set(path: str, revision: str = "") -> Path:
    """The folder of a data set: a local one, or that of a repository of the hub at a commit, downloaded."""
    if Path(path).is_dir() or not (revision and HUB_ID.fullmatch(path)):
        return Path(path)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(path, repo_type="dataset", revision=revision))
    except OSError:  # what the hub's library raises without an answer
        raise GhostError(
            f"demos: {path} at {revision} is not in the local cache and the hub does not answer; download it elsewhere"
            " and name the folder"
        ) from None


def make(settings: Settings, *, seed: int, folder: Path) -> Outcome:
    """Write the data set into the run's folder."""
    names = Columns(settings.state, settings.action, settings.task)
    source = LeRobotDataset.open(find_data_set(settings.path, settings.revision), names)
    tasks = choose_tasks(source, settings.tasks)
    cameras = tuple(map(source.camera, settings.cameras)) or source.cameras
    kept = [index for index in range(len(source)) if tasks_of(source, index) <= set(tasks)]
    _check_tasks(source, tasks, kept)
    for camera in cameras:
        check_camera(source, camera, kept)
    normalisation, dimensions = measure(source, kept, settings)
    root = folder / FOLDER
    shutil.rmtree(root, ignore_errors=True)  # of a killed run, of another data set
    written = _Written(root, source, cameras, tasks, normalisation, dimensions)
    files = [*written.data(kept), *written.videos(kept), *written.meta(kept)]
    lengths = source.lengths()[kept]
    measured = [
        Measured("all", "episodes", len(kept)),
        Measured("all", "steps", float(lengths.sum())),
        Measured("all", "tasks", len(tasks)),
        Measured("all", "published_tasks", len(PUBLISHED) if set(tasks) == PUBLISHED else 0),
        Measured("shortest", "steps", float(lengths.min())),
        Measured("longest", "steps", float(lengths.max())),
    ]
    for kind, scale in (("state", normalisation.state), ("action", normalisation.action)):
        measured.append(Measured(kind, "dimensions", len(scale.low)))
        measured.append(Measured(kind, "constant_dimensions", int(scale.constant.sum())))
    return Outcome(measured, files=tuple(f"{FOLDER}/{name}" for name in files))


def choose_tasks(source: LeRobotDataset, asked: Sequence[str]) -> list[str]:
    """The instructions that are kept, in the order asked for, or all in that of the data set."""
    known = list(dict.fromkeys(source.tasks[index] for index in sorted(source.tasks)))
    for task in asked:
        if task not in known:
            raise GhostError(f"{source.folder}/meta: no task {task!r}{did_you_mean(task, known)}")
    return list(asked) or known


def tasks_of(source: LeRobotDataset, index: int) -> set[str]:
    """The instructions of an episode: it may have another one in each step."""
    return {source.tasks[int(number)] for number in np.unique(source.episode(index).task)}  # checks the episode, too


def _check_tasks(source: LeRobotDataset, tasks: Sequence[str], kept: Sequence[int]) -> None:
    found = set().union(*(tasks_of(source, index) for index in kept))
    for task in tasks:
        if task not in found:
            raise GhostError(
                f"{source.folder}/meta: task {task!r} has no episode; name the tasks that have some: tasks: [...]"
            )


def check_camera(source: LeRobotDataset, camera: str, kept: Sequence[int]) -> None:
    """Each video must open, be whole and be as long as its episodes. Of pictures, the first and the last of each
    episode must be there."""
    if camera not in source.filmed:
        for index in kept:
            source.frames(index, camera, [0, int(source.lengths()[index]) - 1])
        return
    last: dict[Path, int] = {}
    for index in kept:
        begins_s = source.episodes[index].get(f"videos/{camera}/from_timestamp", 0.0)
        after = round(float(begins_s or 0.0) * source.fps) + int(source.lengths()[index])
        path = source.video_file(index, camera)
        last[path] = max(last.get(path, 0), after)
    for path, frames in last.items():
        check_video(path, frames, camera)


def measure(source: LeRobotDataset, kept: Sequence[int], settings: Settings) -> tuple[Normalisation, tuple[int, ...]]:
    """How the values are normalised, and which action dimensions are kept."""
    episodes = [source.episode(index) for index in kept]
    for kind, name in (("state", settings.state), ("action", settings.action)):
        _check_widths(source, kept, [getattr(episode, kind).shape[1] for episode in episodes], name)
    last = held_back(source, test_share=settings.test_share, among=kept) if settings.test_share else []
    train = np.repeat(~np.isin(kept, last), [len(episode) for episode in episodes])  # [all steps]
    state = np.concatenate([episode.state for episode in episodes])  # [all steps, d_state]
    action = np.concatenate([episode.action for episode in episodes])
    groups = _groups(source, settings, action.shape[1])
    dimensions = tuple(dict.fromkeys(d for own in groups.values() for d in own)) or tuple(range(action.shape[1]))
    if not settings.action_groups:
        dimensions = tuple(range(action.shape[1]))
    place = {dimension: number for number, dimension in enumerate(dimensions)}
    placed = {name: tuple(place[d] for d in own) for name, own in groups.items()}
    feature = source.info["features"].get
    state_names = dimension_names(feature(settings.state, {}), "state", state.shape[1])
    action_names = dimension_names(feature(settings.action, {}), "action", action.shape[1])
    mode = settings.normalisation
    return Normalisation(
        mode,
        _scale(mode, state, train, state_names),
        _scale(mode, action[:, dimensions], train, [action_names[d] for d in dimensions], placed),
    ), dimensions


def _check_widths(source: LeRobotDataset, kept: Sequence[int], widths: Sequence[int], name: str) -> None:
    for index, width in zip(kept, widths, strict=True):
        if width != widths[0]:
            raise GhostError(
                f"{source.data_file(index)}: column {name!r} has {width} dimensions in episode {index} and {widths[0]}"
                f" in episode {kept[0]}; they must be equally many"
            )


def _scale(
    mode: str,
    raw: np.ndarray,
    train: np.ndarray,
    names: Sequence[str],
    groups: Mapping[str, tuple[int, ...]] | None = None,
) -> Scale:
    """The scale of the training steps. A dimension that moves in test episodes alone has the limits of all episodes: as
    a constant it would be 0 everywhere, and its error would not be seen."""
    own, every = Scale.measured(mode, raw[train], names, groups), Scale.measured("limits", raw, names)
    low, high = np.where(own.constant, (every.low, every.high), (own.low, own.high))
    return replace(own, low=low, high=high)


def _groups(source: LeRobotDataset, settings: Settings, width: int) -> dict[str, tuple[int, ...]]:
    """The groups of action dimensions: those asked for, else those of meta/modality.json, else the article's."""
    if set(source.tasks.values()) == PUBLISHED and width == DIMENSIONS and not settings.action_groups:
        return dict(GROUPS)
    asked = dict(settings.action_groups) or {
        name: (part.get("start"), part.get("end"))
        for name, part in source.modality.get("action", {}).items()
        if part.get("original_key", settings.action) == settings.action
    }
    for name, ends in asked.items():
        whole = isinstance(ends, list | tuple) and len(ends) == 2 and all(type(end) is int for end in ends)
        if not whole or not 0 <= ends[0] < ends[1] <= width:
            raise GhostError(
                f"{source.folder}: action group {name!r} must be [first, end] with 0 <= first < end <= {width}, the"
                f" width of {settings.action!r}; got {list(ends) if isinstance(ends, tuple) else ends}"
            )
    return {str(name): tuple(range(*ends)) for name, ends in asked.items()}


@dataclass(frozen=True)
class _Written:
    """The data set in the run's folder: its files, in three parts."""

    root: Path
    source: LeRobotDataset
    cameras: tuple[str, ...]
    tasks: list[str]
    normalisation: Normalisation
    dimensions: tuple[int, ...]

    def data(self, kept: Sequence[int]) -> list[str]:
        """The steps, one file for each file of the source."""
        names, first = [], 0
        new = {index: number for number, index in enumerate(kept)}
        for number, episodes in enumerate(self._by_file(kept).values()):
            tables = []
            for index in episodes:
                tables.append(self._table(index, new[index], first))
                first += len(tables[-1])
            names.append(DATA_PATH.format(**_place(number)))
            write_parquet(self.root / names[-1], pa.concat_tables(tables))
        return names

    def _by_file(self, kept: Sequence[int]) -> dict[Path, list[int]]:
        files: dict[Path, list[int]] = {}
        for index in kept:
            files.setdefault(self.source.data_file(index), []).append(index)
        return files

    def _table(self, index: int, new: int, first: int) -> pa.Table:
        """The rows of an episode, with the number `new`."""
        episode, names = self.source.episode(index), self.source.names
        steps = np.arange(len(episode))
        tasks = np.array([self.tasks.index(self.source.tasks[int(task)]) for task in episode.task])
        own: dict[str, Any] = {
            STATE: _vectors(self.normalisation.state.apply(episode.state)),
            ACTION: _vectors(self.normalisation.action.apply(episode.action[:, self.dimensions])),
            "timestamp": (steps / self.source.fps).astype(np.float32),
            "frame_index": steps,
            "episode_index": np.full(len(steps), new),
            "index": first + steps,
            TASK: tasks,
        }
        dropped = {*own, names.state, names.action, names.task, *(set(self.source.cameras) - set(self.cameras))}
        table = self.source.steps(index)
        rest = {name: table[name] for name in table.column_names if name not in dropped}
        return pa.table(own | rest)

    def videos(self, kept: Sequence[int]) -> list[str]:
        names = []
        for camera, files in self._videos(kept).items():
            for path, number in files.items():
                names.append(VIDEO_PATH.format(video_key=camera, **_place(number)))
                link(path, self.root / names[-1])
        return names

    def _videos(self, kept: Sequence[int]) -> dict[str, dict[Path, int]]:
        """The videos of each camera, numbered as they appear."""
        found: dict[str, dict[Path, int]] = {}
        for camera in (camera for camera in self.cameras if camera in self.source.filmed):
            paths = dict.fromkeys(self.source.video_file(index, camera) for index in kept)
            found[camera] = {path: number for number, path in enumerate(paths)}
        return found

    def meta(self, kept: Sequence[int]) -> list[str]:
        episodes, lengths, first = [], self.source.lengths(), 0
        files, videos = {path: k for k, path in enumerate(self._by_file(kept))}, self._videos(kept)
        for new, index in enumerate(kept):
            known = self.source.episodes[index]
            facts = {key: value for key, value in known.items() if not key.startswith(OF_THE_FORMAT)}
            line: dict[str, Any] = {k: value for k, value in facts.items() if isinstance(value, str | int | float)}
            length = int(lengths[index])
            tasks = [self.source.instruction(index)]
            line |= {"episode_index": new, "tasks": tasks, "length": length}
            line |= {"dataset_from_index": first, "dataset_to_index": first + length}
            line |= {f"data/{key}": at for key, at in _place(files[self.source.data_file(index)]).items()}
            for camera, numbers in videos.items():
                begins_s = float(known.get(f"videos/{camera}/from_timestamp") or 0.0)
                place = _place(numbers[self.source.video_file(index, camera)])
                line |= {f"videos/{camera}/{key}": at for key, at in place.items()}
                line[f"videos/{camera}/from_timestamp"] = begins_s
                line[f"videos/{camera}/to_timestamp"] = begins_s + length / self.source.fps
            episodes.append(line)
            first += length
        tables = {
            "meta/tasks.parquet": task_table(self.tasks),
            "meta/episodes/chunk-000/file-000.parquet": _table(episodes, f"{self.source.folder}/meta"),
        }
        for name, table in tables.items():
            write_parquet(self.root / name, table)
        values = {"meta/info.json": self._info(len(kept), first), NORMALISATION: self.normalisation.plain()}
        for name, value in values.items():
            write_json(self.root / name, value)
        return [*tables, *values]

    def _info(self, episodes: int, steps: int) -> dict[str, Any]:
        known = self.source.info["features"]
        features: dict[str, Any] = {
            name: {"dtype": "float32", "shape": [len(scale.low)], "names": list(scale.names)}
            for name, scale in ((STATE, self.normalisation.state), (ACTION, self.normalisation.action))
        }
        features |= {camera: known[camera] for camera in self.cameras}
        return {
            "codebase_version": "v3.0",
            "robot_type": str(self.source.info.get("robot_type", "")),
            "total_episodes": episodes,
            "total_frames": steps,
            "total_tasks": len(self.tasks),
            "chunks_size": CHUNK,
            "fps": self.source.info["fps"],
            "data_path": DATA_PATH,
            "video_path": VIDEO_PATH if set(self.cameras) & set(self.source.filmed) else None,
            "features": features,
        }


def _place(number: int) -> dict[str, int]:
    return {"chunk_index": number // CHUNK, "file_index": number % CHUNK}


def _vectors(values: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def _table(episodes: list[dict[str, Any]], where: str) -> pa.Table:
    """Lines of a table; refused where a column has numbers that are too large, or values of several kinds."""
    try:
        return pa.Table.from_pylist(episodes)
    except (OverflowError, pa.ArrowException) as error:
        raise GhostError(f"{where}: what it says of its episodes is no table: {error}") from None
