"""The patient Slurm executor, without a Slurm: whose answer counts, and that no job is forgotten."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm as parent

import snakemake_executor_plugin_ghost_slurm as ours


class Said(list):
    def warning(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def executor() -> ours.Executor:
    """One that never starts its thread."""
    made = object.__new__(ours.Executor)
    made.command, made.has_accounting, made.is_waiting, made.is_stopping = "squeue", False, False, False
    made.missed, made.reported, made.logger, made.run_uuid = Counter(), set(), Said(), "run"
    made.status_rate_limiter = contextlib.AsyncExitStack()
    made.workflow = SimpleNamespace(
        executor_settings=SimpleNamespace(init_seconds_before_status_checks=5, setup="module load $STACK")
    )
    return made


def jobs(*identities: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(external_jobid=identity) for identity in identities]


def check(executor: ours.Executor, *identities: str) -> list[str]:
    async def collect() -> list[str]:
        return [job.external_jobid async for job in executor.check_active_jobs(jobs(*identities))]

    return asyncio.run(collect())


def answers(monkeypatch, **by_command) -> None:
    async def query(command, logger):
        return by_command.get(command.split()[0]), 0.0

    monkeypatch.setattr(ours, "query_job_status", query)


def parent_yields(monkeypatch, *identities: str) -> None:
    async def check_active_jobs(self, active_jobs):
        for job in active_jobs:
            if job.external_jobid in identities:
                yield job

    monkeypatch.setattr(parent.Executor, "check_active_jobs", check_active_jobs)


def test_while_nobody_answers_all_jobs_are_kept_and_it_is_said_once(executor, monkeypatch):
    answers(monkeypatch)
    assert check(executor, "1", "2") == ["1", "2"]
    assert check(executor, "1", "2") == ["1", "2"]
    assert len(executor.logger) == 1


def test_accounting_is_asked_first_and_the_queue_when_it_is_silent(executor, monkeypatch):
    parent_yields(monkeypatch, "1")
    answers(monkeypatch, sacct={"1": "RUNNING"}, squeue={})
    assert check(executor, "1") == ["1"]
    assert executor.get_status_command() == "sacct"
    answers(monkeypatch, squeue={"1": "RUNNING"})
    assert check(executor, "1") == ["1"]
    assert executor.get_status_command() == "squeue"


def test_what_the_plugin_forgets_is_kept(executor, monkeypatch):
    parent_yields(monkeypatch)
    answers(monkeypatch, squeue={"1": "RUNNING"})
    assert check(executor, "1") == ["1"]
    executor.reported.add("1")
    assert check(executor, "1") == []


def test_a_job_that_left_the_queue_unseen_is_an_error_but_accounting_is_waited_for(executor, monkeypatch):
    errors = []
    monkeypatch.setattr(executor, "report_job_error", lambda job, msg: errors.append(msg), raising=False)
    parent_yields(monkeypatch)
    answers(monkeypatch, squeue={})
    assert [check(executor, "7") for _ in range(3)] == [["7"], ["7"], []]
    assert errors == ["SLURM-job '7' left the queue unseen.\n"]
    answers(monkeypatch, sacct={})
    assert [check(executor, "8") for _ in range(9)] == [["8"]] * 9


def test_the_sites_line_comes_first_and_its_variables_are_the_jobs(executor, monkeypatch):
    monkeypatch.setattr(parent.Executor, "format_job_exec", lambda self, job: "snakemake ...")
    assert executor.format_job_exec(None) == r"module load \$STACK; snakemake ..."
    executor.workflow.executor_settings.setup = ""
    assert executor.format_job_exec(None) == "snakemake ..."
