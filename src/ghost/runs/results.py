"""What a run hands back: tidy rows (the raw results), named arrays (what figures draw), and other files it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Measured:
    """One measured value. `condition` is what was varied inside the experiment: a task, a step count, ..."""

    condition: str
    metric: str
    value: float
    n: int = 1  # how many observations the value already sums up


@dataclass(frozen=True)
class Outcome:
    measured: list[Measured]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    files: tuple[str, ...] = ()  # written by the run itself into its folder: checkpoints, shards
    stand_ins: tuple[str, ...] = ()  # what it found out to be no more than a stand-in
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else determines it: hashes of weights from elsewhere
