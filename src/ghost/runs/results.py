"""The result of a run: measured values, named arrays for figures, and other files that the run wrote."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Measured:
    """One measured value. `condition` is what varies inside the experiment: a task, a number of steps, ..."""

    condition: str
    metric: str
    value: float
    n: int = 1  # observations that the value summarises


@dataclass(frozen=True)
class Outcome:
    measured: list[Measured]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    files: tuple[str, ...] = ()  # files that the run wrote into its folder: checkpoints, shards
    hashes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of those files whose hashes are known
    stand_ins: tuple[str, ...] = ()  # stand-ins that the run found while it ran
