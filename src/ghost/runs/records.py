"""Runs and their records: what ran, from which bytes, by which code, where.

A run is one experiment with one seed. Its folder is data/<build>/runs/<experiment>/seed<seed>/ with

    run.json             the record
    measured.csv         the raw results: condition, metric, value, n
    arrays.safetensors   what figures draw
    episodes.csv         for a rollout: a line per episode
    units.csv            for a run of many units, such as episodes: when each was done, in how many seconds
    ...                  other files that the run wrote: a checkpoint, shards

The experiment's manifest.json, one folder up, lists the runs and the sha256 of each of their files. It is the only
output that Snakemake knows. It is small, and it changes when and only when a result changes. Files are verified against
it when they are opened.

The run id is the address of what determines the result: experiment, step, module, settings, seed, the content of the
inputs, code, environment and, where weights or assets come from elsewhere, their hashes (`facts`). Host, times and
outputs are not part of it, so the same run has the same id on a laptop and on a cluster. How many other seeds there are
is not part of it either.
"""

import csv
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from ghost.errors import GhostError
from ghost.files import atomic, canonical, confined, read_json, sha256
from ghost.runs.code import ROOT
from ghost.runs.results import Measured, Outcome
from ghost.runs.units import address_of

LOCK = ROOT.parents[1] / "requirements.lock"
IDENTITY = ("experiment", "step", "module", "settings", "seed", "inputs", "code", "lock_sha256", "facts")
FIELDS = (*IDENTITY, "scale", "reduced", "stand_ins", "run_id", "outputs", "host", "start", "command")
MANIFEST, MEASURED, ARRAYS = "manifest.json", "measured.csv", "arrays.safetensors"
EPISODES = "episodes.csv"  # of a rollout
DIFFERS = "is not the file that its manifest lists (sha256 differs); run the step again"
SHA256 = re.compile(r"[0-9a-f]{64}")


def identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """What determines a run. Of inputs and code the content counts, not the names of runs and files behind it."""
    chosen = {key: record[key] for key in IDENTITY}
    inputs = {name: entry["sha256"] for name, entry in record["inputs"].items()}
    return {**chosen, "inputs": inputs, "code": record["code"]["sha256"]}


def check_record(record: Mapping[str, Any], where: Path) -> None:
    """Refuse a record that cannot answer for its numbers: a missing field, a file without its hash, a wrong id."""
    missing = [key for key in FIELDS if key not in record]
    if missing:
        raise GhostError(f"{where}: the record lacks {', '.join(missing)}")
    if not record["code"]["files"]:
        raise GhostError(f"{where}: the record names no source file")
    files = {**record["inputs"], **record["outputs"], **record["code"]["files"]}
    for name, entry in files.items():
        if not SHA256.fullmatch(str(entry.get("sha256"))):
            raise GhostError(f"{where}: {name} is recorded without its sha256")
    run_id = address_of(identity(record))
    if record["run_id"] != run_id:
        raise GhostError(f"{where}: the run id {record['run_id']} is not that of its content ({run_id})")


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


@dataclass(frozen=True)
class Run:
    """One finished run. Files are checked against the manifest's sha256 when they are read."""

    folder: Path  # of the experiment
    run_id: str
    seed: int
    files: Mapping[str, str] = field(hash=False)  # name below the experiment's folder -> sha256

    @property
    def name(self) -> str:
        """As records name it among their inputs."""
        return f"{self.folder.name}/seed{self.seed}"

    @property
    def content(self) -> str:
        """One hash over the names and hashes of its files."""
        return hashlib.sha256(canonical(dict(self.files)).encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        path = self.folder / f"seed{self.seed}" / "run.json"
        record: dict[str, Any] = read_json(path)
        check_record(record, path)
        if record["run_id"] != self.run_id:
            raise GhostError(f"{path}: run {record['run_id']}, but the manifest lists {self.run_id} there")
        return record

    def measured(self) -> list[Measured]:
        return self._measured

    @cached_property
    def _measured(self) -> list[Measured]:
        lines = csv.DictReader(self._read(MEASURED).decode().splitlines())
        return [Measured(line["condition"], line["metric"], float(line["value"]), int(line["n"])) for line in lines]

    def value(self, condition: str, metric: str) -> float:
        """One measured value; nan where the run has none (a goal that was never reached)."""
        found = [m.value for m in self.measured() if (m.condition, m.metric) == (condition, metric)]
        if len(found) != 1:
            raise GhostError(f"{self.folder} seed {self.seed}: {condition}/{metric} has values {found}, expected one")
        return found[0]

    def table(self, name: str) -> list[dict[str, str]]:
        """The lines of a file of the run that is a table (CSV)."""
        return list(csv.DictReader(self._read(name).decode().splitlines()))

    def arrays(self) -> dict[str, np.ndarray]:
        try:
            return dict(load_safetensors(self._read(ARRAYS)))
        except SafetensorError as error:
            raise GhostError(f"{self.folder}/seed{self.seed}/{ARRAYS}: {error}") from None

    def path(self, name: str) -> Path:
        """A file of the run, verified."""
        path, expected = self._listed(name)
        if sha256(path) != expected:
            raise GhostError(f"{path} {DIFFERS}")
        return path

    def verified(self) -> Path:
        """The run's own folder, after each of its files was verified."""
        for name in self.files:
            self.path(name.partition("/")[2])
        return self.folder / f"seed{self.seed}"

    def _read(self, name: str) -> bytes:
        """The content of a file of the run: read once, verified, then used."""
        path, expected = self._listed(name)
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise GhostError(f"{path} {DIFFERS}")
        return content

    def _listed(self, name: str) -> tuple[Path, str]:
        key = f"seed{self.seed}/{name}"
        if key not in self.files:
            raise GhostError(f"{self.folder}/{MANIFEST} lists no {key}")
        return confined(self.folder, key), self.files[key]


def open_runs(manifest: Path) -> list[Run]:
    """The runs that a manifest lists, in the order of its experiment's seeds."""
    listing = read_json(manifest)
    try:
        return [Run(manifest.parent, run["run_id"], run["seed"], run["files"]) for run in listing["runs"]]
    except (KeyError, TypeError):
        raise GhostError(f"{manifest} is not a manifest of runs") from None
