"""The build of a rehearsal: every experiment at its full widths, with the fewest epochs, rounds, episodes and samples.

`first` makes it from a build. `repeats` says how often what was measured there happens in one unit of the build itself.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from ghost.study.builds import Config
from ghost.study.declarations import Experiment
from ghost.study.parts import units_of

REHEARSALS = "rehearsals"
# How many at most, by step. Nothing else is smaller. Of `tasks` and the like, which are lists, the first ones are left.
FEW: Mapping[str, Mapping[str, int]] = {
    "simulate": {"epochs": 100, "timed_epochs": 100},
    "make_demos": {"attempts": 2, "episodes_per_task": 2},
    "cache_features": {
        **{"train_per_task": 40, "test_per_task": 8, "train_timesteps": 32, "test_timesteps": 16},
        "test_episodes": 1,
    },
    "train_agent": {"epochs": 1},
    "evaluate": {"rounds": 1, "warm_up": 1, "episodes": 2, "steps": 1000, "embedded": 80, "embedded_per_task": 4},
    "rollout": {"trials": 1},
    "finetune": {"steps": 2},
    "time_head": {"rounds": 2, "warm_up": 1},
}
TIMED = 10  # rounds of an experiment that measures time, in which the largest model takes part once
ONE_OF = ("tasks", "misdirect", "switch_at")  # of a rollout's conditions the first one; experts try all tasks
AMOUNTS: Mapping[str, tuple[str, ...]] = {  # time is proportional to these
    "simulate": ("epochs", "timed_epochs"),
    "make_demos": ("episodes_per_task",),
    "train_agent": ("epochs",),
    "evaluate": ("rounds", "episodes", "steps"),
    "finetune": ("steps",),
    "time_head": ("rounds",),
}


def first(config: Config) -> Config:
    """The build that a rehearsal runs."""
    few = tuple(replace(each, settings=few_settings(config, each), seeds=each.seeds[:1]) for each in config.experiments)
    return replace(config, scale=f"{REHEARSALS}/{config.scale}", experiments=few)


def few_settings(config: Config, experiment: Experiment) -> dict[str, Any]:
    settings, few = dict(experiment.settings), FEW.get(experiment.step, {})
    for key, value in experiment.settings.items():
        if key in few:
            most = TIMED if key == "rounds" and experiment.timed else few[key]
            settings[key] = [min(each, most) for each in value] if isinstance(value, list) else min(value, most)
        elif key in ONE_OF and isinstance(value, list) and experiment.step == "rollout":
            settings[key] = value[5:6] or value[:1] if key == "tasks" else value[:1]  # task 5 is the shortest
    return settings


def manifest(config: Config, name: str) -> Path:
    """Of an experiment in the build of a rehearsal. Each has its units to itself, so that all are measured again."""
    return config.data / name / "manifest.json"


def repeats(config: Config, name: str, samples: int | None = None) -> float:
    """How often what the rehearsal measured happens in a unit of the build: updates, or as many times the work.

    `samples` are those that a rehearsed training had.
    """
    full, small = config.experiment(name), first(config).experiment(name)
    if full.step == "train":
        has = full.settings
        left = training_samples(config, name, samples) * (1 - has.get("validation_share", 0.0))
        return float(has["epochs"] * ceil(round(left, 3) / has["batch_size"]))
    ratio = 1.0
    for key in AMOUNTS.get(full.step, ()):
        if key in full.settings:
            ratio *= full.settings[key] / small.settings[key]
    if full.step == "train_agent":
        for need in full.needs:
            ratio *= repeats(config, need)
    if full.step == "evaluate" and full.needs:
        ratio *= tested_samples(config, full) / tested_samples(first(config), small)
    return ratio


def training_samples(config: Config, name: str, rehearsed: int | None = None) -> int:
    """How many samples a training has in the build.

    Where the lengths of episodes decide it, they are as long as those of the rehearsal, which had so many samples; at
    most, where that is not known.
    """
    has, features = config.experiment(name).settings, config.experiment(config.experiment(name).needs[0])
    if "stride" in features.settings:
        if rehearsed:
            found = ceil(rehearsed * episodes(config, features.name) / episodes(first(config), features.name))
        else:
            longest = config.experiment(features.needs[0]).settings.get("max_steps", 0)
            found = episodes(config, features.name) * ceil(longest / features.settings["stride"])
    elif has.get("split", "sample") == "episode":
        found = int(features.settings["train_timesteps"])
    else:
        counts = features.settings["train_per_task"]
        found = sum(counts) if not has.get("tasks") else len(has["tasks"]) * max(counts)
    return int(min(found, has.get("samples") or found))


def tested_samples(config: Config, experiment: Experiment) -> int:
    """How many samples an evaluation of decoders looks at; 1 where it looks at none."""
    features = config.experiment(experiment.needs[0])
    if features.step != "cache_features":
        return 1
    if "stride" in features.settings:
        made = config.experiment(features.needs[0])
        return len(made.settings.get("tasks", [0])) * int(features.settings["test_episodes"])
    if experiment.settings.get("split") == "episode":
        return int(features.settings["test_timesteps"])
    counts = features.settings["test_per_task"]
    return len(experiment.settings["tasks"]) * max(counts) if experiment.settings.get("tasks") else sum(counts)


def episodes(config: Config, features: str) -> int:
    """Episodes to train on, if every attempt succeeds."""
    cached = config.experiment(features)
    made = config.experiment(cached.needs[0])
    tasks, attempts = len(made.settings.get("tasks", [0])), units_of(config, made.name)[1]
    return max(1, attempts - tasks * int(cached.settings["test_episodes"]))
