"""Backbones: what a frozen vision-language model sees at a time step, as tokens. A module here offers

    STAND_IN   the name of what it stands in for, as records carry it; empty for the real thing
    Settings   a frozen dataclass with at least `tokens` (T) and `d_token` (D); its fields stand flat in the row
    encode(settings, observations) -> tokens [n, T, D] float16

`encode` depends on nothing but its arguments: the same observations give the same bytes, in any order, in any batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Observations:
    """What a robot sees at n time steps. Never the future, never the demonstrator's intention."""

    instructions: tuple[str, ...]  # [n]
    columns: Mapping[str, np.ndarray]  # the data set's observation.* columns at these steps, each [n, ...]
    frames: Callable[[str], np.ndarray]  # camera -> [n, height, width, 3] uint8, decoded only when asked for

    def __len__(self) -> int:
        return len(self.instructions)
