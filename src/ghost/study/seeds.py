"""Which seeds each experiment runs with."""

import dataclasses
from collections.abc import Iterable, Mapping

from ghost.errors import GhostError
from ghost.study.declarations import Experiment

SEEDS = (42, 123, 999, 7, 2024, 314, 555, 1337, 8888, 31415)  # the article's appendix A
AS_TRAINED: tuple[int, ...] = ()  # an experiment without seeds of its own has those that its trainings share
TRAININGS = ("train", "train_agent", "finetune")  # steps
Wanted = int | tuple[int, ...]  # how many, or which


def resolved(
    experiments: Iterable[Experiment], wanted: Mapping[str, Wanted] | None = None, at_most: int | None = None
) -> tuple[Experiment, ...]:
    """The experiments with the seeds they run with: those that are wanted, else their own, `at_most` so many."""
    made: dict[str, Experiment] = {}
    for experiment in experiments:
        asked = (wanted or {}).get(experiment.name)
        if isinstance(asked, tuple):
            seeds = asked
        else:
            own = experiment.seeds or _shared(experiment, made)
            seeds = _first(asked, own) if asked else experiment.seeds[:at_most] or own
        made[experiment.name] = dataclasses.replace(experiment, seeds=seeds)
    return tuple(made.values())


def _first(number: int, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """So many seeds: the given ones, then those of appendix A, then 1, 2, 3, and so on."""
    return tuple(dict.fromkeys((*seeds, *SEEDS, *range(1, number + 1))))[:number]


def _shared(experiment: Experiment, known: Mapping[str, Experiment]) -> tuple[int, ...]:
    """The seeds that all trainings have which an experiment needs, in the order of the first of them."""
    trained = [known[name] for name in experiment.needs if known[name].step in TRAININGS]
    shared = [seed for seed in trained[0].seeds if all(seed in other.seeds for other in trained)] if trained else []
    if not shared:
        listed = ", ".join(other.name for other in trained) or "it needs none"
        raise GhostError(
            f"{experiment.name} has the seeds that its trainings share, but these share none: {listed}; name seeds that"
            " all of them have"
        )
    return tuple(shared)
