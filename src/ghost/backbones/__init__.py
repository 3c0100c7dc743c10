"""A backbone turns the observations of a time step into the tokens of a frozen vision-language model. Its module has

    Settings   a frozen dataclass with at least `tokens` (T) and `d_token` (D), read from the experiment's settings
    start(settings, sizes, runs) -> Backbone

The backbone must fit the `sizes` of a sample. `runs` are the runs that it needs beside the demonstrations.
`encode` depends on nothing but its arguments: the same observations give the same tokens, in any order, in any batch.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ghost.data.features import Encoded
from ghost.errors import GhostError, did_you_mean
from ghost.runs.records import LOCK, Run


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

    def scene(self, name: str, *shape: int) -> np.ndarray:
        """The column of the scene with this name [n, *shape] float32, which stand-ins have instead of pictures."""
        key = f"observation.scene.{name}"
        if key not in self.columns:
            raise GhostError(f"the stand-in backbone wants a column {key!r}{did_you_mean(key, self.columns)}")
        return np.asarray(self.columns[key], dtype=np.float32).reshape(len(self), *shape)


@dataclass(frozen=True)
class Backbone:
    encode: Callable[[Observations], Encoded]
    batch_size: int = 0  # observations at a time; 0: a whole shard
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else determines the tokens: hashes of weights
    lock: Path = LOCK  # pins the environment that it runs in


def stand_in(encode: Callable[[Observations], np.ndarray], runs: list[Run]) -> Backbone:
    """A backbone that needs no weights of another run. `encode` gives tokens [n, T, D] float16."""
    if runs:
        raise GhostError(f"the stand-in backbone needs demonstrations and nothing else, got {runs[0].name}")
    return Backbone(lambda observations: Encoded(encode(observations)))


def word_vectors(instruction: str, width: int, seed: int) -> np.ndarray:
    """A random vector per word [words, width], the same for a word wherever it stands."""
    words = re.findall(r"[a-z0-9]+", instruction.lower())
    numbers = [int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big") for word in words]
    drawn = [np.random.default_rng([seed, number]).standard_normal(width) for number in numbers]
    return np.array(drawn).reshape(-1, width)


@cache
def word_rows(instruction: str, rows: int, width: int, seed: int) -> np.ndarray:
    """The vectors of the first words [rows, width] float32; zeros when there are fewer."""
    vectors = np.zeros((rows, width), np.float32)
    words = word_vectors(instruction, width, seed)[:rows]
    vectors[: len(words)] = words
    return vectors
