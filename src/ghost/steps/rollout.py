"""Let trained decoders act in LIBERO-10, once per seed.

The experiment needs the feature cache, whose backbone the policy sees with, and the training. A run with seed s acts
with the decoder that was trained with seed s, in the scenes of the setting `env_seed`. An ensemble acts with all of
them; its run with seed s is the evaluation in the scenes of env_seed s. An episode is a unit of work
(`ghost.libero.episodes`); a crash of the simulator ends the step, and so does a trial that repeats another one or a
demonstration. The policy acts in this process or, where `GHOST_SERVE` names an interpreter, in a server beside it
(`ghost.serving.service`), which all simulators of the job share. The episodes are the same.

    episodes.csv    a line per episode with its seeds, steps, success and phases (one per plan)
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from ghost.data.features import FeatureCache
from ghost.data.results import EPISODES, Outcome
from ghost.files import write_text
from ghost.libero.assets import Assets, find_assets
from ghost.libero.episodes import Episode, Settings, Trial, measured_of, play, refuse_equal_trials, trials
from ghost.libero.policy import Acting, Alone, Policy
from ghost.runs.driver import Job, Plan, Split, Unit, main, paired
from ghost.runs.records import Run
from ghost.runs.units import Kept, Made
from ghost.serving.service import Service


def rollout(job: Job) -> Plan:
    """Let a trained policy act in LIBERO-10."""
    (settings,) = job.read(Settings)
    assets = find_assets()

    def run(unit: Unit) -> Split:
        features, *trained = unit.runs
        service = Service.asked_for(features, trained, settings.rows)
        here = partial(loaded, settings.backbone, features, tuple(trained), settings.rows)
        policy = partial(served, service) if service else here
        return Split(
            {trial.name: asdict(trial) for trial in trials(settings, unit.seed)},
            partial(episode, settings, assets, features, -1 if settings.ensemble else trained[0].seed, policy),
            partial(join, unit.folder),
            without=("tasks", "trials", "misdirect", "switch_at"),
            noun="episodes",
            summary=lambda found: f"{sum(e['success'] for e in found)} of {len(found)} succeeded",
            beside=service.running if service else None,
        )

    inputs = every_run if settings.ensemble else paired
    return Plan(run, inputs, assets.facts)


def every_run(seed: int, needs: Sequence[list[Run]]) -> list[Run]:
    return [run for runs in needs for run in runs]


def episode(
    settings: Settings,
    assets: Assets,
    features: Run,
    training_seed: int,
    policy: Callable[[], Acting],
    folder: Path,
    trial: dict[str, Any],
) -> Made:
    """Play one episode."""
    starts = demonstrated_starts(features)
    return Made(asdict(play(settings, assets, policy(), training_seed, Trial(**trial), starts)))


@cache
def demonstrated_starts(features: Run) -> frozenset[str]:
    return frozenset(FeatureCache.of(features).starts)


@cache
def loaded(backbone: str, features: Run, trained: tuple[Run, ...], rows: int) -> Acting:
    """The policy in this process."""
    return Alone(Policy.load(backbone, features, trained, rows))


@cache
def served(service: Service) -> Acting:
    """The policy of the server beside this job; a simulator connects once."""
    return service.client()


def join(folder: Path, made: list[Kept]) -> Outcome:
    found = [Episode(**kept.value) for kept in made]
    refuse_equal_trials(found)
    write_text(folder / EPISODES, pd.DataFrame(found).to_csv(index=False, lineterminator="\n"))
    return Outcome(measured_of(found), files=(EPISODES,))


if __name__ == "__main__":
    main(rollout)
