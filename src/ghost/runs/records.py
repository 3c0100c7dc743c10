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
inputs, code, environment and, where weights or assets come from elsewhere, their hashes (`facts`). A setting that
names a folder outside of the project is recorded by the content of the folder (`outside`); the path is no part of the
run (`places`). Host, times and
outputs are not part of it, so the same run has the same id on a laptop and on a cluster. How many other seeds there are
is not part of it either. The record's own sha256 is over all of its fields, host and times included.

The environment is that which really ran: `lock_sha256` is the lock's only if its packages were installed, see
ghost.runs.environment.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ghost.data.results import ARRAYS, MEASURED, Measured, read_arrays, read_measured, read_table
from ghost.errors import GhostError
from ghost.files import canonical, confined, read_json, sha256
from ghost.forms import COUNT, NAME, SHA256, require
from ghost.runs.code import ROOT
from ghost.runs.units import address_of

LOCK = ROOT.parents[1] / "requirements.lock"
IDENTITY = ("experiment", "step", "module", "settings", "seed", "inputs", "code", "lock_sha256", "facts")
FIELDS = (
    *(*IDENTITY, "outside", "scale", "reduced", "stand_ins", "run_id", "outputs", "host", "start", "command", "sha256"),
)
MANIFEST, RECORD, UNITS = "manifest.json", "run.json", "units.csv"
DIFFERS = "is not the file that its manifest lists (sha256 differs); run the step again"
RUN_ID = re.compile(r"[0-9a-f]{16}")
LISTED = {"runs": [{"run_id": RUN_ID, "seed": COUNT, "files": {NAME: SHA256}}]}  # the form of a manifest
RECORDED = {  # the form of a record
    **dict.fromkeys(("experiment", "step", "module", "lock_sha256", "scale", "start"), str),
    **{"settings": dict, "outside": {str: SHA256}, "facts": dict, "reduced": {str: {"here": object, "paper": object}}},
    **{"inputs": {str: dict}, "outputs": {NAME: dict}, "code": {"sha256": str, "files": {str: dict}}},
    **{"seed": COUNT, "run_id": RUN_ID, "sha256": SHA256, "stand_ins": [str], "command": [str]},
    **{"gpus": [{"model": str, "uuid": str}]},
    **dict.fromkeys(("wall_s", "cpu_s", "peak_memory_mb"), float),
    **dict.fromkeys(("commit", "dirty_sha256", "slurm_job_id"), (str, None)),
    **dict.fromkeys(("host", "cpu"), str),
    "versions": {str: str},
}
ENVIRONMENT = {"lock": str, "packages_sha256": SHA256, "differs": [str]}


def identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """What determines a run. Of inputs and code the content counts, not the names of runs and files behind it."""
    chosen = {key: record[key] for key in IDENTITY}
    inputs = {name: entry["sha256"] for name, entry in record["inputs"].items()}
    return {**chosen, "inputs": inputs, "code": record["code"]["sha256"]}


def digest(record: Mapping[str, Any]) -> str:
    """The sha256 of a record's other fields."""
    return hashlib.sha256(canonical({**record, "sha256": None}).encode()).hexdigest()


def check_record(record: Mapping[str, Any], where: Path) -> None:
    """Refuse a record that cannot answer for its numbers: a missing field, a file without its hash, an edited field."""
    missing = [key for key in FIELDS if key not in record]
    if missing:
        raise GhostError(f"{where}: the record lacks {', '.join(missing)}")
    require(record, RECORDED, where)
    for key, form in (("environment", ENVIRONMENT), ("places", {str: str})):
        require(record.get(key), (form, None), f"{where}: {key}")  # older runs have none
    if not record["code"]["files"]:
        raise GhostError(f"{where}: the record names no source file")
    files = {**record["inputs"], **record["outputs"], **record["code"]["files"]}
    for name, entry in files.items():
        if not SHA256.fullmatch(str(entry.get("sha256"))):
            raise GhostError(f"{where}: {name} is recorded without its sha256")
    run_id = address_of(identity(record))
    if record["run_id"] != run_id:
        raise GhostError(f"{where}: the run id {record['run_id']} is not that of its content ({run_id})")
    if record["sha256"] != digest(record):
        raise GhostError(f"{where}: the record was edited: its sha256 is not that of its fields")


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
        path = self.folder / f"seed{self.seed}" / RECORD
        record: dict[str, Any] = read_json(path, dict)
        check_record(record, path)
        if record["run_id"] != self.run_id:
            raise GhostError(f"{path}: run {record['run_id']}, but the manifest lists {self.run_id} there")
        return record

    def inputs(self, *steps: str) -> list["Run"]:
        """The runs that it used and that these steps made, found beside it."""
        found = []
        for name, entry in self.record()["inputs"].items():
            manifest = confined(self.folder.parent, f"{Path(name).parent}/{MANIFEST}")
            if "run_id" in entry and manifest.is_file():
                found += [run for run in open_runs(manifest) if run.run_id == entry["run_id"]]
        return [run for run in found if run.record()["step"] in steps]

    @cached_property
    def marks(self) -> tuple[bool, tuple[str, ...]]:
        """Whether its settings or those of its inputs are reduced, and what it stands in for."""
        record = self.record()
        return bool(record["reduced"]), tuple(record["stand_ins"])

    def measured(self) -> list[Measured]:
        return self._measured

    @cached_property
    def _measured(self) -> list[Measured]:
        return read_measured(self._read(MEASURED), f"{self.folder}/seed{self.seed}/{MEASURED}")

    def value(self, condition: str, metric: str) -> float:
        """One measured value; nan where the run has none (a goal that was never reached)."""
        found = [m.value for m in self.measured() if (m.condition, m.metric) == (condition, metric)]
        if len(found) != 1:
            raise GhostError(f"{self.folder} seed {self.seed}: {condition}/{metric} has values {found}, expected one")
        return found[0]

    def table(self, name: str) -> list[dict[str, str]]:
        """The lines of a file of the run that is a table (CSV)."""
        return read_table(self._read(name), f"{self.folder}/seed{self.seed}/{name}")

    def arrays(self) -> dict[str, np.ndarray]:
        return read_arrays(self._read(ARRAYS), f"{self.folder}/seed{self.seed}/{ARRAYS}")

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
    require(listing, LISTED, f"{manifest} is not a manifest of runs")
    listed = listing["runs"]
    runs = [Run(manifest.parent, run["run_id"], run["seed"], run["files"]) for run in listed]
    if len({run.seed for run in runs}) < len(runs):
        raise GhostError(f"{manifest} lists a seed twice")
    for run in runs:
        wrong = [name for name in run.files if not name.startswith(f"seed{run.seed}/")]
        if wrong:
            raise GhostError(f"{manifest}: {wrong[0]!r} is no file of seed{run.seed}")
    return runs
