"""Slurm jobs that survive an outage of the scheduler, in arrays: `executor: ghost-slurm` in the profile.

The names of sbatch's options come from snakemake-executor-plugin-slurm; submitting and waiting are ours. Jobs of a rule
that are ready together and ask for the same become one array: ten thousand jobs are a few submissions. That plugin
submits arrays, too, but keeps jobs back until all jobs of a rule are ready, which never happens where one training
needs another; asks for what the first job needs; and starts each task with srun. When a status query fails it forgets
the jobs, so that the run hangs for ever, and a submission during an outage uses up a job's retries.

Here each check uses sacct or squeue, whichever answers; while neither does, jobs are kept and submissions wait. A job
is one Snakemake that runs the rule's command, without a second one that srun starts, which takes two seconds more and
fails while the controller is away; only MPI needs it, and no rule of ours does. A rule says with the resource `gpu`
whether it uses one; the site says which partition and options such jobs have. Snakemake finds this package by its name.
"""

import asyncio
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional
from uuid import uuid4

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings as SlurmSettings
from snakemake_executor_plugin_slurm import common_settings as common_settings
from snakemake_executor_plugin_slurm.job_status_query import (
    query_job_status,
    query_job_status_sacct,
    query_job_status_squeue,
)
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import get_job_wildcards
from snakemake_executor_plugin_slurm.validation import validate_or_get_slurm_job_id, validate_slurm_extra
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

GONE_AFTER = 3  # checks in a row in which squeue answered without a job
FAILED = {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "ERROR"}
LOST = {"NODE_FAIL", "PREEMPTED"}  # Slurm puts such a job back into the queue
TASK = 'eval "$(sed -n "${SLURM_ARRAY_TASK_ID}p" %s)"'  # a task of an array runs its line of a file


@dataclass
class ExecutorSettings(SlurmSettings):  # type: ignore[misc]
    """The plugin's settings, and the options of the site."""

    status_command: Optional[str] = field(  # noqa: UP045 - Snakemake's parser reads the annotation, this form only
        default=None, metadata={"help": "Not used: we ask sacct, then squeue.", "required": False}
    )
    setup: str = field(
        default="",
        metadata={"help": "A shell line at the start of each job, such as 'module load cuda'.", "required": False},
    )
    cpu_arguments: str = field(
        default="", metadata={"help": "sbatch's options of jobs that use no GPU.", "required": False}
    )
    gpu_arguments: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "Those of jobs with the resource gpu. None: the site has no GPU.", "required": False},
    )
    gpu_type: str = field(default="", metadata={"help": "Which GPU, such as a100; none: any.", "required": False})


class Executor(SlurmExecutor):  # type: ignore[misc]
    """The class that Snakemake looks for in an executor plugin."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        # These come before the parent's __init__, which starts the thread that checks.
        self.has_accounting = False
        self.is_waiting = False
        self.is_stopping = False
        self.missed: Counter[str] = Counter()
        super().__init__(workflow, logger)

    @property
    def settings(self) -> ExecutorSettings:
        settings: ExecutorSettings = self.workflow.executor_settings
        return settings

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """The site's account, or none: the parent would guess one, with three warnings for each job."""
        yield from super().get_account_arg(job) if job.resources.get("slurm_account") else [""]

    def get_partition_arg(self, job: Any) -> str:
        """The site's options for a job that uses a GPU or none, and the job's own partition, which is stronger."""
        uses_gpu = job.resources.get("gpu") and self.settings.gpu_arguments is not None
        options = self.settings.gpu_arguments if uses_gpu else self.settings.cpu_arguments
        own = not options or job.resources.get("slurm_partition")
        return " ".join(filter(None, (options, super().get_partition_arg(job) if own else "")))

    def additional_general_args(self) -> str:
        """More options for the job's Snakemake: it runs the rule itself."""
        return "--executor local"

    # ---------------------------------------------------------------------------------------------------- submitting

    def run_jobs(self, jobs: list[Any]) -> None:
        """Submit the jobs that are ready, each array in a thread of its own."""
        self._main_event_loop = running_loop()
        self.tmpdir  # noqa: B018 - made here, so that no two threads make one
        groups: dict[str, list[Any]] = {}
        for job in jobs:
            groups.setdefault(self.call(job, Path(), job.name), []).append(job)
        for alike in groups.values():
            for first in range(0, len(alike), self.max_array_size):
                chunk = alike[first : first + self.max_array_size]
                for job in chunk:
                    self.run_job_pre(job)
                self._job_submission_executor.submit(self.submit, chunk)

    def call(self, job: Any, log: Path, comment: str) -> str:
        """The command that submits a job, or an array of jobs that ask for the same."""
        validate_slurm_extra(job)
        params = {
            "run_uuid": self.run_uuid,
            "slurm_logfile": log,
            "comment_str": comment,
            "account": next(self.get_account_arg(job)),
            "partition": self.get_partition_arg(job),
            "workdir": self.workflow.workdir_init,
        }
        call: str = get_submit_command(job, params, settings=self.settings, failed_nodes=self._failed_nodes)
        gpus = job.resources.get("gpu") if self.settings.gpu_arguments is not None else 0
        kind = f"{self.settings.gpu_type}:" if self.settings.gpu_type else ""
        return f"{call} --gpus={kind}{gpus}" if gpus else call

    def submit(self, jobs: list[Any]) -> None:
        """Wait for the scheduler, then submit: one job, or an array of several."""
        while not self.is_stopping and not controller_answers():
            self.say_that_we_wait()
            time.sleep(self.poll_s)
        name, folder = jobs[0].name, self.slurm_logdir / f"rule_{jobs[0].name}"
        try:
            commands = [self.format_job_exec(job) for job in jobs]
            if len(jobs) == 1:
                wildcards = get_job_wildcards(jobs[0])
                comment, log = f"rule_{name}_wildcards_{wildcards}" if wildcards else f"rule_{name}", "%j.log"
                folder, command, array = folder / wildcards, commands[0], ""
            else:
                comment, log, array = f"rule_{name}", "%A_%a.log", f" --array=1-{len(jobs)}"
                command = TASK % self.keep(commands)
            folder.mkdir(parents=True, exist_ok=True)
            script = "\n".join(["#!/bin/sh", self.settings.setup, command, ""])
            call = self.call(jobs[0], folder / log, comment) + array
            done = subprocess.run(call, shell=True, input=script, capture_output=True, text=True, check=False)  # noqa: S602
            if done.returncode != 0:
                raise WorkflowError(f"sbatch failed: {done.stderr.strip()}\n    {call}")
            number = validate_or_get_slurm_job_id(done.stdout.strip().split(";")[0], done.stdout)
        except (WorkflowError, OSError) as error:
            for job in jobs:
                self._report_job_error_threadsafe(SubmittedJobInfo(job), str(error))
            return
        for task, job in enumerate(jobs, start=1):
            identity = f"{number}_{task}" if array else number
            info = SubmittedJobInfo(job, external_jobid=identity, aux={"slurm_logfile": folder / f"{identity}.log"})
            self._report_job_submission_threadsafe(info)

    def keep(self, commands: list[str]) -> Path:
        """A file with the commands of an array's tasks, one on each line; it goes when the run ends."""
        path = Path(self.tmpdir).resolve() / f"array-{uuid4()}.txt"
        path.write_text("\n".join(commands) + "\n", encoding="utf-8")
        return path

    # ------------------------------------------------------------------------------------------------------- waiting

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Yield the jobs that still run, and report the others. No job is forgotten."""
        self.next_seconds_between_status_checks = self.poll_s
        if not active_jobs:
            return
        async with self.status_rate_limiter:
            states = await self.ask()
        if states is None:
            self.say_that_we_wait()
            for job in active_jobs:
                yield job
            return
        self.is_waiting = False
        for job in active_jobs:
            if not self.has_ended(job, states.get(job.external_jobid)):
                yield job

    def has_ended(self, job: Any, state: str | None) -> bool:
        """Whether a job is over; then it was reported."""
        identity, log = job.external_jobid, job.aux["slurm_logfile"]
        if state is None:
            gone = self.is_gone(identity)
            if gone:
                self.report_job_error(job, msg=f"SLURM-job '{identity}' left the queue unseen.\n", aux_logs=[str(log)])
            return gone
        self.missed.pop(identity, None)
        if state == "COMPLETED":
            self.report_job_success(job)
            if not self.settings.keep_successful_logs:
                log.unlink(missing_ok=True)
            return True
        if state in FAILED or (state in LOST and not self.settings.requeue):
            self.report_job_error(
                job, msg=f"SLURM-job '{identity}' failed, SLURM status is: '{state}'.", aux_logs=[str(log)]
            )
            return True
        return False

    async def ask(self) -> dict[str, str] | None:
        """The state of each job id, from accounting or else from the queue; None when neither answers."""
        accounting = query_job_status_sacct(self.run_uuid).replace("JobIdRaw", "JobID")  # of tasks: <array>_<task>
        queue = query_job_status_squeue(self.run_uuid) + " --array"  # a line for each task
        for command in (accounting, queue):
            states, _ = await query_job_status(command, self.logger)
            if states is not None:
                self.has_accounting |= command == accounting
                return {identity: state.split()[0] for identity, state in states.items() if state}  # CANCELLED by 7
        return None

    def is_gone(self, job_id: str) -> bool:
        """Whether a job that is not listed is lost: the queue drops old jobs, accounting lists them late."""
        self.missed[job_id] += 1
        return not self.has_accounting and self.missed[job_id] >= GONE_AFTER

    def cancel_jobs(self, active_jobs: list[Any]) -> None:
        self.is_stopping = True
        super().cancel_jobs(active_jobs)

    @property
    def poll_s(self) -> int:
        seconds: int = self.settings.init_seconds_before_status_checks
        return seconds

    def say_that_we_wait(self) -> None:
        if not self.is_waiting:
            self.is_waiting = True
            self.logger.warning("The Slurm controller does not answer. Jobs are kept; waiting for it.")


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def controller_answers() -> bool:
    command = ["sinfo", "--noheader"]  # wherever a site has Slurm: found in the PATH, as Snakemake's plugin does
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603  # a fixed command
