"""Let trained decoders act in LIBERO-10, once per seed.

The experiment needs the feature cache, whose backbone the policy sees with, and the training. A run with seed s acts
with the decoder that was trained with seed s, in the scenes of the setting `env_seed`. An ensemble acts with all of
them; its run with seed s is the evaluation in the scenes of env_seed s. An episode is a unit of work
(`ghost.libero.episodes`); a crash of the simulator ends the step, and so does a trial that repeats another one or a
demonstration.

    episodes.csv    a line per episode with its seeds, steps, success and phases (one per plan)
"""

import importlib
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from ghost.data.features import FeatureCache
from ghost.data.results import EPISODES, Outcome
from ghost.errors import GhostError
from ghost.files import write_text
from ghost.libero.assets import Assets, find_assets
from ghost.libero.episodes import Episode, Settings, Trial, measured_of, play, refuse_equal_trials, trials
from ghost.libero.policy import Policy
from ghost.libero.sensing import Senses
from ghost.runs.code import module_path
from ghost.runs.driver import Job, Plan, Split, Unit, main, paired
from ghost.runs.records import Run
from ghost.runs.settings import read_settings
from ghost.runs.units import Kept, Made
from ghost.training.checkpoint import load_decoder


def rollout(job: Job) -> Plan:
    """Let a trained policy act in LIBERO-10."""
    (settings,) = job.read(Settings)
    assets = find_assets()

    def run(unit: Unit) -> Split:
        features, *trained = unit.runs
        return Split(
            {trial.name: asdict(trial) for trial in trials(settings, unit.seed)},
            partial(episode, settings, assets, features, tuple(trained)),
            partial(join, unit.folder),
            without=("tasks", "trials", "misdirect", "switch_at"),
            noun="episodes",
            summary=lambda found: f"{sum(e['success'] for e in found)} of {len(found)} succeeded",
        )

    inputs = every_run if settings.ensemble else paired
    return Plan(run, inputs, assets.facts)


def every_run(seed: int, needs: Sequence[list[Run]]) -> list[Run]:
    return [run for runs in needs for run in runs]


def episode(
    settings: Settings, assets: Assets, features: Run, trained: tuple[Run, ...], folder: Path, trial: dict[str, Any]
) -> Made:
    """Play one episode."""
    policy = load_policy(settings.backbone, features, trained)
    seed = -1 if settings.ensemble else trained[0].seed
    return Made(asdict(play(settings, assets, policy, seed, Trial(**trial), demonstrated_starts(features))))


@cache
def demonstrated_starts(features: Run) -> frozenset[str]:
    return frozenset(FeatureCache.of(features).starts)


@cache
def load_policy(backbone: str, features: Run, trained: tuple[Run, ...]) -> Policy:
    """What acts: trained decoders, and the backbone of the features that they were trained on."""
    torch.set_num_threads(1)  # sums split over threads round differently
    name = f"ghost.backbones.{backbone}"
    module = importlib.import_module(name) if module_path(name) else None
    if module is None or not hasattr(module, "start"):
        raise GhostError(f"{backbone!r} is no backbone")
    made = features.record()["settings"]
    own = {field.name: made[field.name] for field in fields(module.Settings) if field.name in made}
    (settings,) = read_settings(features.name, own, module.Settings)
    decoders = [load_decoder(run) for run in trained]
    return Policy(decoders, module.start(settings, decoders[0].sizes, []).encode, Senses.of(features))


def join(folder: Path, made: list[Kept]) -> Outcome:
    found = [Episode(**kept.value) for kept in made]
    refuse_equal_trials(found)
    write_text(folder / EPISODES, pd.DataFrame(found).to_csv(index=False, lineterminator="\n"))
    return Outcome(measured_of(found), files=(EPISODES,))


if __name__ == "__main__":
    main(rollout)
