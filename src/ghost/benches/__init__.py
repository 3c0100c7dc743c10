"""Benchmarks: ours beside an alternative, on this machine, now. `make bench` runs them all.

Times on shared machines wander, so every measurement is a pair: ours and the reference, one right after the other, many
times; what counts is the ratio of each pair, its median and its quartiles. A bench is a module here with
`measure(place) -> list[Pair]`; its pairs are a file of `data/bench/`, which the report reads.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ghost.errors import GhostError
from ghost.files import write_text


@dataclass(frozen=True)
class Settings:
    """Of the row that reads their files."""

    goals: Mapping[str, float]  # of every line that the report shows; 0: none
    growing: tuple[str, ...]  # what the growth bench doubles


@dataclass(frozen=True)
class Pair:
    """One repeat: ours and the reference, in the same unit."""

    name: str  # such as ghost_over_mlp/exported/batch1
    repeat: int
    ours: float
    reference: float
    unit: str

    @property
    def ratio(self) -> float:
        return self.ours / self.reference


@dataclass(frozen=True)
class Place:
    """Where a bench finds what it needs, and may write."""

    root: Path  # of the repository
    features: Path  # manifest of the feature cache that it trains on
    scratch: Path  # an empty folder


def interleaved(
    name: str, ours: Callable[[], object], reference: Callable[[], object], repeats: int, warm_up: int = 1
) -> list[Pair]:
    """Seconds of both, in turns, after some that do not count."""
    pairs = []
    for repeat in range(-warm_up, repeats):
        taken_s = seconds(ours), seconds(reference)
        if repeat >= 0:
            pairs.append(Pair(name, repeat, *taken_s, "s"))
    return pairs


def seconds(act: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    act()
    return time.perf_counter() - start_s


def python(*arguments: str, root: Path, threads: int = 1, core: int | None = None) -> subprocess.Popen[str]:
    """A process of this interpreter, on one core if asked for; its output goes nowhere, its errors are kept."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": str(threads)}
    pinned = ["taskset", "-c", str(core)] if core is not None else []
    return subprocess.Popen(
        [*pinned, sys.executable, *arguments],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate()
    if process.returncode:
        raise GhostError(
            f"bench: a process failed: {errors.strip().splitlines()[-1] if errors else process.returncode}"
        )


# ------------------------------------------------------------------------------------------------------------- files


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    lines = [",".join(field.name for field in fields(Pair))]
    lines += [f"{p.name},{p.repeat},{p.ours:.6g},{p.reference:.6g},{p.unit}" for p in pairs]
    write_text(path, "\n".join(lines) + "\n")


def read_pairs(path: Path) -> list[Pair]:
    with path.open(encoding="utf-8", newline="") as file:
        try:
            return [
                Pair(line["name"], int(line["repeat"]), float(line["ours"]), float(line["reference"]), line["unit"])
                for line in csv.DictReader(file)
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise GhostError(f"{path} is not a file of `make bench`: {error}") from None


@dataclass(frozen=True)
class Summary:
    """What the repeats of one name say."""

    name: str
    ratio: float  # median
    low: float  # quartiles
    high: float
    ours: float  # median
    reference: float  # median
    unit: str
    repeats: int


def summaries(pairs: Iterable[Pair]) -> list[Summary]:
    """In the order of first mention."""
    grouped: dict[str, list[Pair]] = {}
    for pair in pairs:
        grouped.setdefault(pair.name, []).append(pair)
    found = []
    for name, group in grouped.items():
        low, ratio, high = np.percentile([pair.ratio for pair in group], (25, 50, 75))
        ours, reference = (float(np.median([getattr(pair, side) for pair in group])) for side in ("ours", "reference"))
        found.append(Summary(name, float(ratio), float(low), float(high), ours, reference, group[0].unit, len(group)))
    return found
