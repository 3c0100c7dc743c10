"""`ghost plan fig:diagnostic`: the jobs before a run, what they will cost, what is cached, and the critical path.

Which jobs there are and which would run is Snakemake's own answer (two dry runs with the Slurm profile). The hours of a
job are those of its recorded runs, else of Snakemake's record of the job; where there is neither, the profile's limit,
which says the most it may take. Light rules without a record (they run where Snakemake runs) count nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from ghost.errors import GhostError, did_you_mean
from ghost.files import read_json
from ghost.project.dvc import files
from ghost.project.snapshots import record_path
from ghost.runs.records import open_runs
from ghost.study import ARTEFACTS
from ghost.study.builds import Config

JOB = re.compile(r"^(?:local)?rule (\w+):\n((?:    .*\n)*)", re.MULTILINE)
LIGHT = re.compile(r"^localrules:\n((?:    .*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Job:
    rule: str
    wildcards: str
    inputs: frozenset[str]
    outputs: frozenset[str]
    cpus: int
    gpus: int
    limit_s: float  # what the profile grants at the first attempt

    @property
    def name(self) -> str:
        return f"{self.rule} {self.wildcards}".strip()


@dataclass(frozen=True)
class Cost:
    wall_s: float
    source: str  # recorded, limit or light


def plan(identity: str, config: Config) -> str:
    """What there is to say before `snakemake` is started for a figure, a table or the `paper`."""
    wanted = targets(identity, config)
    jobs = dry_run(wanted, config, "--forceall")
    to_run = {job.name for job in dry_run(wanted, config)}
    costs = {job.name: cost(job) for job in jobs}
    lines = [
        f"{identity} at {config.scale} scale: {len(jobs)} jobs, {len(to_run)} to run, {len(jobs) - len(to_run)} cached"
    ]
    width = max((len(job.name) for job in jobs), default=0)
    for job in jobs:
        lines.append(f"  {job.name:{width}}  {price(job, costs[job.name]) if job.name in to_run else 'cached'}")
    rest = [job for job in jobs if job.name in to_run]
    cpu_h = sum(costs[job.name].wall_s * job.cpus for job in rest) / 3600
    gpu_h = sum(costs[job.name].wall_s * job.gpus for job in rest) / 3600
    bound = ", at most" if any(costs[job.name].source == "limit" for job in rest) else ""
    lines.append(f"to pay{bound}: {cpu_h:.3f} CPU hours, {gpu_h:.3f} GPU hours")
    path, seconds = critical_path(rest, costs)
    if path:
        lines.append(f"critical path: {' -> '.join(path)}, {seconds / 3600:.3f} h")
    return "\n".join(lines)


def targets(identity: str, config: Config) -> list[str]:
    if identity == "paper":
        return ["all"]
    known = {artefact.id: artefact for artefact in ARTEFACTS}
    if identity not in known:
        raise GhostError(f"no figure or table {identity!r}{did_you_mean(identity, [*known, 'paper'])}")
    if not known[identity].step:
        raise GhostError(f"{identity} is declared, but nothing builds it yet")
    return [*files(known[identity], config), str(config.data / "cells" / f"{known[identity].stage}.jsonl")]


def dry_run(wanted: list[str], config: Config, *more: str) -> list[Job]:
    """The jobs that Snakemake would run, in the order the data flows."""
    command = [sys.executable, "-m", "snakemake", "--profile", "slurm", "--dry-run", "--nolock", *more, *wanted]
    done = subprocess.run([*command, "--config", f"scale={config.scale}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GhostError(" ".join((done.stderr or done.stdout).splitlines()[-1:]) or "snakemake --dry-run failed")
    found = sorted(
        {_job(rule, body) for rule, body in JOB.findall(done.stdout) if rule != "all"}, key=lambda job: job.name
    )
    return list(TopologicalSorter({job: before(job, found) for job in found}).static_order())


def before(job: Job, jobs: list[Job]) -> list[Job]:
    """Those among the jobs whose outputs a job reads."""
    return [other for other in jobs if other.outputs & job.inputs]


def _job(rule: str, body: str) -> Job:
    fields = dict(re.findall(r"    (\w+): (.*)", body))
    resources = dict(re.findall(r"(\w+)=([^,]+)", fields.get("resources", "")))
    return Job(
        rule,
        ", ".join(part.split("=")[1] for part in fields.get("wildcards", "").split(", ") if part),
        frozenset(filter(None, fields.get("input", "").split(", "))),
        frozenset(filter(None, fields.get("output", "").split(", "))),
        int(resources.get("cpus_per_task") or fields.get("threads") or 1),
        int(resources.get("gpu", 0)),
        float(resources.get("runtime", 0)) * 60,
    )


def cost(job: Job) -> Cost:
    manifests = [path for output in job.outputs if (path := Path(output)).name == "manifest.json"]
    for path in manifests:
        if path.exists():
            return Cost(sum(run.record()["wall_s"] for run in open_runs(path)), "recorded")
    for output in sorted(job.outputs):
        if record_path(output).exists() and Path(output).exists():
            record = read_json(record_path(output))
            return Cost(max(0.0, (record.get("endtime") or 0) - (record.get("starttime") or 0)), "recorded")
    return Cost(0.0, "light") if job.rule in light_rules() else Cost(job.limit_s, "limit")


@cache
def light_rules() -> frozenset[str]:
    """The Snakefile's `localrules`."""
    found = LIGHT.search(Path("Snakefile").read_text(encoding="utf-8"))
    return frozenset(re.findall(r"\w+", found[1])) if found else frozenset()


def critical_path(jobs: list[Job], costs: dict[str, Cost]) -> tuple[list[str], float]:
    """The chain of jobs that takes longest, however many run at once. `jobs` are in the order the data flows."""
    longest: dict[str, tuple[list[str], float]] = {}
    for job in jobs:
        path, seconds = _longest(longest[other.name] for other in before(job, jobs))
        longest[job.name] = ([*path, job.name], seconds + costs[job.name].wall_s)
    return _longest(longest.values())


def _longest(paths: Iterable[tuple[list[str], float]]) -> tuple[list[str], float]:
    return max(paths, key=lambda found: (found[1], len(found[0])), default=([], 0.0))


def price(job: Job, cost: Cost) -> str:
    if cost.source == "light":
        return "light"
    gpus = f" and {job.gpus} GPU{'s' if job.gpus > 1 else ''}" if job.gpus else ""
    bound = "at most " if cost.source == "limit" else ""
    return f"{bound}{cost.wall_s / 3600:.3f} h on {job.cpus} CPU{'s' if job.cpus > 1 else ''}{gpus}"
