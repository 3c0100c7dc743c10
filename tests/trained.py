"""A tiny feature cache and two decoders trained on it, by the real steps: a second or two."""

from __future__ import annotations

import json
from pathlib import Path

from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from ghost.steps.train import train

SEEDS = [42, 123]
DEMOS = {
    "episodes": 40,
    "steps": 30,
    "fps": 10,
    "robot_seed": 0,
    "state_noise": 0.01,
    "scene_noise": 0.01,
    "episodes_per_file": 40,
}
FEATURES = {
    "train_per_task": [8] * 10,
    "test_per_task": [4] * 10,
    "train_episodes": 30,
    "train_timesteps": 40,
    "test_timesteps": 20,
    "horizon": 4,
    "d_state": 64,
    "d_action": 32,
    "samples_per_shard": 64,
    "tokens": 6,
    "d_token": 16,
    "text_tokens": 2,
    "hidden": 16,
    "weights_seed": 0,
}
TRAINING = {"split": "sample", "epochs": 2, "batch_size": 32, "learning_rate": 1e-3}
WIDTHS = {"hidden": 8, "d_context": 4, "d_latent": 4}


def row(name: str, step: str, module: str, settings: dict, seeds: list[int], needs: list[str]) -> str:
    """A line of the table, as steps get it."""
    line = {"name": name, "step": step, "module": module, "settings": settings, "seeds": seeds, "needs": needs}
    return json.dumps({**line, "scale": "smoke", "reduced": {}})


def train_tiny(runs: Path) -> dict[str, Path]:
    """The manifests of demos, features, ghost and mlp, below `runs`."""
    made = {name: runs / name / "manifest.json" for name in ("demos", "features", "ghost", "mlp")}
    make_demos(row("demos", "make_demos", "ghost.data.dual_arm", DEMOS, [0], []), made["demos"])
    backbone = row("features", "cache_features", "ghost.backbones.standin", FEATURES, [0], ["demos"])
    cache_features(backbone, made["features"], [made["demos"]])
    for name in ("ghost", "mlp"):
        line = row(name, "train", f"ghost.decoders.{name}", {**TRAINING, **WIDTHS}, SEEDS, ["features"])
        train(line, (made["features"],), made[name])
    return made
