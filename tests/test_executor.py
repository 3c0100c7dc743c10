"""The patient Slurm executor, without a Slurm: whose answer counts, and that no job is forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

import snakemake_executor_plugin_ghost_slurm as ours


class Said(list):
    def warning(self, text: str) -> None:
        self.append(text)


SETTINGS = {
    "init_seconds_before_status_checks": 5,
    "setup": "module load $STACK",
    "cpu_arguments": "--partition=small",
    "gpu_arguments": "--partition=large --qos=fast",
    "gpu_type": "a100",
    "requeue": True,
    "no_requeue": False,
    "keep_successful_logs": True,
    "qos": None,
    "reservation": None,
}


@pytest.fixture
def executor(tmp_path) -> ours.Executor:
    """One that never starts its thread, and notes what it reports."""
    made = object.__new__(ours.Executor)
    made.has_accounting, made.is_waiting, made.is_stopping = False, False, False
    made.missed, made.logger, made.run_uuid, made._failed_nodes = Counter(), Said(), "run", set()
    made.status_rate_limiter = contextlib.AsyncExitStack()
    made.workflow = SimpleNamespace(executor_settings=SimpleNamespace(**SETTINGS), workdir_init=str(tmp_path))
    made.slurm_logdir, made._tmpdir, made.max_array_size = tmp_path / "logs", str(tmp_path), 3
    made.reported = []
    made.report_job_success = lambda job: made.reported.append((job.external_jobid, "well"))
    made.report_job_error = lambda job, msg, aux_logs: made.reported.append((job.external_jobid, msg))
    return made


def check(executor: ours.Executor, *identities: str) -> list[str]:
    jobs = [SimpleNamespace(external_jobid=each, aux={"slurm_logfile": Path(f"{each}.log")}) for each in identities]

    async def collect() -> list[str]:
        return [job.external_jobid async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(collect())


def answers(monkeypatch, **by_command) -> None:
    async def query(command, logger):
        return by_command.get(command.split()[0]), 0.0

    monkeypatch.setattr(ours, "query_job_status", query)


def test_while_nobody_answers_all_jobs_are_kept_and_it_is_said_once(executor, monkeypatch):
    answers(monkeypatch)
    assert check(executor, "1", "2") == ["1", "2"]
    assert check(executor, "1", "2") == ["1", "2"]
    assert len(executor.logger) == 1


def test_accounting_is_asked_first_and_the_queue_when_it_is_silent(executor, monkeypatch):
    answers(monkeypatch, sacct={"1": "RUNNING"}, squeue={"1": "COMPLETED"})
    assert check(executor, "1") == ["1"]
    answers(monkeypatch, squeue={"1": "COMPLETED"})
    assert check(executor, "1") == []
    assert executor.reported == [("1", "well")]


def test_each_task_of_an_array_ends_by_itself(executor, monkeypatch):
    answers(monkeypatch, sacct={"7_1": "COMPLETED", "7_2": "CANCELLED by 0", "7_3": "NODE_FAIL", "7_[4-9]": "PENDING"})
    assert check(executor, "7_1", "7_2", "7_3", "7_4") == ["7_3", "7_4"]  # the third goes back into the queue
    assert executor.reported == [("7_1", "well"), ("7_2", "SLURM-job '7_2' failed, SLURM status is: 'CANCELLED'.")]
    executor.workflow.executor_settings.requeue = False
    assert check(executor, "7_3") == []


def test_a_job_that_left_the_queue_unseen_is_an_error_but_accounting_is_waited_for(executor, monkeypatch):
    answers(monkeypatch, squeue={})
    assert [check(executor, "7") for _ in range(3)] == [["7"], ["7"], []]
    assert executor.reported == [("7", "SLURM-job '7' left the queue unseen.\n")]
    answers(monkeypatch, sacct={})
    assert [check(executor, "8") for _ in range(9)] == [["8"]] * 9


# ------------------------------------------------------------------------------------------------------- submitting


class Asked(dict):
    """A job's resources, as Snakemake has them."""

    def __getattr__(self, name: str) -> object:
        if name not in self:
            raise AttributeError(name)
        return self[name]


def job(name: str = "train_part", part: str = "seed1", **resources) -> SimpleNamespace:
    return SimpleNamespace(name=name, wildcards=["mlp", part], threads=1, resources=Asked({"mem_mb": 100, **resources}))


@pytest.fixture
def submitted(executor, monkeypatch) -> list[tuple[str, str]]:
    """The calls of sbatch with their scripts; a thread is none here, and the queue answers."""
    calls = []

    def run(call, **options):
        calls.append((call, options["input"]))
        return SimpleNamespace(returncode=0, stdout=f"{len(calls)}\n", stderr="")

    monkeypatch.setattr(ours, "controller_answers", lambda: True)
    monkeypatch.setattr(ours, "subprocess", SimpleNamespace(run=run))
    executor._job_submission_executor = SimpleNamespace(submit=lambda function, *given: function(*given))
    executor.run_job_pre = lambda job: None
    executor.format_job_exec = lambda job: f"snakemake {job.name} {job.wildcards[-1]}"
    executor._report_job_submission_threadsafe = lambda info: executor.reported.append(info.external_jobid)
    return calls


def test_jobs_that_ask_for_the_same_are_one_submission(executor, submitted):
    executor.run_jobs([job(part=f"seed{k}") for k in range(4)] + [job(mem_mb=200), job("rollout_part")])
    arrays = [re.findall(r"--array=(\S+)", call) for call, _ in submitted]
    assert arrays == [["1-3"], [], [], []]  # no array has more than max_array_size
    assert executor.reported == ["1_1", "1_2", "1_3", "2", "3", "4"]
    script = submitted[0][1]
    (listed,) = re.findall(r"sed -n .* (\S+)\)\"", script)
    assert Path(listed).read_text().splitlines() == [f"snakemake train_part seed{k}" for k in range(3)]
    environment = {**os.environ, "SLURM_ARRAY_TASK_ID": "2"}
    command = script.replace("module load $STACK", 'snakemake() { echo task "$@"; }')
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "task train_part seed1\n"


def test_the_site_says_where_a_job_with_a_gpu_runs(executor, submitted):
    executor.run_jobs([job(gpu=1), job(gpu=0), job(gpu=1, slurm_partition="own")])
    with_gpu, without, own = (call for call, _ in submitted)
    assert "--partition=large --qos=fast" in with_gpu
    assert "--gpus=a100:1" in with_gpu
    assert "--partition=small" in without
    assert "--gpus" not in without
    assert own.index("--partition=large") < own.index("-p own")  # the last one counts
    executor.workflow.executor_settings.gpu_arguments = None  # a site without
    executor.run_jobs([job(gpu=1)])
    assert "--partition=small" in submitted[-1][0]
    assert "--gpus" not in submitted[-1][0]


def test_the_sites_line_comes_first(executor, submitted):
    executor.run_jobs([job()])
    assert submitted[0][1].splitlines() == ["#!/bin/sh", "module load $STACK", "snakemake train_part seed1"]


def test_a_refused_submission_is_an_error_of_each_job(executor, submitted, monkeypatch):
    refused = SimpleNamespace(returncode=1, stdout="", stderr="Invalid qos specification")
    monkeypatch.setattr(ours, "subprocess", SimpleNamespace(run=lambda call, **options: refused))
    said = []
    executor._report_job_error_threadsafe = lambda info, msg: said.append(msg)
    executor.run_jobs([job(), job(part="seed2")])
    assert [text.splitlines()[0] for text in said] == ["sbatch failed: Invalid qos specification"] * 2
