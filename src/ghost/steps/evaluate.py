"""Measure trained decoders and agents, once per seed.

An evaluation with seed s looks at the models that were trained with seed s, so the runs of two evaluations are pairs
when their seeds agree. The experiment's module has `Settings` and
`evaluate(settings, cache, decoders, *, seed, progress) -> Outcome`. It stands apart from the training, so that a new
metric retrains nothing. It needs the feature cache first, then the trained models; one of them may be GR00T's head. A
module with `FEATURES = False` lets agents act in a world and needs no cache.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from ghost.data.features import FeatureCache
from ghost.data.results import Outcome
from ghost.runs.driver import Job, Plan, Unit, main
from ghost.runs.progress import Progress
from ghost.runs.records import Run
from ghost.training.checkpoint import load_decoder
from ghost.training.head import FineTunedHead


def evaluate(job: Job) -> Plan:
    """Measure trained models on held-out samples or in a world."""
    (settings,) = job.read(job.module.Settings)
    caches = 1 if job.needs and getattr(job.module, "FEATURES", True) else 0

    @cache
    def features() -> FeatureCache | None:
        return FeatureCache.of(job.only_run(0)) if caches else None

    def run(unit: Unit) -> Outcome:
        torch.set_num_threads(1)  # sums split over threads round differently
        device = "cuda" if torch.cuda.is_available() else "cpu"
        models = {run.folder.name: load(run, unit.runs[:caches], device) for run in unit.runs[caches:]}
        outcome: Outcome = job.module.evaluate(settings, features(), models, seed=unit.seed, progress=Progress("parts"))
        return outcome

    return Plan(run)


def load(run: Run, caches: Sequence[Run], device: str) -> Any:
    """A trained model, or GR00T's head, whose predictions are in the feature cache."""
    return FineTunedHead.of(run, caches[0]) if caches and FineTunedHead.made(run) else load_decoder(run, device)


if __name__ == "__main__":
    main(evaluate)
