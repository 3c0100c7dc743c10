"""LeRobot data sets in the older versions of the format, which the project reads and does not write."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.files import read_json, write_json

DATA_PATH = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO_PATH = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
V3_ONLY = ("data/", "videos/", "meta/", "dataset_")


def write_version(version: str, folder: Path, recordings: Sequence[Recording], **how: Any) -> tuple[str, ...]:
    """Like `write_dataset`. For v2 one episode per file, under v2's names, with the meta data as lines of JSON."""
    if version == "v3.0":
        return write_dataset(folder, recordings, **how)
    files = []
    for name in write_dataset(folder, recordings, **{**how, "episodes_per_file": 1}):
        kind, place, *_ = name.split("/")
        new = name
        if kind in ("data", "videos"):  # data/chunk-000/file-007.parquet, videos/<camera>/chunk-000/file-007.mp4
            path = DATA_PATH if kind == "data" else VIDEO_PATH
            new = path.format(episode_chunk=0, episode_index=int(name.partition("file-")[2][:3]), video_key=place)
            (folder / new).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).rename(folder / new)
        elif name.endswith(".parquet"):  # meta/tasks.parquet, meta/episodes/chunk-000/file-000.parquet
            new = f"meta/{place.removesuffix('.parquet')}.jsonl"
            lines = pq.read_table(folder / name).to_pylist()
            kept = [{key: value for key, value in line.items() if not key.startswith(V3_ONLY)} for line in lines]
            (folder / new).write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
            (folder / name).unlink()
        files.append(new)
    info = read_json(folder / "meta/info.json")
    paths = {"data_path": DATA_PATH, "video_path": info["video_path"] and VIDEO_PATH}
    write_json(folder / "meta/info.json", {**info, "codebase_version": version, **paths})
    return tuple(files)
