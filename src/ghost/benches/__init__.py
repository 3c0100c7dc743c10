"""Benchmarks: our code against an alternative, on the same machine at the same time. `make bench` runs them all.

Times on shared machines vary, so every measurement is a pair: ours and the reference, one right after the other, many
times. The result is the ratio of each pair, with its median and quartiles. A bench is a module here with
`measure(place) -> list[Pair]`; its pairs are a file of `data/bench/`, which the report reads.
"""

import csv
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ghost.errors import GhostError
from ghost.files import write_text

Clock = Callable[[], float]  # `time.process_time` counts the cores' seconds: other work on the machine matters less


@dataclass(frozen=True)
class Settings:
    """Settings of the experiment that reads the files of all benches."""

    goals: Mapping[str, float]  # of every measurement that the report shows; 0: none
    growing: tuple[str, ...]  # the sizes that the growth bench doubles


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
    """The folders of a bench."""

    root: Path  # of the repository
    features: Path  # manifest of the feature cache that it trains on
    scratch: Path  # an empty folder, to write to


def interleaved(
    name: str,
    ours: Callable[[], object],
    reference: Callable[[], object],
    repeats: int,
    warm_up: int = 1,
    clock: Clock = time.perf_counter,
) -> list[Pair]:
    """Seconds of both, in turns."""
    taken_s = in_turns([ours, reference], repeats, warm_up, clock)
    return [Pair(name, repeat, ours_s, reference_s, "s") for repeat, (ours_s, reference_s) in enumerate(taken_s)]


def in_turns(
    work: Sequence[Callable[[], object]], repeats: int, warm_up: int = 1, clock: Clock = time.perf_counter
) -> list[list[float]]:
    """Seconds of each piece of work, for every repeat; the first repeats (`warm_up`) do not count."""
    return [[seconds(act, clock) for act in work] for _ in range(warm_up + repeats)][warm_up:]


def seconds(act: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    start_s = clock()
    act()
    return clock() - start_s


def python(*arguments: str, root: Path, core: int | None = None) -> None:
    """Run a module of ours with one thread, in a process of its own, on one core if `core` is given."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
    pinned = ["taskset", "-c", str(core)] if core is not None else []
    call(*pinned, sys.executable, "-m", *arguments, folder=root, environment=environment)


def call(*command: str, folder: Path, environment: Mapping[str, str] = os.environ) -> str:
    """Run a command and return its output; a failure is one line."""
    # S603: the benches' own commands, without a shell
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise GhostError(f"bench: {' '.join(command[:4])} failed: {why[-1]}")
    return done.stdout


def resident_mb(*, shared: bool = True) -> float:
    """Memory of this process; without `shared`, mapped files and libraries do not count."""
    pages = list(map(int, Path("/proc/self/statm").read_text(encoding="ascii").split()))
    return (pages[1] - (0 if shared else pages[2])) * os.sysconf("SC_PAGE_SIZE") / 2**20


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    lines = [",".join(field.name for field in fields(Pair))]
    lines += [f"{p.name},{p.repeat},{p.ours:.6g},{p.reference:.6g},{p.unit}" for p in pairs]
    write_text(path, "\n".join(lines) + "\n")


def read_pairs(path: Path) -> list[Pair]:
    with path.open(encoding="utf-8", newline="") as file:
        try:
            pairs = [
                Pair(line["name"], int(line["repeat"]), float(line["ours"]), float(line["reference"]), line["unit"])
                for line in csv.DictReader(file)
            ]
            if not all(math.isfinite(pair.ours) and math.isfinite(pair.reference) and pair.reference for pair in pairs):
                raise ValueError("a value is not finite, or a reference is 0")
            return pairs
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            raise GhostError(f"{path} is not a file of `make bench`: {error}") from None


@dataclass(frozen=True)
class Summary:
    """The repeats of one measurement, summed up."""

    name: str
    ratio: float  # median
    low: float  # quartiles
    high: float
    ours: float  # median
    reference: float  # median
    unit: str
    repeats: int


def summaries(pairs: Iterable[Pair]) -> list[Summary]:
    """One summary per name, in the order of the pairs."""
    grouped: dict[str, list[Pair]] = {}
    for pair in pairs:
        grouped.setdefault(pair.name, []).append(pair)
    found = []
    for name, group in grouped.items():
        low, ratio, high = np.percentile([pair.ratio for pair in group], (25, 50, 75))
        ours, reference = (float(np.median([getattr(pair, side) for pair in group])) for side in ("ours", "reference"))
        found.append(Summary(name, float(ratio), float(low), float(high), ours, reference, group[0].unit, len(group)))
    return found
