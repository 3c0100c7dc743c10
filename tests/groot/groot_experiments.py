"""Experiments at a tiny size, and a recorded data set: the stand-in's episodes, in raw units, filmed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ghost.data import dual_arm
from ghost.data.lerobot_writer import Recording
from ghost.data.normalisation import Normalisation
from lerobot_v2 import write_version
from trained import declared

CAMERAS = ("observation.images.head", "observation.images.wrist")
PIXELS = 48
EPISODES = 20
FEATURES = {
    "tokens": 8,
    "d_token": 64,
    "token_seed": 0,
    "noise_seed": 0,
    "cameras": [],
    "embodiment": "new_embodiment",
    "batch_size": 5,
    "train_per_task": [3] * 10,
    "test_per_task": [1] * 10,
    "train_episodes": 12,
    "train_timesteps": 6,
    "test_timesteps": 4,
    "horizon": 17,
    "d_state": 64,
    "d_action": 32,
    "samples_per_shard": 12,
}
FINETUNING = {
    "revision": "",
    "processor": "",
    "processor_revision": "",
    "embodiment": "new_embodiment",
    "cameras": [],
    "horizon": 17,
    "euler_steps": 4,
    "train_episodes": 12,
    "steps": 2,
    "batch_size": 4,
    "accumulation": 2,
    "learning_rate": 5e-5,
    "warmup_share": 0.05,
}


def features_experiment(**changes) -> str:
    settings, needs = {**FEATURES, **changes}, ["dual_arm", "dit"]
    return declared("dual_arm_features", "cache_features", "ghost.backbones.groot", settings, [0], needs)


def finetune_experiment(checkpoint: Path | str, **changes) -> str:
    settings = {**FINETUNING, "checkpoint": str(checkpoint), **changes}
    return declared("dit", "finetune", "ghost.backbones.groot", settings, [0], ["dual_arm"])


def demos_experiment(path: Path) -> str:
    return declared("dual_arm", "make_demos", "ghost.data.recorded", {"path": str(path)}, [0], [])


def raw_episodes() -> tuple[list[dual_arm.Demonstration], Normalisation]:
    settings = dual_arm.Settings(
        EPISODES, 20, 10, robot_seed=1, state_noise=0.01, scene_noise=0.01, episodes_per_file=8
    )
    return dual_arm.generate(settings, seed=3)


def film(scene: dict[str, np.ndarray], of: str) -> np.ndarray:
    """Pictures [S, PIXELS, PIXELS, 3]: a thing of the scene as a bright square, the target as a green one."""
    pictures = np.full((len(scene[of]), PIXELS, PIXELS, 3), 40, np.uint8)
    for name, channel in ((of, 0), ("target", 1)):
        places = np.clip((scene[name][:, :2] + 1) / 2 * PIXELS, 4, PIXELS - 5).astype(int)
        for picture, (x, y) in zip(pictures, places, strict=True):
            picture[y - 4 : y + 5, x - 4 : x + 5, channel] = 230
    return pictures


def write_recorded(folder: Path, version: str) -> Path:
    episodes, normalisation = raw_episodes()
    recordings = []
    for episode in episodes:
        state, action = normalisation.state.undo(episode.state), normalisation.action.undo(episode.action)
        columns = {"observation.state": state.astype(np.float32), "action": action.astype(np.float32)}
        columns["phase"] = episode.phase
        videos = {CAMERAS[0]: film(episode.scene, "object"), CAMERAS[1]: film(episode.scene, "hands")}
        recordings.append(Recording(dual_arm.TASKS[episode.task].name, columns, videos))
    tasks = [task.name for task in dual_arm.TASKS]
    write_version(version, folder, recordings, fps=10, robot="test", episodes_per_file=7, tasks=tasks)
    return folder
