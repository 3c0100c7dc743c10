"""Rehearse an experiment: its first unit of work at full size, by its own step. `ghost rehearse` runs this for each.

    python -m ghost.steps.rehearse --experiment '{...}' [--needs <manifest> ...] --out <manifest> --said <file>

The experiment is that of the rehearsal's build: the same widths, and few episodes, rounds, epochs. A training does a
few updates (`ghost.training.brief`). The result is a run like any other, which the rehearsals behind it read. What it
took is written to `--said`; so is one line on what is wrong with its settings, or on memory that does not suffice.
"""

import importlib
import json
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import tyro

from ghost.errors import GhostError, exit_on_error, one_line
from ghost.files import read_json, write_json
from ghost.runs.circumstances import circumstances
from ghost.runs.driver import Step, execute
from ghost.runs.records import LOCK, open_runs
from ghost.training.brief import train_briefly
from ghost.training.loop import Fit

FITS, FAILED = "fits", "failed"


def rehearse(experiment: str, out: Path, said: Path, needs: Sequence[Path] = (), reads: Sequence[Path] = ()) -> None:
    """Do the first unit of an experiment, and say what it took.

    Args:
        experiment: the experiment of the rehearsal's build, as JSON.
        out: the manifest to write.
        said: the file for what was found.
        needs: the manifests of the experiments that it needs.
        reads: the files of the repository that it reads.
    """
    found: dict[str, Any] = {"state": FITS, "why": ""}
    step = json.loads(experiment)["step"]
    try:
        out.unlink(missing_ok=True)
        with timed_epochs() as epochs_s:
            execute(step_of(step), experiment, out, needs, reads)
        (run,) = open_runs(out)
        record = run.record()
        found |= {"cpu_s": record["cpu_s"], "wall_s": record["wall_s"], "epochs_s": epochs_s}
        found["measured"] = {f"{m.condition}/{m.metric}": m.value for m in run.measured()} if step == "train" else {}
    except (MemoryError, torch.OutOfMemoryError) as error:
        found |= {"state": FAILED, "why": one_line(f"not enough memory: {error}")}
    except GhostError as error:
        found |= {"state": FAILED, "why": one_line(str(error))}
    around = circumstances([f"ghost.steps.{step}"], LOCK)
    gpus = [gpu["model"] for gpu in around["gpus"]] if torch.cuda.is_available() else []
    found |= {
        "device": gpus[0] if gpus else around["cpu"],
        "on_gpu": bool(gpus),
        "host_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "device_mb": round(torch.cuda.max_memory_allocated() / 2**20, 1) if gpus else 0.0,
        "process_s": round(time.process_time(), 3),
    }
    write_json(said, found)


@contextmanager
def timed_epochs() -> Iterator[list[float]]:
    """The processor's time of each epoch that is trained in the block: what comes before and after happens once."""
    taken_s: list[float] = []
    epoch = Fit.epoch

    def timed(fit: Fit) -> None:
        start_s = time.process_time()
        epoch(fit)
        taken_s.append(time.process_time() - start_s)

    Fit.epoch = timed  # type: ignore[method-assign, assignment]
    try:
        yield taken_s
    finally:
        Fit.epoch = epoch  # type: ignore[method-assign]


def step_of(name: str) -> Step:
    """The step itself, or the beginning of a training."""
    if name == "train":
        return train_briefly
    step: Step = getattr(importlib.import_module(f"ghost.steps.{name}"), name)
    return step


def heard(said: Path) -> dict[str, Any]:
    """What a rehearsal left."""
    form = {"state": str, "why": str, "device": str, "on_gpu": bool}
    read: dict[str, Any] = read_json(said, {**form, "host_mb": float, "device_mb": float, "process_s": float})
    return read


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(rehearse))
