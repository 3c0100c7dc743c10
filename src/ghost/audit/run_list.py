"""The runs of a build as the audit page lists them: state, device, time, memory, cost, versions, training curves.

A run that is listed in a manifest is finished. What the article's size asks for beyond these was not run, and the page
says so too.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ghost.data.results import ARRAYS, read_table
from ghost.errors import GhostError
from ghost.files import confined
from ghost.runs.records import UNITS, Run
from ghost.study.declarations import Experiment

Record = dict[str, Any]
# Fields of a record that the script shows as they are. The page itself holds the rest of the record, once.
SHOWN = (
    *("experiment", "step", "settings", "facts", "commit", "start", "wall_s", "peak_memory_mb", "host", "versions"),
)
EVERYWHERE = ("python", "numpy", "scipy")  # packages that tell no run from another
CURVE = "training/"  # the arrays of a run that are curves of its training
POINTS = 60  # of a curve: a line as wide as the page's plot needs no more


def listed(run: Run, record: Record) -> dict[str, Any]:
    """What the script of the page shows of a run."""
    curves, length = training_curves(run)
    return {
        **{key: record[key] for key in SHOWN},
        "id": run.run_id,
        "seed": run.seed,
        "device": ", ".join(gpu["model"] for gpu in record["gpus"]) or processor(record["cpu"]),
        "marks": marks(record, length),
        "software": software(record),
        "time": f"{record['wall_s']:,.1f} s",
        "memory": f"{record['peak_memory_mb']:,.0f} MB",
        **cost(run, record),
        "curves": curves,
        "length": length,
        "code": record["code"]["sha256"][:16],
        "inputs": {name: entry["sha256"][:16] for name, entry in record["inputs"].items()},
        "needs": [name.rpartition("/seed")[0] for name, entry in record["inputs"].items() if "run_id" in entry],
    }


def processor(name: str) -> str:
    """The name of a processor without what all of them have in theirs; the record has the whole."""
    return " ".join(re.sub(r"\((?:R|TM)\)|\b(?:CPU|Processor)\b|@", " ", name, flags=re.IGNORECASE).split()) or name


def marks(record: Record, length: int) -> list[str]:
    """What is to be said of a finished run."""
    said = [f"stand-in: {', '.join(record['stand_ins'])}"] if record["stand_ins"] else []
    if record["reduced"]:
        said.append("reduced scale")
    epochs = record["settings"].get("epochs")
    if isinstance(epochs, int) and 0 < length < epochs:
        said.append("stopped early")
    if (record.get("environment") or {}).get("differs"):
        said.append("packages differ from the lock")
    if record["dirty_sha256"]:
        said.append("uncommitted code")
    return said


def software(record: Record) -> list[str]:
    """The versions of simulators, of torch, and of the models and assets that came from elsewhere."""
    packages = [f"{name} {version}" for name, version in record["versions"].items() if name not in EVERYWHERE]
    models = {name: fact for name, fact in record["facts"].items() if isinstance(fact, dict) and "sha256" in fact}
    return packages + [
        f"{name} {fact['name']} {str(fact.get('revision'))[:8]}" if "name" in fact else f"{name} {fact['sha256'][:8]}"
        for name, fact in models.items()
        if isinstance(fact["sha256"], str)
    ]


def cost(run: Run, record: Record) -> dict[str, Any]:
    """CPU and GPU hours. The units of a run may have been done by other jobs, and a process knows its own time only."""
    units_s = sum(_unit_times_s(run))
    cpu_h, gpu_h = max(record["cpu_s"], units_s) / 3600, len(record["gpus"]) * max(record["wall_s"], units_s) / 3600
    shown = f"{cpu_h:,.4f} CPU h" if cpu_h >= 1e-4 else "< 0.0001 CPU h"
    shown += f", {gpu_h:,.4f} GPU h" if record["gpus"] else ""
    return {"cpu_h": round(cpu_h, 6), "gpu_h": round(gpu_h, 6), "cost": shown}


def training_curves(run: Run) -> tuple[dict[str, list[float | None]], int]:
    """The curves of a training, thinned, and how many points they had. A value that is not finite is a gap."""
    if f"seed{run.seed}/{ARRAYS}" not in run.files:
        return {}, 0
    arrays = sorted(run.arrays().items())  # a file of arrays has no order, and the page must be the same each time
    found = {name.removeprefix(CURVE): a for name, a in arrays if name.startswith(CURVE) and a.ndim == 1}
    whole = {name: a.astype(float) for name, a in found.items() if a.size and a.dtype.kind in "fiu"}
    return {name: thinned(a) for name, a in whole.items()}, max((len(a) for a in whole.values()), default=0)


def thinned(curve: np.ndarray) -> list[float | None]:
    """At most POINTS values, evenly spaced, the first and the last among them, to four digits."""
    kept = curve[np.unique(np.linspace(0, len(curve) - 1, min(POINTS, len(curve))).round().astype(int))]
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in kept]


def not_run(runs: Iterable[Run], wanted: Iterable[Experiment]) -> list[dict[str, Any]]:
    """The runs that a build lacks, by experiment; `wanted` are its experiments at the article's size."""
    there = {(run.folder.name, run.seed) for run in runs}
    missing = [(e, [seed for seed in e.seeds if (e.name, seed) not in there]) for e in wanted]
    return [{"experiment": e.name, "step": e.step, "seeds": seeds, "n": len(seeds)} for e, seeds in missing if seeds]


def _unit_times_s(run: Run) -> list[float]:
    """Of the units that a run consists of; none where it is a unit itself."""
    path = confined(run.folder, f"seed{run.seed}/{UNITS}")
    if not path.is_file():
        return []
    try:
        times_s = [float(line["wall_s"]) for line in read_table(path.read_bytes(), str(path))]
    except (ValueError, KeyError) as error:
        raise GhostError(f"{path} has a line without its time: {error}") from None
    if not np.isfinite(times_s).all():
        raise GhostError(f"{path} has a time that is not finite")
    return times_s
