"""A backbone turns the observations of a time step into the tokens of a frozen vision-language model. Its module has

    Settings   a frozen dataclass with at least `tokens` (T) and `d_token` (D), read from the experiment's settings
    STAND_IN   what the backbone stands in for, as records carry it; empty for the real thing
    start(settings, sizes, runs) -> Backbone

The backbone must fit the `sizes` of a sample. `runs` are the runs that it needs beside the demonstrations.
`encode` depends on nothing but its arguments: the same observations give the same tokens, in any order, in any batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ghost.data.features import Encoded
from ghost.runs.records import LOCK


@dataclass(frozen=True)
class Observations:
    """What a robot sees at n time steps. Never the future, never the demonstrator's intention."""

    instructions: tuple[str, ...]  # [n]
    columns: Mapping[str, np.ndarray]  # the data set's observation.* columns at these steps, each [n, ...]
    frames: Callable[[str], np.ndarray]  # camera -> [n, height, width, 3] uint8, decoded only when asked for
    cameras: tuple[str, ...]  # that the data set has
    state: np.ndarray  # [n, d_s] float32, normalised and padded, as the cache holds it
    step: np.ndarray  # [n, 2] int64: episode and timestep, to seed what is drawn per sample

    def __len__(self) -> int:
        return len(self.instructions)


@dataclass(frozen=True)
class Backbone:
    encode: Callable[[Observations], Encoded]
    batch_size: int = 0  # observations at a time; 0: a whole shard
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else determines the tokens: hashes of weights
    lock: Path = LOCK  # pins the environment that it runs in
