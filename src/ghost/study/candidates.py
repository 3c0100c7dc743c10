"""Candidates: each policy of LIBERO-10 trained with several learning rates, of which `ghost choose` takes one.

A build with `candidates: [0.001, 0.0005]` has, for every policy and variant, one training and one rollout more for each
rate: `libero_mlp_rate1` and `libero_mlp_rate1_rollout`, and so on. All have the first seed of their policy and are
otherwise as the build has them, so every policy gets the same effort.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ghost.study.declarations import Experiment
from ghost.study.libero import FEATURES, TRAINED

RATE = "learning_rate"
POLICIES = tuple(TRAINED)


def training_name(policy: str, number: int) -> str:
    """Of the candidate with this number, from 1."""
    return f"{policy}_rate{number}"


def rollout_name(policy: str, number: int) -> str:
    return f"{training_name(policy, number)}_rollout"


def candidates(experiments: Iterable[Experiment], rates: Sequence[float | None]) -> Iterator[Experiment]:
    """The trainings and rollouts of all candidates; a rate of None is the policy's own."""
    known = {experiment.name: experiment for experiment in experiments}
    for policy in POLICIES:
        trained, acting = known[policy], known[f"{policy}_rollout"]
        for number, rate in enumerate(rates, 1):
            name, seeds = training_name(policy, number), trained.seeds[:1]
            settings = trained.settings if rate is None else {**trained.settings, RATE: rate}
            yield replace(trained, name=name, settings=settings, seeds=seeds)
            yield replace(acting, name=rollout_name(policy, number), seeds=seeds, needs=(FEATURES, name))
