"""The meta data of a LeRobot data set: read, and checked before anything is done with them.

All of it may come from elsewhere: types, ranges and numbering are checked here, paths where they are used.
"""

import re
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ghost.data.normalisation import numbered
from ghost.errors import GhostError, one_line
from ghost.files import parse_json, read_json, read_lines
from ghost.forms import COUNT, has_form, require

VERSIONS = ("v2.0", "v2.1", "v3.0")
LENGTH = range(1, 10**7)  # steps of an episode, and rows of a file
MOST_STEPS = 10**8  # of a data set
FASTEST_FPS = 10_000
INFO = {"codebase_version": str, "fps": float, "features": {str: {"dtype": str}}, "data_path": str}
OPTIONAL = {"chunks_size": LENGTH, "video_path": (str, None), "convention": str}
EPISODE = {"episode_index": COUNT, "length": LENGTH}
TASK = {"task_index": COUNT, "task": str}
MODALITY = {str: {str: dict}}
FIELDS = ("episode_index", "episode_chunk", "chunk_index", "file_index", "video_key")  # of a template of paths

WIDTH = re.compile(r"(?:0\d)?d?")


def read_info(folder: Path) -> dict[str, Any]:
    """meta/info.json."""
    path = folder / "meta/info.json"
    if not path.is_file():
        raise GhostError(f"{folder} is no LeRobot data set: it has no meta/info.json")
    info: dict[str, Any] = read_json(path, dict)
    missing = [key for key in INFO if key not in info]
    if missing:
        raise GhostError(f"{path} lacks {', '.join(missing)}")
    if info["codebase_version"] not in VERSIONS:
        raise GhostError(f"{folder}: LeRobot {info['codebase_version']!r}; this reads {', '.join(VERSIONS)}")
    require(info, INFO | {key: form for key, form in OPTIONAL.items() if key in info}, path)
    if not 0 < info["fps"] <= FASTEST_FPS:
        raise GhostError(f"{path}: fps must lie above 0 and at most at {FASTEST_FPS}, got {info['fps']}")
    for key in ("data_path", "video_path"):
        if info.get(key) is not None:
            _check_template(info[key], f"{path}: {key}")
    return info


def _check_template(template: str, where: str) -> None:
    """A template may name our fields, with a width of one digit: a larger one would fill the memory."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise GhostError(f"{where} is no template of paths: {error}") from None
    for _, name, spec, conversion in parts:
        if name is not None and (name not in FIELDS or conversion or not WIDTH.fullmatch(spec or "")):
            raise GhostError(f"{where}: cannot fill in {template!r}")


def read_modality(folder: Path) -> dict[str, Any]:
    """NVIDIA's meta/modality.json, or nothing."""
    path = folder / "meta/modality.json"
    found: dict[str, Any] = read_json(path, MODALITY) if path.is_file() else {}
    return found


def read_meta(folder: Path, info: Mapping[str, Any]) -> tuple[dict[int, str], list[dict[str, Any]]]:
    """The instruction of every task by its index, and the meta data of every episode, in order."""
    tasks, episodes = (_meta_v3 if info["codebase_version"] == "v3.0" else _meta_v2)(folder)
    for lines, form, what in ((tasks, TASK, "a task"), (episodes, EPISODE, "an episode")):
        require(lines, [form], f"{folder}/meta: {what}")
    tasks.sort(key=lambda line: line["task_index"])
    episodes.sort(key=lambda line: line["episode_index"])
    names = [line["task"] for line in tasks]
    for lines, what in ((tasks, "task"), (episodes, "episode")):
        if [line[f"{what}_index"] for line in lines] != list(range(len(lines))) or not lines:
            raise GhostError(f"{folder}/meta: the {what}s are not numbered 0 to {max(0, len(lines) - 1)}")
    if sum(line["length"] for line in episodes) > MOST_STEPS:
        raise GhostError(f"{folder}/meta: the episodes have more than {MOST_STEPS} steps")
    known = set(names)
    for line in episodes:
        if "tasks" in line:
            require(line["tasks"], [str], f"{folder}/meta: tasks of episode {line['episode_index']}")
            unknown = [name for name in line["tasks"] if name not in known]
            if unknown:
                raise GhostError(f"{folder}/meta: episode {line['episode_index']} has an unlisted task, {unknown[0]!r}")
    return dict(enumerate(names)), episodes


def _meta_v2(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    tasks, episodes = (_read_lines(folder / f"meta/{name}.jsonl") for name in ("tasks", "episodes"))
    return tasks, episodes


def _meta_v3(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    paths = sorted((folder / "meta/episodes").rglob("*.parquet"))
    if not paths:
        raise GhostError(f"{folder} has no meta/episodes/*/*.parquet")
    table = read_parquet(folder / "meta/tasks.parquet")
    names = [name for name in table.column_names if name != "task_index"]  # pandas' index: `task`, or unnamed
    if len(names) != 1 or len(names) == len(table.column_names):
        raise GhostError(f"{folder}/meta/tasks.parquet: expected task and task_index, got {table.column_names}")
    tasks = [{"task_index": line["task_index"], "task": line[names[0]]} for line in _lines(table, folder)]
    return tasks, [line for path in paths for line in _lines(read_parquet(path), path)]


def _lines(table: pa.Table, where: Path) -> list[dict[str, Any]]:
    try:
        return list(table.to_pylist())
    except (pa.ArrowException, ValueError, OverflowError) as error:  # a time or a text that Python does not have
        raise GhostError(f"{where}: {one_line(str(error))}") from None


def _read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise GhostError(f"{path}: no such file, but a LeRobot v2 data set has one")
    return [
        parse_json(line, f"{path}, line {number},") for number, line in enumerate(read_lines(path), 1) if line.strip()
    ]


def read_parquet(path: Path) -> pa.Table:
    """A whole table. The number of rows is looked at first: a small file can hold a column that fills the memory."""
    if not path.is_file():
        raise GhostError(f"{path}: no such file")
    try:
        with pq.ParquetFile(path) as file:
            if not 0 <= file.metadata.num_rows < LENGTH.stop:
                raise GhostError(f"{path} has {file.metadata.num_rows} rows; at most {LENGTH.stop - 1} are read")
            table = file.read()
        names = table.column_names
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise GhostError(f"{path} is not parquet: {one_line(str(error))}") from None
    if len(set(names)) != len(names):
        raise GhostError(f"{path} has two columns of one name")
    return table


def dimension_names(feature: Mapping[str, Any], kind: str, width: int) -> tuple[str, ...]:
    """The names of a vector's dimensions, in a list or, as in {"motors": [...]}, in lists; else numbered."""
    named = feature.get("names")
    lists = list(named.values()) if isinstance(named, dict) else [named]
    flat = [name for part in lists if isinstance(part, list) for name in part]
    return tuple(flat) if has_form(flat, [str]) and len(flat) == width else numbered(kind, width)
