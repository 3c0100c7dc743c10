"""How long the diagnostic's learned potential trains, at the paper's size on the CPU: `training_s`.

It is timed over `timed_epochs` and told for all of them; each epoch does the same work. How much of the machine others
used meanwhile is measured too (ghost.evaluations.quiet). The paper's 56 s are those of an RTX 5090.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ghost.data.results import Measured, Outcome
from ghost.evaluations.quiet import METRIC as BUSY_SHARE
from ghost.evaluations.quiet import Watch
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one, read_settings
from ghost.simulations import learned_potential

TRAINING_S = "training_s"


@dataclass(frozen=True)
class Settings:
    learned_potential: Mapping[str, Any]  # the settings of that experiment
    timed_epochs: int  # at most
    threads: int

    def __post_init__(self) -> None:
        at_least_one(self, "timed_epochs", "threads")


def run(settings: Settings, *, seed: int, progress: Progress) -> Outcome:
    (full,) = read_settings("learned_potential", settings.learned_potential, learned_potential.Settings)
    some = replace(full, epochs=min(full.epochs, settings.timed_epochs))
    demonstrations = learned_potential.demonstrate(some, np.random.default_rng(seed), some.train_per_context)
    threads = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    try:
        with Watch(one_thread=settings.threads == 1) as watch:
            start_s = time.perf_counter()
            learned_potential.fit(some, demonstrations, seed, progress)
            epoch_s = (time.perf_counter() - start_s) / some.epochs
    finally:
        torch.set_num_threads(threads)
    return Outcome(
        [
            Measured("learned_potential", TRAINING_S, epoch_s * full.epochs, some.epochs),
            Measured(TRAINING_S, BUSY_SHARE, watch.busy_share),
        ]
    )
