"""`ghost plan fig:diagnostic`: the jobs before a build, their cost, which are done already, and the critical path.

Snakemake itself says which jobs there are and which would run, as with `--profile slurm`. A job costs the hours of its
recorded runs, or else those in Snakemake's own record of it. A job without any record may take up to the profile's time
limit; if its rule is light (it runs where Snakemake runs, not in the queue), it counts nothing.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.files import read_json
from ghost.project.dvc import files
from ghost.project.snapshots import record_path
from ghost.runs.records import open_runs
from ghost.study import ARTEFACTS
from ghost.study.builds import Config


@dataclass(frozen=True)
class Job:
    rule: str
    wildcards: str
    inputs: frozenset[str]
    outputs: frozenset[str]
    cpus: int = 1
    gpus: int = 0
    limit_s: float = 0.0  # the time that the profile grants at the first attempt
    is_light: bool = False
    is_done: bool = False  # its outputs are up to date

    @property
    def name(self) -> str:
        return f"{self.rule} {self.wildcards}".strip()


@dataclass(frozen=True)
class Cost:
    wall_s: float
    source: str  # recorded, limit or light


def plan(identity: str, config: Config) -> str:
    """The jobs and their cost, to be read before `snakemake` is started for a figure, a table or the `paper`."""
    jobs = read_jobs(targets(identity, config), {**config.overrides, "scale": config.scale})
    rest = [job for job in jobs if not job.is_done]
    costs = {job.name: cost(job) for job in rest}
    counts = f"{len(jobs)} jobs, {len(rest)} to run, {len(jobs) - len(rest)} cached"
    lines = [f"{identity} at {config.scale} scale: {counts}"]
    width = max((len(job.name) for job in jobs), default=0)
    for job in jobs:
        lines.append(f"  {job.name:{width}}  {'cached' if job.is_done else price(job, costs[job.name])}")
    cpu_h = sum(costs[job.name].wall_s * job.cpus for job in rest) / 3600
    gpu_h = sum(costs[job.name].wall_s * job.gpus for job in rest) / 3600
    bound = ", at most" if any(found.source == "limit" for found in costs.values()) else ""
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


def read_jobs(wanted: list[str], config: Mapping[str, str]) -> list[Job]:
    """All jobs behind these targets, in the order the data flows, from Snakemake's own graph."""
    from snakemake import cli
    from snakemake.api import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings, SnakemakeApi
    from snakemake.exceptions import RuleException, WorkflowError

    _, profile = cli.parse_args(["--profile", "slurm"])
    resources = ResourceSettings(
        nodes=profile.jobs, overwrite_resources=profile.set_resources, default_resources=profile.default_resources
    )
    largest = profile.max_checksum_file_size
    graph = DAGSettings(wanted, force_incomplete=profile.rerun_incomplete, max_checksum_file_size=largest)
    try:
        with SnakemakeApi(OutputSettings(dryrun=True, log_level_override=logging.ERROR)) as api:
            workflow_api = api.workflow(resources, ConfigSettings(config=dict(config)))
            workflow_api.dag(graph).execute_workflow(executor="dryrun")
            workflow = workflow_api._workflow
            found = [_job(job, workflow) for job in workflow.dag.jobs if not job.rule.norun]
    except (WorkflowError, RuleException) as error:
        raise GhostError(str(error)) from None
    found.sort(key=lambda job: job.name)
    return list(TopologicalSorter({job: before(job, found) for job in found}).static_order())


def _job(job: Any, workflow: Any) -> Job:
    # In a dry run Snakemake's `is_local` is true for every job; `_localrules` holds the Snakefile's list.
    return Job(
        job.rule.name,
        ", ".join(job.wildcards_dict.values()),
        frozenset(map(str, job.input)),
        frozenset(map(str, job.output)),
        job.resources.get("cpus_per_task") or job.threads,
        job.resources.get("gpu", 0),
        job.resources.get("runtime", 0) * 60,
        is_light=job.rule.name in workflow._localrules,
        is_done=not workflow.dag.needrun(job),
    )


def before(job: Job, jobs: list[Job]) -> list[Job]:
    """The jobs whose outputs a job reads."""
    return [other for other in jobs if other.outputs & job.inputs]


def cost(job: Job) -> Cost:
    for path in sorted(map(Path, job.outputs)):
        if path.name == "manifest.json" and path.exists():
            return Cost(sum(run.record()["wall_s"] for run in open_runs(path)), "recorded")
        if path.exists() and record_path(str(path)).exists():
            record = read_json(record_path(str(path)))
            return Cost(max(0.0, (record.get("endtime") or 0) - (record.get("starttime") or 0)), "recorded")
    return Cost(0.0, "light") if job.is_light else Cost(job.limit_s, "limit")


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
