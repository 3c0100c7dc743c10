"""The result of a run: measured values, named arrays for figures, and other files that the run wrote.

    measured.csv         the measured values: condition, metric, value, n
    arrays.safetensors   what figures draw

This is no bookkeeping: what writes and reads the values is part of the code of every run.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from ghost.errors import GhostError
from ghost.files import atomic

MEASURED, ARRAYS = "measured.csv", "arrays.safetensors"
EPISODES = "episodes.csv"  # of a rollout: a line per episode


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


def write_outcome(folder: Path, outcome: Outcome) -> tuple[str, ...]:
    """Write measured values and arrays; returns the names of all files of the run."""
    with atomic(folder / MEASURED) as temporary, temporary.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["condition", "metric", "value", "n"])
        writer.writerows([m.condition, m.metric, repr(float(m.value)), m.n] for m in outcome.measured)
    with atomic(folder / ARRAYS) as temporary:
        # save_file would map the file with the owner's permissions only; the bytes are small enough for memory
        temporary.write_bytes(save_safetensors({k: np.ascontiguousarray(v) for k, v in outcome.arrays.items()}))
    return (MEASURED, ARRAYS, *outcome.files)


def read_table(content: bytes, where: str) -> list[dict[str, str]]:
    """The lines of a CSV file, each by the names of its head."""
    try:
        lines = list(csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True))
    except (ValueError, csv.Error) as error:
        raise GhostError(f"{where} is no table: {error}") from None
    if any(None in line or None in line.values() for line in lines):
        raise GhostError(f"{where} has a line that is longer or shorter than its head")
    return lines


def read_measured(content: bytes, where: str) -> list[Measured]:
    try:
        lines = read_table(content, where)
        return [Measured(line["condition"], line["metric"], float(line["value"]), int(line["n"])) for line in lines]
    except (ValueError, KeyError) as error:
        raise GhostError(f"{where} has a line that is no value: {error}") from None


def read_arrays(content: bytes, where: str) -> dict[str, np.ndarray]:
    try:
        return dict(load_safetensors(content))
    except SafetensorError as error:
        raise GhostError(f"{where}: {error}") from None
