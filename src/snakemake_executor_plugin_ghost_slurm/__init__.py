"""Slurm jobs that survive an outage of the scheduler: `executor: ghost-slurm` in the profile.

This executor submits jobs as snakemake-executor-plugin-slurm does, and waits better. That plugin uses sacct whenever
the binary exists, also where no accounting answers; when a status query fails, it forgets the jobs, so that the run
hangs for ever; and a submission during an outage uses up a job's retries. Here each check uses sacct or squeue,
whichever answers; while neither does, jobs are kept and submissions wait. A job is one Snakemake that runs the rule's
command. In the plugin that one starts a second one with srun, which takes two seconds more and fails while the
controller is away; only MPI needs it, and no rule of ours does. Snakemake finds this package by its name.
"""

import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings as SlurmSettings
from snakemake_executor_plugin_slurm import common_settings as common_settings
from snakemake_executor_plugin_slurm.job_status_query import (
    query_job_status,
    query_job_status_sacct,
    query_job_status_squeue,
)

GONE_AFTER = 3  # checks in a row in which squeue answered without a job


@dataclass
class ExecutorSettings(SlurmSettings):  # type: ignore[misc]
    """The plugin's settings, and a shell line of the site."""

    status_command: Optional[str] = field(  # noqa: UP045 - Snakemake's parser reads the annotation, this form only
        default=None, metadata={"help": "Not used: we ask sacct, then squeue.", "required": False}
    )
    setup: str = field(
        default="",
        metadata={"help": "A shell line at the start of each job, such as 'module load cuda'.", "required": False},
    )


class Executor(SlurmExecutor):  # type: ignore[misc]
    """The class that Snakemake looks for in an executor plugin."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        # These come before the parent's __init__, which starts the thread that checks.
        self.command = "squeue"  # the one that answered last
        self.has_accounting = False
        self.is_waiting = False
        self.is_stopping = False
        self.missed: Counter[str] = Counter()
        self.reported: set[str] = set()
        super().__init__(workflow, logger)

    def get_status_command(self) -> str:
        return self.command

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """The site's account, or none: the parent would guess one, with three warnings for each job."""
        yield from super().get_account_arg(job) if job.resources.get("slurm_account") else [""]

    def additional_general_args(self) -> str:
        """More options for the job's Snakemake: it runs the rule itself."""
        return "--executor local"

    def format_job_exec(self, job: Any) -> str:
        """The job's command line, after the site's own line. The whole is put in double quotes, hence the `\\$`."""
        command: str = super().format_job_exec(job)
        setup = self.workflow.executor_settings.setup
        return f"{setup.replace('$', chr(92) + '$')}; {command}" if setup else command

    def run_job(self, job: Any) -> None:
        """Wait for the scheduler, then submit. Runs in a thread of its own."""
        while not self.is_stopping and not controller_answers():
            self.say_that_we_wait()
            time.sleep(self.poll_s)
        super().run_job(job)

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Yield the jobs that still run, and report the others. No job is forgotten."""
        if not active_jobs:
            return
        self.next_seconds_between_status_checks = self.poll_s
        async with self.status_rate_limiter:
            states = await self.ask()
        if states is None:
            self.say_that_we_wait()
            for job in active_jobs:
                yield job
            return
        self.is_waiting = False
        listed = []
        for job in active_jobs:
            if job.external_jobid in states:
                self.missed.pop(job.external_jobid, None)
                listed.append(job)
            elif self.is_gone(job.external_jobid):
                self.report_job_error(job, msg=f"SLURM-job '{job.external_jobid}' left the queue unseen.\n")
            else:
                yield job
        async for _ in super().check_active_jobs(listed):  # reports the jobs that ended; it may forget others
            pass
        for job in listed:
            if job.external_jobid not in self.reported:
                yield job
        self.next_seconds_between_status_checks = self.poll_s  # the parent waits longer and longer

    async def ask(self) -> dict[str, str] | None:
        """The state of each job id, from accounting or else from the queue; None when neither answers."""
        for command, query in (("sacct", query_job_status_sacct), ("squeue", query_job_status_squeue)):
            states: dict[str, str] | None
            states, _ = await query_job_status(query(self.run_uuid), self.logger)
            if states is not None:
                self.command = command
                self.has_accounting |= command == "sacct"
                return states
        return None

    def is_gone(self, job_id: str) -> bool:
        """Whether a job that is not listed is lost: the queue drops old jobs, accounting lists them late."""
        self.missed[job_id] += 1
        return not self.has_accounting and self.missed[job_id] >= GONE_AFTER

    def report_job_success(self, job_info: Any) -> None:
        self.reported.add(job_info.external_jobid)
        super().report_job_success(job_info)

    def report_job_error(self, job_info: Any, msg: str | None = None, **more: Any) -> None:
        self.reported.add(job_info.external_jobid)
        super().report_job_error(job_info, msg=msg, **more)

    def cancel_jobs(self, active_jobs: list[Any]) -> None:
        self.is_stopping = True
        super().cancel_jobs(active_jobs)

    @property
    def poll_s(self) -> int:
        seconds: int = self.workflow.executor_settings.init_seconds_before_status_checks
        return seconds

    def say_that_we_wait(self) -> None:
        if not self.is_waiting:
            self.is_waiting = True
            self.logger.warning("The Slurm controller does not answer. Jobs are kept; waiting for it.")


def controller_answers() -> bool:
    command = ["sinfo", "--noheader"]  # wherever a site has Slurm: found in the PATH, as Snakemake's plugin does
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603  # a fixed command
