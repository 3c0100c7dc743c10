"""The display of a run: `snakemake --logger ghost`, or `logger: ghost` in a profile.

On a terminal it is live (`display.py`); elsewhere it prints errors, a line every minute and every tenth job
(`lines.py`), and a closing line. Dry runs and `--verbose` keep Snakemake's own output. Snakemake finds this package by
its name and imports it at every start, so we import rich only when there is a terminal. Snakemake calls `emit` from a
thread of its own.
"""

from __future__ import annotations

import logging
import re
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter, is_quiet_about
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from ghost.runs.ending import why
from snakemake_logger_plugin_ghost.jobs import Job, Run, duration, tail
from snakemake_logger_plugin_ghost.lines import Lines

if TYPE_CHECKING:
    from snakemake_logger_plugin_ghost.display import Display

LOG_LINES = 15  # of a failed job's log
ENDED = re.compile(r"exit status (\d+)|died with <Signals\.\w+: (\d+)>")  # how Python says that a command failed

# Messages of Snakemake, recognised by their beginning. If Snakemake changes them, we only print some lines too many.
USER_STOP = "Terminating processes on user request"
SAID_BEFORE = (  # after a failed job, whose own message and the closing line say more
    "Exiting because a job execution failed.",
    "WorkflowError:\nAt least one job did not complete successfully.",
)


class LogHandler(LogHandlerBase):  # type: ignore[misc]
    """The class that Snakemake looks for in a logger plugin."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        s = self.common_settings
        self.run: Run | None = None
        self.before_run: list[str] = []
        self.failed_commands: list[str] = []  # what Snakemake said of them, until it names their jobs
        self.is_stopped = False
        self.display: Display | None = None
        self.lines: Lines | None = None
        self.default: logging.Handler | None = None
        self.is_quiet = is_quiet_about(s.quiet or (), "progress")
        if s.dryrun or s.verbose or s.debug_dag:
            self.default = ColorizingTextHandler(  # Snakemake's own output, as its LoggerManager sets it up
                nocolor=s.nocolor,
                stream=sys.stdout if s.stdout else sys.stderr,
                formatter=DefaultFormatter(s.quiet, s.show_failed_logs),
                filter=DefaultFilter(s.quiet, s.debug_dag, s.verbose, s.dryrun, s.printshellcmds),
            )
        elif not self.is_quiet and not sys.stderr.isatty():
            self.lines = Lines(self.say)
        elif not self.is_quiet:
            from snakemake_logger_plugin_ghost.display import Display

            self.display = Display(nocolor=s.nocolor)

    def emit(self, record: logging.LogRecord) -> None:
        if self.default is not None:
            self.default.handle(record)
            return
        fields = vars(record)
        match fields.get("event"):
            case LogEvent.WORKFLOW_STARTED:
                self.run = Run(start_s=record.created)
            case LogEvent.RESOURCES_INFO if self.run:
                self.run.cores = fields.get("cores") or fields.get("nodes") or self.run.cores
            case LogEvent.RUN_INFO if self.run:
                self.run.plan(fields["stats"])
                if self.display:
                    self.display.start(self.run)
                if self.lines:
                    self.lines.start(self.run)
            case LogEvent.PROGRESS if self.run:
                self.run.total = fields["total"]  # a checkpoint adds jobs to the plan
            case LogEvent.JOB_INFO if self.run:
                self.on_job_start(self.run, record.created, fields)
            case LogEvent.JOB_FINISHED if self.run:
                self.on_job_done(self.run, record.created, fields["job_id"])
            case LogEvent.JOB_ERROR if self.run:
                self.on_job_error(self.run, fields)
            case LogEvent.ERROR:
                self.on_error(record.getMessage(), fields["exception"])
            case None:
                self.on_message(record.levelno, record.getMessage())

    def on_job_start(self, run: Run, now_s: float, fields: dict[str, Any]) -> None:
        job = Job(
            rule=fields["rule_name"],
            wildcards=tuple(str(value) for value in fields["wildcards"].values()),
            logs=tuple(fields["log"]),
            threads=fields["threads"],
            start_s=now_s,
            is_target=not fields["output"] and not fields["shellcmd"],
        )
        run.start(fields["jobid"], job)
        if self.common_settings.printshellcmds and fields["shellcmd"]:
            self.say(f"start {job.label}\n{indented(fields['shellcmd'])}")

    def on_job_done(self, run: Run, now_s: float, job_id: int) -> None:
        job = run.finish(job_id, now_s)
        if self.display and job and not job.is_target:
            self.say(f"done  {job.label}  {duration(now_s - job.start_s)}", "green")
        if self.lines:
            self.lines.on_job_done(run)

    def on_job_error(self, run: Run, fields: dict[str, Any]) -> None:
        """Say why a job failed. If the user stopped the run, this is the reason, and the logs are not shown."""
        job = run.fail(fields["jobid"])
        label = job.label if job else fields["rule_name"]
        if self.is_stopped:
            self.say(f"stopped  {label}")
        else:
            self.say(f"failed  {label}", "red")
            quoted = f"{' '.join((fields['shellcmd'] or '').split())}'"  # Snakemake may indent it
            said = [text for text in self.failed_commands if quoted in " ".join(text.split())]
            self.say(failure_details(fields, signal_in(said[-1]) if said else ""))

    def on_error(self, text: str, exception: str) -> None:
        """Say an exception, except a failed command: a JOB_ERROR follows, with the job's log."""
        self.before_run.clear()
        missing_output = re.search(r"Job (\d+) +completed successfully, but", text)
        if missing_output and self.run:
            self.run.fail(int(missing_output[1]))  # no JOB_ERROR follows
        is_failed_command = exception == "RuleException" and "CalledProcessError" in text
        if is_failed_command:
            self.failed_commands.append(text)
        elif not self.is_said_before(text):
            self.say(workflow_error_text(text) if exception == "WorkflowError" else text, "red")

    def on_message(self, level: int, text: str) -> None:
        """Say warnings and errors; keep the messages before a run, because --unlock gives no others."""
        if level >= logging.WARNING:
            if not self.is_said_before(text):
                self.say(text, "red" if level >= logging.ERROR else "yellow")
        elif text == NOTHING_TO_BE_DONE_MSG and not self.is_quiet:
            self.say("nothing to be done")
        elif text.startswith(USER_STOP):
            self.is_stopped = True
        elif self.run is None:
            self.before_run.append(text)

    def is_said_before(self, text: str) -> bool:
        return self.run is not None and bool(self.run.failed) and text.startswith(SAID_BEFORE)

    def say(self, text: str, style: str = "") -> None:
        if self.display:
            self.display.say(text, style)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the display and say the closing line. Snakemake calls this, and `logging` calls it again at exit."""
        run, before_run = self.run, self.before_run
        self.run, self.before_run = None, []
        if self.display:
            self.display.stop()
        if self.lines:
            self.lines.stop()
        if not self.is_quiet and run is None:
            for text in before_run:
                self.say(text)
        elif not self.is_quiet and run is not None and run.total:
            self.say(run.closing_line(time.time()))
        super().close()


def workflow_error_text(text: str) -> str:
    """The message alone: without `WorkflowError in file ..., line 2:` before it and stack frames after it."""
    message = re.sub(r"\AWorkflowError[^\n]*:\n", "", text)
    return re.sub(r'(\n  File "[^\n]*", line \d+, in [^\n]*)+\Z', "", message)


def signal_in(text: str) -> str:
    """What Snakemake's message about a failed command says of a signal; "" if no signal ended it."""
    found = ENDED.findall(text)
    return why(int(found[-1][0] or -int(found[-1][1]))) if found else ""


def failure_details(fields: dict[str, Any], ended_by: str = "") -> str:
    """How to find out why a job failed: the signal that ended it, the path and the end of its log, and its command."""
    parts = [f"  {fields['rule_msg']}"] if fields["rule_msg"] else []
    ends = {log: tail(log)[-LOG_LINES:] for log in fields["log"]}
    if ended_by and not any(ended_by in line for lines in ends.values() for line in lines):
        parts.append(f"  {ended_by}")
    for log, lines in ends.items():
        parts.append(f"  log {log}" + (", which ends with" if lines else " is empty or missing"))
        parts += [f"    {line}" for line in lines]
    if not fields["log"]:
        parts.append("  its rule has no log")
    if fields["shellcmd"]:
        parts += ["  command", indented(fields["shellcmd"])]
    return "\n".join(parts)


def indented(command: str) -> str:
    return textwrap.indent(textwrap.dedent(command).strip(), "    ")
