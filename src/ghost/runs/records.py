"""Runs and their records: what was run, from which bytes, by which code, where.

A run is one experiment with one seed. Its folder is data/<scale>/runs/<experiment>/seed<seed>/ with

    run.json             the record
    measured.csv             the raw results: condition, metric, value, n
    arrays.safetensors   what figures draw
    ...                  what else the run wrote: a checkpoint, shards

The experiment's manifest.json, one folder up, lists the runs and the sha256 of each of their files. It is the one
output that Snakemake knows: it is small, it changes when and only when a result changes, and a step that was killed
leaves its partial files for the next try but no manifest. Files are verified against it when they are opened.

The run id is the content address of what determines the result: experiment row, scale, seeds, inputs, code,
environment and, where weights come from elsewhere, their hashes (`facts`). Host, times and outputs are told in the
record and left out of the id, so the same run has the same id on a laptop and on a cluster.
"""

from __future__ import annotations

import csv
import hashlib
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from ghost.errors import GhostError
from ghost.files import atomic, canonical, confined, hashes, read_json, sha256, write_json
from ghost.runs.code import ROOT, code_hash, file_hash, sources
from ghost.runs.results import Measured, Outcome

LOCK = ROOT.parents[1] / "requirements.lock"
VERSIONS = ("numpy", "scipy", "torch", "snakemake", "lerobot", "transformers")  # shown; the lock's hash pins the rest
IDENTITY = (
    "experiment",
    "step",
    "module",
    "scale",
    "settings",
    "seed",
    "reduced",
    "stand_ins",
    "inputs",
    "code",
    "lock_sha256",
)
MANIFEST = "manifest.json"
DIFFERS = "is not the file that its manifest lists (sha256 differs); run the step again"
SHA256 = re.compile(r"[0-9a-f]{64}")


def run_id(record: Mapping[str, Any]) -> str:
    identity = {key: record[key] for key in (*IDENTITY, "facts") if key in record or key in IDENTITY}
    return hashlib.sha256(canonical(identity).encode()).hexdigest()[:16]


def check_record(record: Mapping[str, Any], where: Path) -> None:
    """Refuse a record that cannot answer for its numbers: a missing field, a file without its hash, a wrong id."""
    missing = [key for key in (*IDENTITY, "run_id", "outputs", "host", "start", "command") if key not in record]
    if missing:
        raise GhostError(f"{where}: the record lacks {', '.join(missing)}")
    if not record["code"]["files"]:
        raise GhostError(f"{where}: the record names no source file")
    files = {**record["inputs"], **record["outputs"], **record["code"]["files"]}
    for name, entry in files.items():
        if not SHA256.fullmatch(str(entry.get("sha256"))):
            raise GhostError(f"{where}: {name} is recorded without its sha256")
    if record["run_id"] != run_id(record):
        raise GhostError(f"{where}: the run id {record['run_id']} is not that of its content ({run_id(record)})")


# ---------------------------------------------------------------------------------------------------------- writing


def record_runs(
    row: Mapping[str, Any],
    modules: tuple[str, ...],
    manifest: Path,
    run: Callable[[int, Path], Outcome],
    *,
    inputs: Iterable[Path] = (),
    stand_ins: Iterable[str] = (),
    lock: Path = LOCK,
) -> None:
    """Run every seed of an experiment's row and write its runs, then the manifest.

    `modules` are the entry modules of the code that runs; `run(seed, folder)` does the work. It may keep files in the
    run's folder, also unfinished ones from which a killed run goes on; what its outcome names is recorded. `lock` pins
    the environment, where it is not ours.
    """
    code = {
        "sha256": code_hash(*modules, science=True),
        "files": {
            str(path.relative_to(ROOT.parent)): {"sha256": file_hash(path)} for path in sources(*modules, science=True)
        },
    }
    inputs, stand_ins = tuple(inputs), tuple(stand_ins)
    input_hashes = {str(path): hashes(path) for path in inputs}
    reduced = {**_inherited(inputs), **row["reduced"]}
    entries = []
    for seed in row["seeds"]:
        folder = manifest.parent / f"seed{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        start, start_s, start_cpu_s = datetime.now(UTC), time.monotonic(), time.process_time()
        outcome = run(seed, folder)
        wall_s, cpu_s = time.monotonic() - start_s, time.process_time() - start_cpu_s
        _write_rows(folder / "measured.csv", outcome.measured)
        with atomic(folder / "arrays.safetensors") as temporary:
            # save_file would map the file with the owner's permissions only; the bytes are small enough for memory
            temporary.write_bytes(save_safetensors({k: np.ascontiguousarray(v) for k, v in outcome.arrays.items()}))
        names = ("measured.csv", "arrays.safetensors", *outcome.files)
        outputs = {name: hashes(confined(folder, name)) for name in names}
        record = {
            "experiment": row["name"],
            "step": row["step"],
            "module": row["module"],
            "scale": row["scale"],
            "settings": dict(row["settings"]),
            "reduced": reduced,
            "seed": seed,
            "stand_ins": sorted({*stand_ins, *outcome.stand_ins}),
            "inputs": input_hashes,
            "code": code,
            "lock_sha256": sha256(lock),
            **({"facts": dict(outcome.facts)} if outcome.facts else {}),
            "outputs": outputs,
            "start": start.isoformat(timespec="seconds"),
            "end": datetime.now(UTC).isoformat(timespec="seconds"),
            "wall_s": round(wall_s, 3),
            "cpu_s": round(cpu_s, 3),
            **_circumstances(),
        }
        record["run_id"] = run_id(record)
        check_record(record, folder / "run.json")
        write_json(folder / "run.json", record)
        files = {f"{folder.name}/{name}": entry["sha256"] for name, entry in outputs.items()}
        entries.append({"run_id": record["run_id"], "seed": seed, "files": files})
    write_json(manifest, {"experiment": row["name"], "scale": row["scale"], "runs": entries})


def _inherited(inputs: Iterable[Path]) -> dict[str, Any]:
    """What was reduced in the runs that are inputs: a test of a small model is reduced, whatever its size."""
    records = {path.parent.name: open_runs(path)[0].record() for path in inputs if path.name == MANIFEST}
    return {
        key if "." in key else f"{name}.{key}": value
        for name, record in records.items()
        for key, value in record["reduced"].items()
    }


def _write_rows(path: Path, rows: list[Measured]) -> None:
    with atomic(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(["condition", "metric", "value", "n"])
        for row in rows:
            writer.writerow([row.condition, row.metric, repr(float(row.value)), row.n])


def _circumstances() -> dict[str, Any]:
    """Where and how the run happened: told, not part of its identity."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty_sha256": _dirty(),
        "command": [Path(sys.executable).name, *sys.orig_argv[1:]],
        "host": platform.node(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpus": _gpus(),
        "cpus": int(os.environ.get("SLURM_CPUS_PER_TASK") or len(os.sched_getaffinity(0))),  # that this job may use
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
        "slurm_node": os.environ.get("SLURMD_NODENAME"),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "versions": {
            "python": platform.python_version(),
            **{name: version for name in VERSIONS if (version := _version(name))},
        },
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # an environment of its own has other packages
        return None


def _git(*arguments: str) -> str | None:
    """Git's answer, or None outside a checkout (a release tarball is a fine place to run)."""
    if shutil.which("git") is None:
        return None
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def _dirty() -> str | None:
    """Hash of what differs from the commit, None when nothing does."""
    diff = _git("diff", "HEAD", "--", ".")
    return hashlib.sha256(diff.encode()).hexdigest() if diff else None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _gpus() -> list[dict[str, str]]:
    """Model and UUID of the GPUs this job may use, so that a faulty card can be traced to its runs."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name,uuid", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    gpus = [dict(zip(("model", "uuid"), map(str.strip, line.split(",")), strict=True)) for line in lines]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return gpus
    wanted = visible.split(",")
    return [gpu for index, gpu in enumerate(gpus) if str(index) in wanted or gpu["uuid"] in wanted]


# ---------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Run:
    """One finished run. Files are checked against the manifest's sha256 when they are read."""

    folder: Path
    run_id: str
    seed: int
    files: Mapping[str, str]  # name below the experiment's folder -> sha256

    @property
    def content(self) -> str:
        """One hash over its files: what the runs that use this one record as their input."""
        return hashlib.sha256(canonical(dict(self.files)).encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        path = self.folder / f"seed{self.seed}" / "run.json"
        record: dict[str, Any] = read_json(path)
        check_record(record, path)
        if record["run_id"] != self.run_id:
            raise GhostError(f"{path}: run {record['run_id']}, but the manifest lists {self.run_id} there")
        return record

    def measured(self) -> list[Measured]:
        lines = csv.DictReader(self._read("measured.csv").decode().splitlines())
        return [Measured(line["condition"], line["metric"], float(line["value"]), int(line["n"])) for line in lines]

    def value(self, condition: str, metric: str) -> float:
        """One measured value; nan where the run has none (a goal that was never reached)."""
        found = [m.value for m in self.measured() if (m.condition, m.metric) == (condition, metric)]
        if len(found) != 1:
            raise GhostError(f"{self.folder} seed {self.seed}: {condition}/{metric} has values {found}, expected one")
        return found[0]

    def arrays(self) -> dict[str, np.ndarray]:
        try:
            return dict(load_safetensors(self._read("arrays.safetensors")))
        except SafetensorError as error:
            raise GhostError(f"{self.folder}/seed{self.seed}/arrays.safetensors: {error}") from None

    def path(self, name: str) -> Path:
        """A file of the run, verified."""
        path, expected = self._listed(name)
        if sha256(path) != expected:
            raise GhostError(f"{path} {DIFFERS}")
        return path

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
            raise GhostError(f"{self.folder}/manifest.json lists no {key}")
        return confined(self.folder, key), self.files[key]


def open_runs(manifest: Path) -> list[Run]:
    """The runs that a manifest lists, in the order of its experiment's seeds."""
    listing = read_json(manifest)
    try:
        return [Run(manifest.parent, run["run_id"], run["seed"], run["files"]) for run in listing["runs"]]
    except (KeyError, TypeError):
        raise GhostError(f"{manifest} is not a manifest of runs") from None
