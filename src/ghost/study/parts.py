"""How the work of an experiment is divided among jobs: its parts, known before anything runs.

A site says how many seeds, episodes, attempts and shards a job has at most (its grain). The number of units comes from
the study's own settings. Where only the data decide it, as for the shards of whole episodes, it is the largest
possible; a part is then a share of the units that there are. No part enters the id of a run: any division gives the
same bytes, and finds what another one has finished.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.study.builds import Config
from ghost.study.declarations import Experiment
from ghost.study.libero import DEMOS

SEEDS = "seeds"
NOUNS = {"rollout": "episodes", "make_demos": "attempts", "cache_features": "shards"}  # what a run consists of
GRAIN = (SEEDS, *NOUNS.values())
Grain = Mapping[str, int]  # at most so many a job; what is not named is not divided


@dataclass(frozen=True)
class Part:
    """What one job does: some runs whole, or a share of the units of one run."""

    name: str
    seeds: tuple[int, ...]
    units: int  # at most
    number: int = 1  # of the shares of its run
    shares: int = 1


def check_grain(grain: Grain) -> Grain:
    for noun in grain:
        if noun not in GRAIN:
            raise GhostError(f"grain: no unit {noun!r}{did_you_mean(noun, GRAIN)}")
    return grain


def units_of(config: Config, name: str) -> tuple[str, int]:
    """The kind of an experiment's smallest units, and how many of them a run has."""
    experiment = config.experiment(name)
    count = {"rollout": _episodes, "make_demos": _attempts, "cache_features": _shards}.get(experiment.step)
    found = count(config, experiment) if count else 0
    return (NOUNS[experiment.step], found) if found else (SEEDS, 1)


def parts_of(config: Config, name: str, grain: Grain) -> tuple[Part, ...]:
    """The parts of an experiment. One alone is the whole."""
    seeds = config.experiment(name).seeds
    noun, units = units_of(config, name)
    a_job = grain.get(noun, 0) if noun != SEEDS else 0
    shares = ceil(units / a_job) if a_job else 1
    if shares > 1:
        return tuple(
            Part(f"seed{seed}_{number}of{shares}", (seed,), ceil(units / shares), number, shares)
            for seed in seeds
            for number in range(1, shares + 1)
        )
    size = grain.get(SEEDS, 0) or len(seeds)
    groups = [seeds[first : first + size] for first in range(0, len(seeds), size)]
    return tuple(Part(_name(group), group, units * len(group)) for group in groups)


def uses_gpu(config: Config, name: str) -> bool:
    """Whether the code of an experiment runs on a GPU where there is one, and gains by it.

    Stand-ins, simulations and agents run on the CPU, timed or not, and so do tests of small decoders; the diffusion
    transformer is large, and latencies are to be those of the device that a policy acts with.
    """
    experiment = config.experiment(name)
    large = experiment.step == "evaluate" and "ghost.decoders.dit" in experiment.uses
    timed = experiment.timed and experiment.step != "simulate"
    return experiment.step in ("train", "finetune") or config.in_groot(name) or config.served(name) or timed or large


def _name(group: tuple[int, ...]) -> str:
    return f"seed{group[0]}" + (f"-{group[-1]}" if len(group) > 1 else "")


def _episodes(config: Config, experiment: Experiment) -> int:
    has: Mapping[str, Any] = experiment.settings
    conditions = len(has["tasks"]) + len(has.get("misdirect", ())) * len(has.get("switch_at", ()))
    return int(conditions * has["trials"])


def _attempts(config: Config, experiment: Experiment) -> int:
    """LIBERO's experts try one after the other; the other data sets are made whole."""
    has = experiment.settings
    return len(has["tasks"]) * int(has["attempts"]) if config.in_libero(experiment.name) else 0


def _shards(config: Config, experiment: Experiment) -> int:
    has = experiment.settings
    if "stride" in has:
        made = {**DEMOS, **config.experiment(experiment.needs[0]).settings}  # recorded ones are no more, and no longer
        attempts = len(made["tasks"]) * int(made["attempts"])
        samples = attempts * ceil(int(made["max_steps"]) / int(has["stride"]))
    elif "samples" in has:
        samples = int(has["samples"])  # at most: the data decide
    else:
        drawn = (*has["train_per_task"], *has["test_per_task"], has["train_timesteps"], has["test_timesteps"])
        samples = sum(map(int, drawn))
    return ceil(samples / int(has["samples_per_shard"]))
