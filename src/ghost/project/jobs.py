"""The jobs of a build as Snakemake's own graph has them, without running any."""

import contextlib
import gc
import io
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from ghost.errors import GhostError
from ghost.study.parts import Grain, check_grain


@dataclass(frozen=True)
class Job:
    rule: str
    wildcards: tuple[str, ...]
    inputs: frozenset[str]
    outputs: frozenset[str]
    cpus: int = 1
    gpus: int = 0
    limit_s: float = 0.0  # the time that the profile grants at the first attempt
    memory_mb: int = 0  # that it asks for at the first attempt
    is_light: bool = False
    is_done: bool = False  # its outputs are up to date

    @property
    def name(self) -> str:
        return " ".join((self.rule, *self.wildcards))

    @property
    def kind(self) -> str:
        """Without its part: what a line of the plan is about."""
        return " ".join((self.rule, *self.wildcards[:1]))


def read_jobs(wanted: list[str], config: Mapping[str, str], *, cores: int | None = None) -> tuple[list[Job], Grain]:
    """All jobs behind these targets, in the order the data flows, from Snakemake's own graph; and the site's grain.

    With `cores`, those of this machine, which has so many.
    """
    from snakemake import cli
    from snakemake.api import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings, SnakemakeApi
    from snakemake.exceptions import RuleException, WorkflowError

    _, profile = cli.parse_args([] if cores else ["--profile", "slurm"])
    grain = check_grain(profile.set_scatter or {})
    resources = ResourceSettings(
        cores=cores,
        nodes=None if cores else profile.jobs,
        overwrite_resources=profile.set_resources,
        default_resources=profile.default_resources,
        overwrite_scatter=grain,
    )
    graph = DAGSettings(
        wanted,
        force_incomplete=profile.rerun_incomplete,
        rerun_triggers=profile.rerun_triggers,
        max_checksum_file_size=profile.max_checksum_file_size,
    )
    try:
        with _lean(), SnakemakeApi(OutputSettings(dryrun=True, log_level_override=logging.ERROR)) as api:
            workflow_api = api.workflow(resources, ConfigSettings(config=dict(config)))
            with contextlib.redirect_stdout(io.StringIO()):
                workflow_api.dag(graph).printrulegraph()  # makes the graph of jobs, and does not describe each
            found = _read(workflow_api._workflow)
    except (WorkflowError, RuleException) as error:
        raise GhostError(str(error)) from None
    found.sort(key=lambda job: job.name)
    return list(TopologicalSorter(before(found)).static_order()), grain


@contextlib.contextmanager
def _lean() -> Iterator[None]:
    """Snakemake without what a plan has no use for, half of the time of a large graph; what it changes is put back.

    That is the garbage collector (all of the graph is in use), the environments of the jobs, for which the parameters
    of every job are evaluated, and the signature of an input function anew for every job.
    """
    from snakemake import common
    from snakemake.dag import DAG

    environments, parameters = DAG.update_conda_envs, common.get_function_params
    was_on, environment = gc.isenabled(), dict(os.environ)
    gc.disable()
    DAG.update_conda_envs = lambda self: None
    common.get_function_params = cache(parameters)
    try:
        yield
    finally:
        DAG.update_conda_envs, common.get_function_params = environments, parameters
        os.environ.update(environment)  # the Snakefile puts its own source first
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        if was_on:
            gc.enable()


def _read(workflow: Any) -> list[Job]:
    """Snakemake's jobs as ours. Jobs that differ in their part ask for the same, which is evaluated once."""
    asked: dict[tuple[str, ...], tuple[int, int, float, int]] = {}
    found = []
    for job in workflow.dag.jobs:
        if job.rule.norun:
            continue
        wildcards = tuple(job.wildcards_dict.values())
        if (kind := (job.rule.name, *wildcards[:1])) not in asked:
            of = job.resources
            cpus, limit_s = of.get("cpus_per_task") or job.threads, of.get("runtime", 0) * 60
            asked[kind] = (cpus, of.get("gpu", 0), limit_s, of.get("mem_mb", 0))
        inputs, outputs = frozenset(map(str, job.input)), frozenset(map(str, job.output))
        # `is_local` of a job is true for all of them here; `_localrules` holds the Snakefile's list.
        light, done = job.rule.name in workflow._localrules, not workflow.dag.needrun(job)
        found.append(Job(job.rule.name, wildcards, inputs, outputs, *asked[kind], light, done))
    return found


def before(jobs: list[Job]) -> dict[Job, list[Job]]:
    """The jobs whose outputs each job reads."""
    makers = {output: job for job in jobs for output in job.outputs}
    return {job: list(dict.fromkeys(makers[name] for name in sorted(job.inputs) if name in makers)) for job in jobs}
