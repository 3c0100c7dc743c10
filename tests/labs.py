"""Two small data sets as labs have them: v2.1 with video and 14 actions, v3.0 with pictures and 7 actions."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from ghost.data.lerobot_writer import Recording
from ghost.files import read_json, write_json
from lerobot_v2 import write_version

TASKS = ("pick up the red cube", "open the drawer", "wipe 50 % of the table & more")
CAMERAS = ("observation.images.top", "observation.images.wrist")
PIXELS = 32
CONSTANT = 13  # a dimension that never changes, at
STUCK_AT = 0.25


def recordings(episodes: int, d_action: int, tasks: tuple[str, ...], seed: int) -> list[Recording]:
    """A bright square moves on a line; the action is where it will be, in units of its own for every dimension."""
    rng, made = np.random.default_rng(seed), []
    units = rng.uniform(0.5, 20, d_action)
    for episode in range(episodes):
        length = int(rng.integers(20, 36))
        at = np.linspace(rng.uniform(0, 0.4), rng.uniform(0.6, 1), length + 1)  # [length + 1]
        turn = episode % len(tasks) + 1
        motion = np.sin(turn * at[:, None] * np.linspace(1, 3, d_action)) * units
        if d_action > CONSTANT:
            motion[:, CONSTANT] = STUCK_AT
        columns = {
            "observation.state": motion[:-1].astype(np.float32),
            "action": motion[1:].astype(np.float32),
        }
        videos = {camera: film(at[:-1], camera == CAMERAS[0]) for camera in CAMERAS}
        made.append(Recording(tasks[episode % len(tasks)], columns, videos))
    return made


def film(at: np.ndarray, red: bool) -> np.ndarray:
    """Pictures [steps, PIXELS, PIXELS, 3] of a square at this share of the width."""
    pictures = np.full((len(at), PIXELS, PIXELS, 3), 40, np.uint8)
    for picture, share in zip(pictures, at, strict=True):
        left = int(share * (PIXELS - 8))
        picture[12:20, left : left + 8, 0 if red else 1] = 230
    return pictures


def write_filmed(folder: Path, version: str = "v2.1") -> Path:
    """3 tasks, 12 episodes of unequal length, 14 actions of which one never changes, two cameras."""
    made = recordings(12, 14, TASKS, seed=0)
    write_version(version, folder, made, fps=10, robot="two arms", tasks=list(TASKS), episodes_per_file=5)
    info = read_json(folder / "meta/info.json")
    info["features"]["action"]["names"] = {"motors": [f"joint_{k}" for k in range(14)]}
    write_json(folder / "meta/info.json", info)
    groups = {"left_arm": {"start": 0, "end": 7}, "right_arm": {"start": 7, "end": 14}}
    write_json(folder / "meta/modality.json", {"state": groups, "action": groups})
    return folder


def write_pictures(folder: Path) -> Path:
    """One task, 6 episodes, 7 actions, pictures as PNG in parquet, v3.0, with names of columns of its own."""
    made = recordings(6, 7, ("push the block",), seed=1)
    bare = [Recording(each.task, each.columns) for each in made]
    write_version("v3.0", folder, bare, fps=10, robot="arm", episodes_per_file=6)
    path = folder / "data/chunk-000/file-000.parquet"
    table, info = pq.read_table(path), read_json(folder / "meta/info.json")
    for camera in CAMERAS:
        files = [_png(image) for each in made for image in each.videos[camera]]
        table = table.append_column(camera, pa.array([{"bytes": file, "path": ""} for file in files]))
        info["features"][camera] = {"dtype": "image", "shape": [PIXELS, PIXELS, 3]}
    renamed = {"observation.state": "state", "action": "actions"}
    pq.write_table(table.rename_columns([renamed.get(name, name) for name in table.column_names]), path)
    info["features"] = {renamed.get(name, name): feature for name, feature in info["features"].items()}
    write_json(folder / "meta/info.json", info)
    return folder


def _png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()
