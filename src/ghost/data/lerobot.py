"""Read data sets in LeRobot's format, v2.0, v2.1 and v3.0, with pyarrow and PyAV alone.

    meta/info.json      version, fps, features, templates of the paths below
    meta/tasks.*        task index -> instruction: jsonl (v2), parquet (v3)
    meta/episodes*      length of every episode: jsonl (v2); parquet that also names its data and video files (v3)
    meta/modality.json  NVIDIA's short names for cameras (optional)
    data/...parquet     one episode per file (v2), several episodes per file (v3); pictures too, if they are no videos
    videos/...mp4       likewise, for each camera

We do not use the lerobot package: it reads only one of the versions and needs its own torch. All paths come from the
data set's own files, so each is checked to lie inside its folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ghost.data.lerobot_frames import decode_pictures, decode_video, is_picture
from ghost.data.lerobot_meta import read_info, read_meta, read_modality, read_parquet
from ghost.data.normalisation import FILE as NORMALISATION
from ghost.data.normalisation import Normalisation
from ghost.errors import GhostError, did_you_mean, one_line
from ghost.files import confined
from ghost.forms import has_form

STATE, ACTION = "observation.state", "action"
LONGEST_S = 10**6  # of a video
CHUNK = 1000  # files per folder, as in LeRobot
CAMERAS = ("video", "image")  # dtypes of their features
TASK = "task_index"
LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)


@dataclass(frozen=True)
class Columns:
    """The names of the columns that data sets name differently."""

    state: str = STATE
    action: str = ACTION
    task: str = TASK  # indices of the tasks in the meta data, or the instructions themselves

    def __post_init__(self) -> None:
        if len({self.state, self.action, self.task}) != 3:
            raise GhostError(f"the columns of state, action and task must differ, got {self.state}, {self.action}")

    @property
    def own(self) -> tuple[str, ...]:
        return (self.state, self.action, "timestamp", self.task, "episode_index")


@dataclass(frozen=True)
class Episode:
    """One demonstration of S steps."""

    index: int
    state: np.ndarray  # [S, d_state] float32
    action: np.ndarray  # [S, d_action] float32
    timestamp: np.ndarray  # [S] s, from the episode's start
    task: np.ndarray  # [S] int64: index of the instruction
    columns: Mapping[str, np.ndarray]  # all others by name: observation.*, phase, ...; each [S, ...]

    def __len__(self) -> int:
        return len(self.action)


@dataclass
class LeRobotDataset:
    """A data set on disk. Only its meta data and the parquet file that was read last are in memory."""

    folder: Path
    info: Mapping[str, Any]
    tasks: Mapping[int, str]
    episodes: Sequence[Mapping[str, Any]]  # the meta data of each, in order
    modality: Mapping[str, Mapping[str, Mapping[str, Any]]]  # NVIDIA's, or empty
    names: Columns = field(default_factory=Columns)
    _read: tuple[Path, pa.Table] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: Path, names: Columns | None = None) -> Self:
        info = read_info(path)
        tasks, episodes = read_meta(path, info)
        opened = cls(path, info, tasks, episodes, read_modality(path), names or Columns())
        if opened.names.task != TASK:
            opened.tasks = opened._instructions() or tasks
        return opened

    def _instructions(self) -> dict[int, str]:
        """The different texts of the column of tasks, numbered as they first appear; none if it holds indices."""
        found: dict[str, None] = {}
        for index in range(len(self)):
            column = self.steps(index)[self.names.task]
            if not is_text(column.type):
                return {}
            if column.null_count:
                raise GhostError(
                    f"{self.data_file(index)}: column {self.names.task!r} must have an instruction in every step, but"
                    f" {column.null_count} of episode {index} have none"
                )
            found |= dict.fromkeys(map(str, column.unique().to_pylist()))
        return dict(enumerate(found))

    @property
    def fps(self) -> float:
        return float(self.info["fps"])

    @property
    def cameras(self) -> tuple[str, ...]:
        """Of both kinds: videos, and pictures in the data files."""
        return tuple(name for name, feature in self.info["features"].items() if feature["dtype"] in CAMERAS)

    @property
    def filmed(self) -> tuple[str, ...]:
        """The cameras whose pictures are videos."""
        return tuple(name for name in self.cameras if self.info["features"][name]["dtype"] == "video")

    def __len__(self) -> int:
        return len(self.episodes)

    def lengths(self) -> np.ndarray:
        """Steps of every episode [E]."""
        return np.array([episode["length"] for episode in self.episodes], dtype=np.int64)

    def starts(self) -> list[str]:
        """A digest of the scene in which each episode starts; empty unless every episode has one."""
        found = [str(episode.get("start", "")) for episode in self.episodes]
        return found if all(found) else []

    def episode(self, index: int) -> Episode:
        """The steps of one episode, with every column of its file but the pictures."""
        steps, path = self.steps(index), self.data_file(index)
        if self.names.task != TASK and is_text(steps[self.names.task].type):
            number = {text: index for index, text in self.tasks.items()}
            indices = [number[str(text)] for text in steps[self.names.task].to_pylist()]
            place = steps.column_names.index(self.names.task)
            steps = steps.set_column(place, self.names.task, pa.array(indices, pa.int64()))
        numeric = [entry.name for entry in steps.schema if not is_picture(entry.type)]
        values = {name: as_array(steps[name], f"{path}: column {name}") for name in numeric}
        self._check(values, f"{path}: episode {index}")
        return Episode(
            index,
            state=values[self.names.state].astype(np.float32),
            action=values[self.names.action].astype(np.float32),
            timestamp=values["timestamp"].astype(np.float64),
            task=values[self.names.task].astype(np.int64),
            columns={name: value for name, value in values.items() if name not in self.names.own},
        )

    def steps(self, index: int) -> pa.Table:
        """The rows of one episode."""
        meta, path = self._meta(index), self.data_file(index)
        if self._read is None or self._read[0] != path:
            self._read = (path, read_parquet(path))
        table = self._read[1]
        for name in self.names.own:
            if name not in table.column_names:
                vectors = ", ".join(entry.name for entry in table.schema if isinstance(entry.type, LISTS))
                hint = did_you_mean(name, table.column_names)
                if name in (self.names.state, self.names.action):
                    hint = f"; its vectors are {vectors or 'none'}"
                raise GhostError(f"{path} has no column {name!r}{hint}")
        own = np.flatnonzero(as_array(table["episode_index"], f"{path}: column episode_index") == index)
        if len(own) != meta["length"]:
            raise GhostError(f"{path}: episode {index} has {len(own)} steps, the meta data say {meta['length']}")
        if np.any(np.diff(own) != 1):
            raise GhostError(f"{path}: the steps of episode {index} do not stand together")
        return table.slice(int(own[0]), len(own))

    def instruction(self, index: int) -> str:
        """The first task of an episode, in words."""
        named = self._meta(index).get("tasks")
        if not named or self.names.task != TASK:
            return self.tasks[int(self.episode(index).task[0])]
        return str(named[0])

    def _check(self, values: Mapping[str, np.ndarray], where: str) -> None:
        """Refuse an episode whose columns are not vectors, times and tasks that fit the meta data."""
        names = self.names
        for name, axes in ((names.state, 2), (names.action, 2), ("timestamp", 1), (names.task, 1)):
            column = values.get(name, np.zeros(0))
            kinds = "iu" if name == names.task else "iuf"
            if (
                column.ndim != axes
                or column.dtype.kind not in kinds
                or not np.isfinite(column).all()
                or not column.size
            ):
                raise GhostError(f"{where}: {name} must hold {'vectors of ' if axes == 2 else ''}finite numbers")
        steps = np.arange(len(values[names.action]))
        if np.abs(values["timestamp"] - steps / self.fps).max() > 0.5 / self.fps:
            raise GhostError(f"{where}: its timestamps are not those of {self.fps:g} steps a second, from 0 on")
        if "frame_index" in values and not np.array_equal(values["frame_index"], steps):
            raise GhostError(f"{where}: its frames are not numbered 0 to {len(steps) - 1}")
        unknown = sorted(set(values[names.task].tolist()) - self.tasks.keys())
        if unknown:
            raise GhostError(
                f"{where}: task {unknown[0]} is not in the meta data, which have 0 to {len(self.tasks) - 1}"
            )

    def frames(self, index: int, camera: str, steps: Sequence[int]) -> np.ndarray:
        """Images [n, height, width, 3] uint8 of these steps of an episode, in the order asked for."""
        meta, key = self._meta(index), self.camera(camera)
        wrong = [step for step in steps if not 0 <= step < meta["length"]]
        if wrong:
            raise GhostError(f"{self.folder}: episode {index} has steps 0 to {meta['length'] - 1}, not {wrong[0]}")
        if key not in self.filmed:
            table, path = self.steps(index), self.data_file(index)
            if key not in table.column_names:
                raise GhostError(f"{path} has no column {key!r}{did_you_mean(key, table.column_names)}")
            shape = self.info["features"][key].get("shape")
            return decode_pictures(table[key].take(list(steps)), shape, f"{path}: column {key!r}")
        # In v3 a video holds several episodes, one after the other.
        begins_s = meta.get(f"videos/{key}/from_timestamp", 0.0)
        if not has_form(begins_s, float) or not 0 <= begins_s <= LONGEST_S:
            raise GhostError(f"{self.folder}/meta: episode {index} begins at {begins_s} s of its video")
        first = round(begins_s * self.fps)
        decoded = dict(decode_video(self.video_file(index, key), self.fps, sorted({first + step for step in steps})))
        return np.stack([decoded[first + step] for step in steps])

    def normalisation(self) -> Normalisation | None:
        """How its states and actions were normalised; None if they are raw."""
        path = self.folder / NORMALISATION
        return Normalisation.read(path) if path.is_file() else None

    def require_normalisation(self) -> Normalisation:
        """The same for GR00T, which needs normalised values."""
        found = self.normalisation()
        if found is None:
            raise GhostError(
                f"{self.folder} has no {NORMALISATION}: its states and actions are raw, but GR00T needs normalised ones"
            )
        return found

    def data_file(self, index: int) -> Path:
        return self._file("data_path", "data", self._meta(index))

    def video_file(self, index: int, camera: str) -> Path:
        key = self.camera(camera)
        return self._file("video_path", f"videos/{key}", self._meta(index), video_key=key)

    def _meta(self, index: int) -> Mapping[str, Any]:
        if not 0 <= index < len(self):
            raise GhostError(f"{self.folder} has episodes 0 to {len(self) - 1}, not {index}")
        return self.episodes[index]

    def camera(self, name: str) -> str:
        """The camera's feature, found by its full name, its last part, or NVIDIA's name for it."""
        alias = self.modality.get("video", {}).get(name, {}).get("original_key", name)
        for key in self.cameras:
            if key in (name, alias) or key.rsplit(".", 1)[-1] == name:
                return key
        raise GhostError(f"{self.folder} has no camera {name!r}{did_you_mean(name, self.cameras)}")

    def _file(self, template: str, place: str, meta: Mapping[str, Any], **names: str) -> Path:
        """The file of an episode: the template of info.json, filled in by its number (v2) or its meta data (v3)."""
        index = meta["episode_index"]
        values = {
            "episode_index": index,
            "episode_chunk": index // int(self.info.get("chunks_size", CHUNK)),
            "chunk_index": meta.get(f"{place}/chunk_index", 0),
            "file_index": meta.get(f"{place}/file_index", 0),
            **names,
        }
        try:
            name = str(self.info[template]).format(**values)
        except (KeyError, IndexError, ValueError, AttributeError, TypeError):
            raise GhostError(
                f"{self.folder}/meta/info.json: cannot fill in {template} {self.info.get(template)!r}"
            ) from None
        path = confined(self.folder, name)
        if not path.is_file():
            raise GhostError(f"{path}: no such file, but it should hold episode {index}")
        return path


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts, each by itself or, as pandas' categories, by its number in a list."""
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(values) or pa.types.is_large_string(values))


def as_array(column: pa.ChunkedArray, where: str) -> np.ndarray:
    """A column as an array. Lists, and lists of lists, become further axes."""
    values, shape = column.combine_chunks(), [len(column)]
    try:
        while isinstance(values.type, LISTS):
            flat = values.flatten()
            width = len(flat) // max(1, len(values))
            lengths = np.asarray(values.value_lengths()) if len(values) else np.zeros(0)
            if values.null_count or not np.all(lengths == width):
                raise GhostError(f"{where} has lists of unequal length")
            values, shape = flat, [*shape, width]
        return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(shape)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:  # a type that numpy does not have
        raise GhostError(f"{where} cannot be read: {one_line(str(error))}") from None
