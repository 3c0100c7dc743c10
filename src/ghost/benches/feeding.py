"""The pictures of a fine-tuning: two workers that decode them, against one.

workers   seconds until the pictures of some passes have come, drawn, decoded, cropped and coloured as NVIDIA's recipe
          for LIBERO has it, from films of LIBERO's size. The start of the workers counts. No model takes time
          between the passes, so what is measured is the pool. Eagle's processor, which would make tokens of the
          pictures, is of GR00T's environment and has no part in it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from ghost.backbones.feeding import Feed, Steps, ahead
from ghost.backbones.recipe import FineTuning
from ghost.benches import Pair, Place, interleaved
from ghost.data.lerobot import ACTION, STATE, LeRobotDataset
from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.study.groot import LIBERO_CHECKPOINT

CAMERAS = ("observation.images.image", "observation.images.wrist_image")
EPISODES, STEPS, SIDE, FPS = 10, 60, 256, 20
PASSES, BATCH, REPEATS = 12, 32, 5


def measure(place: Place) -> list[Pair]:
    feed = pictures(filmed(place.scratch / "films"), PASSES, BATCH)
    return interleaved("workers", lambda: drain(feed, 2), lambda: drain(feed, 1), REPEATS)


class Pictures(Feed):
    """The passes of a fine-tuning without what needs the model's processor."""

    def read(self, step: int, part: int, rows: np.ndarray) -> dict[str, Any]:
        episode, timestep, _ = self.drawn(step, part)
        seen = self.pictures(self.steps.views(episode[rows], timestep[rows]), (step, part), rows)
        return {"pictures": torch.from_numpy(np.array(seen))}  # [n, cameras, h, w, 3]


def pictures(dataset: LeRobotDataset, passes: int, batch_size: int) -> Pictures:
    own = {"cameras": CAMERAS, "test_episodes": 1, "steps": passes, "batch_size": batch_size}
    settings = FineTuning(**{**LIBERO_CHECKPOINT.settings, **own})
    return Pictures(Steps(dataset, settings), None, None, 0, settings, seed=0)


def drain(feed: Pictures, workers: int) -> int:
    """Take all passes; returns how many pictures came."""
    return sum(found["pictures"].shape[:2].numel() for found in ahead(feed, 0, workers))


def filmed(folder: Path, episodes: int = EPISODES, steps: int = STEPS) -> LeRobotDataset:
    """Films of a smooth scene that moves, with a little noise."""
    rng = np.random.default_rng(0)
    coarse = torch.from_numpy(rng.random((1, 3, 16, 16), np.float32))
    scene = torch.nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bicubic")[0].permute(1, 2, 0).numpy()

    def film() -> np.ndarray:
        moved = np.stack([np.roll(scene, 2 * k, axis=1) for k in range(steps)])
        noisy = 255 * moved + rng.normal(0, 4, moved.shape)
        return np.asarray(noisy.clip(0, 255), np.uint8)

    columns = {STATE: np.zeros((steps, 8), np.float32), ACTION: np.zeros((steps, 7), np.float32)}
    recordings = [Recording("move", columns, {camera: film() for camera in CAMERAS}) for _ in range(episodes)]
    write_dataset(folder, recordings, fps=FPS, robot="panda")
    return LeRobotDataset.open(folder)
