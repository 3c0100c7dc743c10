"""Units of work: each is done once and kept.

A unit is the smallest piece of work whose result is worth keeping: the run of a seed, an episode, an attempt at a
demonstration, a shard of features. Its address is the hash of all that determines its result: settings, seed, inputs,
code, environment. So a unit that is there is found again, whoever asks for it, after a kill, after a change of a
setting and back, and however the units are divided among jobs.

    data/<build>/units/<kind>/<address>.json   what determines the unit, its value, the hashes of its files, its times
    data/<build>/units/<kind>/<address>/       its files; unfinished work is kept there as well, for the next try

The .json file is written last. A unit whose files are missing or changed is done again.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TypeVar

from ghost.errors import GhostError
from ghost.files import canonical, confined, hashes, read_json, sha256, write_json
from ghost.forms import NAME, SHA256

Item = TypeVar("Item")
Result = TypeVar("Result")
ENTRY = ("value", "files", "start", "wall_s", "cpu_s")
KEPT = {"value": object, "files": {NAME: {"sha256": SHA256}}, "start": str, "wall_s": float, "cpu_s": float}
Hashes = Mapping[str, Mapping[str, str]]  # file -> {sha256, md5}


@dataclass(frozen=True)
class Made:
    """What the work of a unit returns. `value` is plain JSON; `files` are names in the unit's folder."""

    value: Any
    files: tuple[str, ...] = ()
    hashes: Hashes | None = None  # of those files whose hashes are known


@dataclass(frozen=True)
class Kept:
    """A finished unit."""

    address: str
    value: Any
    folder: Path
    files: Hashes
    start: str
    wall_s: float
    cpu_s: float
    new: bool  # done just now


@dataclass(frozen=True)
class Store:
    """The units of a build."""

    folder: Path

    def find_or_do(self, kind: str, determined_by: Mapping[str, Any], work: Callable[[Path], Made]) -> Kept:
        return self.find(kind, determined_by) or self.do(kind, determined_by, work)

    def find(self, kind: str, determined_by: Mapping[str, Any]) -> Kept | None:
        """A finished unit, if it is there and each of its files is still the same."""
        address = address_of(determined_by)
        listing, folder = self.folder / kind / f"{address}.json", self.place(kind, address)
        if not listing.is_file():
            return None
        try:
            entry = read_json(listing, KEPT)
        except GhostError:  # damaged: the unit is done again
            return None
        for name, known in entry["files"].items():
            path = confined(folder, name)
            if not path.is_file() or sha256(path) != known["sha256"]:
                return None
        return Kept(address, folder=folder, new=False, **{key: entry[key] for key in ENTRY})

    def do(self, kind: str, determined_by: Mapping[str, Any], work: Callable[[Path], Made]) -> Kept:
        """Do a unit. `work` receives the folder for its files."""
        folder = self.place(kind, address_of(determined_by))
        start, start_s, start_cpu_s = datetime.now(UTC), time.monotonic(), time.process_time()
        made = work(folder)
        known = made.hashes or {}
        files = {name: dict(known.get(name) or hashes(confined(folder, name))) for name in made.files}
        for path in list(folder.rglob("*")):  # unfinished work of an earlier try
            if path.is_file() and str(path.relative_to(folder)) not in files:
                path.unlink()
        entry = {
            "value": made.value,
            "files": files,
            "start": start.isoformat(timespec="seconds"),
            "wall_s": round(time.monotonic() - start_s, 3),
            "cpu_s": round(time.process_time() - start_cpu_s, 3),
        }
        return self.keep(kind, determined_by, entry)

    def keep(self, kind: str, determined_by: Mapping[str, Any], entry: Mapping[str, Any]) -> Kept:
        """Call a unit finished whose files are in its folder."""
        address = address_of(determined_by)
        write_json(self.folder / kind / f"{address}.json", {"determined_by": determined_by, **entry})
        return Kept(address, folder=self.place(kind, address), new=True, **entry)

    def place(self, kind: str, address: str) -> Path:
        """The folder of a unit's files. Files are deleted there, so a link that leads elsewhere is refused."""
        return confined(self.folder, f"{kind}/{address}")


def address_of(determined_by: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(determined_by).encode()).hexdigest()[:16]


def workers() -> int:
    """Cores of this job: Slurm says how many, or Snakemake, whose rules pass their `threads` on."""
    return max(1, int(os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("OMP_NUM_THREADS") or 1))


def run_all(function: Callable[[Item], Result], items: Sequence[Item], count: int) -> Iterator[Result]:
    """`function` of every item, in order, in `count` processes. A crash in one of them ends the step."""
    if count == 1 or len(items) < 2:
        yield from map(function, items)
        return
    # spawned, not forked: a fork of a process with MuJoCo, torch and numba in it is no clean start
    with ProcessPoolExecutor(min(count, len(items)), get_context("spawn"), initializer=_end_with_parent) as pool:
        yield from pool.map(function, items)


def _end_with_parent() -> None:
    """A worker whose step was killed would wait for its next item for ever."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
