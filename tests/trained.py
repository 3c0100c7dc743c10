"""A tiny feature cache and two decoders trained on it, by the real steps: a second or two."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from conftest import declaration
from ghost.data.features import INDEX
from ghost.data.results import Outcome
from ghost.files import write_json
from ghost.runs.driver import Plan, Unit, execute
from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from ghost.steps.train import train
from ghost.study import DECLARED, groot

KNOWN = (*DECLARED, *groot.replaced(DECLARED, backbone="groot", checkpoint={}, demos="recorded").experiments)
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


def declared(name: str, step: str, module: str, settings: dict, seeds: list[int], needs: list[str]) -> str:
    """An experiment as steps receive it. It stands in for what the study says of its module."""
    modules = [f"ghost.steps.{step}", module]
    alike = [experiment for experiment in KNOWN if (experiment.step, experiment.module) == (step, module)]
    stand_ins = [asdict(stand_in) for experiment in alike[:1] for stand_in in experiment.stand_ins]
    named = {source.setting: source.place(settings) for experiment in alike[:1] for source in experiment.places}
    places = {setting: asdict(place) for setting, place in named.items() if place}
    return json.dumps(
        {"name": name, "step": step, "module": module, "modules": modules, "settings": settings, "seeds": seeds}
        | {"needs": needs, "scale": "smoke", "reduced": {}, "stand_ins": stand_ins, "places": places}
    )


def write_cache(
    manifest: Path, arrays: dict[str, np.ndarray], tokens: np.ndarray, per_shard: int, index: dict, **changes: Any
) -> Path:
    """A feature cache of given arrays and tokens [n, T, D], by the real driver."""

    def run(unit: Unit) -> Outcome:
        names = []
        for number, start in enumerate(range(0, len(tokens), per_shard)):
            (unit.folder / "tokens").mkdir(exist_ok=True)
            names.append(f"tokens/{number:05d}.npy")
            np.save(unit.folder / names[-1], tokens[start : start + per_shard])
        write_json(
            unit.folder / INDEX,
            {"starts": [], "normalisation": None, **index, "samples_per_shard": per_shard, "shards": names},
        )
        return Outcome([], arrays, (INDEX, *names))

    stand_ins = [{"of": "data"}, {"of": "backbone"}]
    given = declaration("features", settings={}, stand_ins=stand_ins, **{"seeds": [7], **changes})
    execute(lambda job: Plan(run), json.dumps(given), manifest)
    return manifest


def train_tiny(runs: Path) -> dict[str, Path]:
    """The manifests of demos, features, ghost and mlp, below `runs`."""
    made = {name: runs / name / "manifest.json" for name in ("demos", "features", "ghost", "mlp")}
    execute(make_demos, declared("demos", "make_demos", "ghost.data.dual_arm", DEMOS, [0], []), made["demos"])
    backbone = declared("features", "cache_features", "ghost.backbones.standin", FEATURES, [0], ["demos"])
    execute(cache_features, backbone, made["features"], [made["demos"]])
    for name in ("ghost", "mlp"):
        experiment = declared(name, "train", f"ghost.decoders.{name}", {**TRAINING, **WIDTHS}, SEEDS, ["features"])
        execute(train, experiment, made[name], [made["features"]])
    return made
