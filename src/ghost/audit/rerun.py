"""`ghost audit --rerun`: do runs again in a scratch folder and compare. It is the only proof of a value.

A run is done by the command of its step, from the inputs that are there, in its own environment. It is the same run if
each of its files has the same sha256. On another kind of processor sums may round differently: then the measured values
differ by little, and the largest relative difference is shown.
"""

import math
import os
import random
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ghost.audit.build import Build
from ghost.audit.lookup import choose
from ghost.errors import GhostError
from ghost.files import canonical
from ghost.runs.records import MANIFEST, Run, open_runs


@dataclass(frozen=True)
class Second:
    """A run beside its repetition."""

    name: str  # such as cvae/seed42
    run_id: str
    differing: tuple[str, ...]  # files with other bytes
    largest: float  # relative difference of a measured value
    timed: bool  # its values are times, which no second run repeats

    @property
    def same(self) -> bool:
        return self.timed or not self.differing

    def __str__(self) -> str:
        if not self.differing:
            return f"{self.name}  {self.run_id}  identical"
        files = ", ".join(self.differing)
        why = "a clock decides; " if self.timed else ""
        return f"{self.name}  {self.run_id}  differs in {files}; {why}largest relative difference {self.largest:.2g}"


def rerun(build: Build, asked: str, sample: int, seed: int | None = None) -> list[Second]:
    """Do some of the runs behind a cell again, or the run whose id begins like this."""
    runs = candidates(build, asked)
    chosen = random.Random(seed).sample(runs, min(sample, len(runs)))  # noqa: S311  # a sample, no secret
    return [again(build, run) for run in chosen]


def candidates(build: Build, asked: str) -> list[Run]:
    named = [run for run_id, run in build.runs.items() if len(asked) >= 4 and run_id.startswith(asked)]
    if named:
        return named
    ids = {run_id for cell in choose(build, asked) for run_id in cell["runs"]}
    return sorted((run for _, run in build.lineage(ids)), key=lambda run: run.name)


def again(build: Build, run: Run) -> Second:
    config, name = build.config, run.folder.name
    experiment = config.experiment(name)
    with tempfile.TemporaryDirectory(prefix="ghost-rerun-") as scratch:
        out = Path(scratch) / name / MANIFEST
        declared = canonical({**config.declaration(name), "seeds": [run.seed]})
        needs = [str(config.manifest(need)) for need in experiment.needs]
        command = [*config.python(name), "-m", f"ghost.steps.{experiment.step}", "--experiment", declared]
        command += ["--out", str(out), *(["--needs", *needs] if needs else [])]
        command += ["--reads", *experiment.reads] if experiment.reads else []
        environment = {**os.environ, "OMP_NUM_THREADS": str(config.threads(name)), **config.environment(name)}
        # S603: a step of ours with the study's own values
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise GhostError(f"{run.name} cannot be run again: {said[-1].removeprefix('ghost: error: ')}")
        (second,) = open_runs(out)
        names = sorted({*run.files, *second.files})
        differing = tuple(name.partition("/")[2] for name in names if run.files.get(name) != second.files.get(name))
        return Second(run.name, run.run_id, differing, _largest_difference(run, second), experiment.timed)


def _largest_difference(first: Run, second: Run) -> float:
    """Of the measured values, relative to the larger one; infinite where only one run has the value."""
    ours, theirs = ({(m.condition, m.metric): m.value for m in run.measured()} for run in (first, second))
    if ours.keys() != theirs.keys():
        return math.inf
    pairs = [(a, theirs[key]) for key, a in ours.items() if not (math.isnan(a) and math.isnan(theirs[key]))]
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b), default=0.0)
