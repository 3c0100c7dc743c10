"""The display of a run: what it keeps of the jobs, what it prints of log records, and both in real runs."""

import io
import logging
import os
import pty
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from rich.console import Console
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from ghost.runs.ending import why
from snakemake_logger_plugin_ghost import LogHandler, workflow_error_text
from snakemake_logger_plugin_ghost.jobs import TAIL_BYTES, Job, Run, duration, rough_duration, tail
from snakemake_logger_plugin_ghost.lines import Lines

# ---- the end of a log


def test_tail_of_no_file_or_an_old_one_is_empty(tmp_path):
    log = tmp_path / "old.log"
    log.write_text("line\n")
    os.utime(log, (1000.0, 1000.0))
    assert tail(str(tmp_path / "none.log")) == []
    assert tail(str(tmp_path)) == []
    assert tail(str(log), since_s=2000.0) == []
    assert tail(str(log)) == ["line"]


def test_tail_reads_only_the_end_of_a_large_log(tmp_path):
    log = tmp_path / "large.log"
    log.write_text("".join(f"line {n}\n" for n in range(100_000)))
    lines = tail(str(log))
    assert lines[-1] == "line 99999"
    assert sum(len(line) + 1 for line in lines) <= TAIL_BYTES


def test_tail_takes_any_bytes_and_drops_control_codes(tmp_path):
    log = tmp_path / "odd.log"
    log.write_bytes(b"\xff\xfe\x00 \x1b[31mred\x1b[0m\x07\n[ 17%] 3/1")
    assert tail(str(log)) == ["\ufffd\ufffd red", "[ 17%] 3/1"]


def test_progress_is_the_last_line_of_its_kind_in_the_log(tmp_path):
    log = tmp_path / "train.log"
    job = Job("train", logs=(str(log),))
    assert job.progress() is None
    log.write_text("hello\n")
    assert job.progress() is None
    log.write_text("[ 10%] 1/10 epochs\n[ 20%] 2/10 epochs; loss 0.5\na warning\n[ 3")
    assert job.progress() == (20, "2/10 epochs; loss 0.5")


# ---- the jobs of a run


def run_of(stats, *, cores=1, took_s=()):
    """A run that began at 0 s, with finished jobs: (rule, seconds), ..."""
    run = Run(start_s=0.0, cores=cores)
    run.plan({**stats, "total": sum(stats.values())})
    for job_id, (rule, time_s) in enumerate(took_s, start=100):
        run.start(job_id, Job(rule))
        run.finish(job_id, time_s)
    return run


def test_no_guess_before_a_job_finished_or_after_one_failed():
    run = run_of({"simulate": 3})
    assert run.left_s(5.0, {}) is None
    run.start(1, Job("simulate"))
    run.finish(1, 5.0)
    assert run.left_s(5.0, {}) == 10.0
    run.start(2, Job("simulate", start_s=5.0))
    run.fail(2)
    assert run.left_s(5.0, {}) is None


def test_the_guess_is_the_mean_of_each_rule_or_else_of_all():
    run = run_of({"simulate": 3, "train": 3, "plot": 1, "all": 1}, took_s=[("simulate", 2.0), ("train", 10.0)])
    assert run.left_s(12.0, {}) == 2 * 2.0 + 2 * 10.0 + 6.0  # no rule is known for plot; all takes no time


def test_cores_share_the_work_but_not_one_job():
    run = run_of({"train": 5}, cores=4, took_s=[("train", 10.0)])
    assert run.left_s(10.0, {}) == 10.0
    run = run_of({"train": 9}, cores=4, took_s=[("train", 10.0)])
    assert run.left_s(10.0, {}) == 20.0
    run.start(1, Job("train", threads=4, start_s=10.0))
    assert run.left_s(10.0, {}) == 80.0  # each job takes all cores


def test_a_running_job_counts_by_its_pace_if_it_has_a_percent():
    run = run_of({"simulate": 1, "train": 2}, took_s=[("simulate", 2.0)])
    run.start(1, Job("train", start_s=2.0))
    assert run.left_s(3.0, {}) == 1.0 + 2.0
    assert run.left_s(3.0, {1: 0}) == 1.0 + 2.0
    assert run.left_s(3.0, {1: 10}) == pytest.approx(9.0 + 10.0)


def test_no_guess_if_the_last_job_is_overdue():
    run = run_of({"train": 2}, took_s=[("train", 2.0)])
    run.start(1, Job("train", start_s=2.0))
    assert run.left_s(3.0, {}) == 1.0
    assert run.left_s(9.0, {}) is None


def test_a_guess_is_said_once_a_tenth_of_the_jobs_is_done():
    """The first jobs are the longest: from one of them a run of an hour looked like 14 hours."""
    run = Run(start_s=0.0)
    run.plan({"train": 1, "plot": 19, "total": 20})
    run.start(1, Job("train"))
    run.finish(1, 60.0)
    assert run.summary(60.0, {}) == "1 of 20 jobs done, 0 running, 19 left; 1 min 00 s"
    run.start(2, Job("plot", start_s=60.0))
    run.finish(2, 70.0)
    assert run.summary(70.0, {}).endswith("1 min 10 s, about 3 min left")


def test_a_second_attempt_is_no_failure():
    run = run_of({"train": 1})
    run.start(1, Job("train"))
    run.fail(1)
    assert run.closing_line(4.0) == "0 of 1 jobs done, 1 failed, in 4.0 s"
    run.start(1, Job("train"))
    run.finish(1, 34.0)
    assert run.closing_line(34.0) == "1 of 1 jobs done in 34 s"


@pytest.mark.parametrize(
    ("time_s", "text", "rough"),
    [
        (1.23, "1.2 s", "5 s"),
        (9.96, "10 s", "10 s"),
        (59.7, "1 min 00 s", "60 s"),
        (125, "2 min 05 s", "2 min"),
        (3900, "1 h 05 min", "65 min"),
        (9000, "2 h 30 min", "2.5 h"),
    ],
)
def test_durations(time_s, text, rough):
    assert duration(time_s) == text
    assert rough_duration(time_s) == rough


def test_a_frame_shows_labels_and_logs_as_they_are(tmp_path):
    from snakemake_logger_plugin_ghost.display import render

    log = tmp_path / "train.log"
    log.write_text("[ 17%] 340/2000 epochs; [bold]loss[/bold] [/]\n")
    run = run_of({"train": 3}, took_s=[("train", 60.0)])
    run.start(1, Job("train", wildcards=("noise[red]", "2"), logs=(str(log),), start_s=60.0))
    console = Console(file=io.StringIO(), width=100)
    console.print(render(run, 70.0))
    summary, job, *_ = console.file.getvalue().splitlines()
    assert summary.strip() == "1 of 3 jobs done, 1 running, 1 left; 1 min 10 s, about 2 min left"
    assert job.split(maxsplit=7)[:5] == ["train", "noise[red]", "2", "10", "s"]
    assert job.rstrip().endswith("17%  340/2000 epochs; [bold]loss[/bold] [/]")


# ---- log records, away from a terminal


def handler(**settings):
    """A handler as Snakemake makes it; `send` gives it a record."""
    defaults = dict.fromkeys(("nocolor", "printshellcmds", "dryrun", "verbose", "debug_dag"), False)
    HANDLERS.append(LogHandler(SimpleNamespace(**{**defaults, "quiet": None, **settings}), None))
    return HANDLERS[-1]


HANDLERS: list[LogHandler] = []


@pytest.fixture(autouse=True)
def closed():
    """No handler speaks on when its test has ended."""
    yield
    while HANDLERS:
        HANDLERS.pop().close()


def send(handler, msg="", level=logging.INFO, **fields):
    handler.handle(logging.makeLogRecord({"msg": msg, "levelno": level, "created": 0.0, **fields}))


def send_start(handler, job_id=1, **fields):
    send(handler, event=LogEvent.WORKFLOW_STARTED)
    send(handler, event=LogEvent.RUN_INFO, stats={"train": 1, "total": 1})
    job = {"rule_name": "train", "wildcards": {"x": "a"}, "log": [], "threads": 1, "output": ["a.txt"]}
    send(handler, event=LogEvent.JOB_INFO, jobid=job_id, **{**job, "shellcmd": "sleep 1", **fields})


def test_what_is_said_before_a_run_is_shown_only_if_there_is_none(capsys):
    unlock = handler()
    send(unlock, "Unlocked working directory.")
    unlock.close()
    unlock.close()
    assert capsys.readouterr().err == "Unlocked working directory.\n"
    run = handler()
    send(run, "Assuming unrestricted shared filesystem usage.")
    send_start(run)
    send(run, event=LogEvent.JOB_FINISHED, job_id=1)
    run.close()
    assert re.fullmatch(r"1 of 1 jobs done in .*\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, "live"),
        ({"quiet": {Quietness.PROGRESS}}, "plain"),
        ({"dryrun": True}, "default"),
        ({"verbose": True}, "default"),
    ],
)
def test_settings_choose_the_kind_of_display_on_a_terminal(settings, kind, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    chosen = handler(stdout=False, show_failed_logs=False, **settings)
    assert (chosen.display is not None, chosen.default is not None) == (kind == "live", kind == "default")


def test_every_tenth_job_is_a_line(capsys):
    run = handler()
    send(run, event=LogEvent.WORKFLOW_STARTED, created=time.time())
    send(run, event=LogEvent.RUN_INFO, stats={"train": 30, "total": 30})
    job = {"rule_name": "train", "wildcards": {}, "log": [], "threads": 1, "output": ["a"], "shellcmd": "true"}
    for number in range(30):
        for started in (number, number + 1) if number == 9 else (number,):
            send(run, event=LogEvent.JOB_INFO, jobid=started, created=time.time(), **job)
        send(run, event=LogEvent.JOB_FINISHED, job_id=number, created=time.time())
    run.close()
    first, second, closing = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"10 of 30 jobs done, 1 running, 19 left; 0\.\d s(, about 5 s left)?", first)
    assert second.startswith("20 of 30 jobs done, 0 running, 10 left; ")
    assert closing.startswith("30 of 30 jobs done in ")


def test_a_line_when_it_is_due_also_while_no_job_ends():
    said = []
    lines = Lines(said.append, every_s=0.05)
    run = run_of({"train": 3}, took_s=[("train", 2.0)])
    lines.start(run)
    until_s = time.monotonic() + 10
    while len(said) < 2 and time.monotonic() < until_s:
        time.sleep(0.01)
    lines.stop()
    assert len(said) >= 2
    assert all(line.startswith("1 of 3 jobs done, 0 running, 2 left; ") for line in said)
    time.sleep(0.1)
    stopped = len(said)
    time.sleep(0.15)
    assert len(said) == stopped


def test_a_tenth_job_puts_the_next_line_off():
    said = []
    lines = Lines(said.append, every_s=0.4)
    run = run_of({"train": 30}, took_s=[("train", 2.0)] * 10)
    lines.start(run)
    time.sleep(0.25)
    lines.on_job_done(run)
    time.sleep(0.25)  # 0.5 s after the start, 0.25 s after the line
    lines.stop()
    assert len(said) == 1


def test_quiet_leaves_only_errors(capsys):
    quiet = handler(quiet={Quietness.PROGRESS, Quietness.RULES})
    send_start(quiet)
    send(quiet, "disk is full", logging.ERROR)
    quiet.close()
    assert capsys.readouterr().err == "disk is full\n"


def test_printshellcmds_prints_the_command(capsys):
    send_start(handler(printshellcmds=True), shellcmd="\n    sleep 1\n      --x\n    ")
    assert capsys.readouterr().err == "start train a\n    sleep 1\n      --x\n"


def test_a_job_without_its_output_has_failed(capsys):
    run = handler()
    send_start(run, job_id=7)
    text = "MissingOutputException in rule train:\nJob 7  completed successfully, but some output is missing."
    send(run, text, logging.ERROR, event=LogEvent.ERROR, exception="MissingOutputException")
    assert not run.run.running
    assert run.run.failed == {7}
    assert capsys.readouterr().err == text + "\n"


def test_a_user_who_stops_the_run_gets_no_logs(capsys):
    run = handler()
    send_start(run)
    send(run, "Terminating processes on user request, this might take some time.")
    error = {"rule_name": "train", "rule_msg": None, "log": ["a.log"], "shellcmd": "sleep 1"}
    send(run, level=logging.ERROR, event=LogEvent.JOB_ERROR, jobid=1, **error)
    assert capsys.readouterr().err == "stopped  train a\n"


def test_workflow_error_text_is_the_message_alone():
    place = 'file "/x/Snakefile", line 2'
    text = f"WorkflowError in {place}:\nbad table:\n  row 3\n  {place.replace('file', 'File')}, in f"
    assert workflow_error_text(text) == "bad table:\n  row 3"
    assert workflow_error_text("WorkflowError:\nbad") == "bad"


# ---- real runs of a toy workflow

SNAKEFILE = """
from snakemake.exceptions import WorkflowError

if config.get("bad"):
    raise WorkflowError("bad table: row 3")

rule all:
    input: expand("out/train/{x}.txt", x=["a", "b", "switch_speed"])

rule simulate:
    output: "out/simulate/{x}.txt"
    log: "logs/simulate/{x}.log"
    shell: "touch {output} > {log} 2>&1"

rule train:
    input: "out/simulate/{x}.txt"
    output: "out/train/{x}.txt"
    log: "logs/train/{x}.log"
    params:
        fail=lambda wildcards: config.get("fail") == wildcards.x,
        epochs=config.get("epochs", 1),
    shell: "PYTHON slow.py {params} > {log} 2>&1 && touch {output}"
"""

SLOW = """
import os, sys, time
from ghost.runs.progress import Progress
if sys.argv[1:] == ["True", "-9"]:
    os.kill(os.getpid(), 9)
if sys.argv[1] == "True":
    sys.exit("\\n".join(f"reason {n}" for n in range(30)))
progress = Progress("epochs", every_s=0.1)
epochs = int(sys.argv[2])
for epoch in range(1, epochs + 1):
    time.sleep(0.08)
    progress(epoch, epochs, "loss 0.5 [bold]")
"""


@pytest.fixture
def workflow(tmp_path):
    """A folder with a toy workflow of 7 jobs and a profile that asks for the display."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("PYTHON", sys.executable))
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "profile.yaml").write_text("logger: ghost\ncores: 2\n")
    return tmp_path


def snakemake(*options):
    return [sys.executable, "-m", "snakemake", *options]


def environment():
    """This one, without what changes the terminal or the profile; reasons are in the order of hashes."""
    unset = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "SNAKEMAKE_PROFILE"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return {**kept, "TERM": "xterm", "PYTHONHASHSEED": "0"}


def run_piped(folder, *options):
    command = snakemake(*options)
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def run_on_terminal(folder, *options):
    """What a run writes to a terminal of 110 columns, and its exit code."""
    terminal, side = pty.openpty()
    subprocess.run(["stty", "cols", "110", "rows", "30"], stdin=side, check=True)
    process = subprocess.Popen(snakemake(*options), cwd=folder, env=environment(), stdout=side, stderr=side)
    os.close(side)
    written = b""
    try:
        while chunk := os.read(terminal, 65536):
            written += chunk
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(terminal)
    return written.decode(), process.wait()


@pytest.mark.slow
def test_on_a_terminal_it_shows_counts_bars_and_finished_jobs(workflow):
    written, code = run_on_terminal(workflow, "--profile", "live", "--config", "epochs=15")
    assert code == 0
    assert "\x1b[" in written
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    counts = re.findall(r"(\d) of 7 jobs done, (\d) running, (\d) left; \d", text)
    assert all(sum(map(int, count)) == 7 for count in counts)
    assert {running for _, running, _ in counts} >= {"2"}
    assert re.search(r"  train (a|b|switch_speed) +[\d.]+ s +━+.*\d+%  \d+/15 epochs, .*; loss 0\.5 \[bold\]", text)
    assert re.search(r"; [\d.]+ s, about \d+ s left", text)
    assert len(re.findall(r"done  (?:simulate|train) \w+  [\d.]+ s\r\n", text)) == 6
    assert re.search(r"7 of 7 jobs done in \d+(\.\d)? s\r\n\Z", text)
    assert "Select jobs" not in text


@pytest.mark.slow
def test_piped_it_is_one_line(workflow):
    first = run_piped(workflow, "--logger", "ghost", "--cores", "4")
    assert (first.returncode, first.stdout) == (0, "")
    assert re.fullmatch(r"7 of 7 jobs done in \d+(\.\d)? s\n", first.stderr)
    again = run_piped(workflow, "--logger", "ghost", "--cores", "4")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "nothing to be done\n")


@pytest.mark.slow
def test_a_failed_job_shows_its_log_and_command(workflow):
    run = run_piped(workflow, "--logger", "ghost", "--cores", "4", "--config", "fail=b")
    assert run.returncode != 0
    lines = run.stderr.splitlines()
    assert lines[:2] == ["failed  train b", "  log logs/train/b.log, which ends with"]
    assert lines[2:17] == [f"    reason {n}" for n in range(15, 30)]
    assert lines[17] == "  command"
    assert lines[18].endswith("slow.py True 1 > logs/train/b.log 2>&1 && touch out/train/b.txt")
    assert re.fullmatch(r"\d of 7 jobs done, 1 failed, in .* s", lines[19])
    assert len(lines) == 20
    assert "\x1b" not in run.stderr


@pytest.mark.slow
def test_a_killed_job_names_the_signal(workflow):
    run = run_piped(workflow, "--logger", "ghost", "--cores", "4", "--config", "fail=b", "epochs=-9")
    assert run.returncode != 0
    lines = run.stderr.splitlines()
    at = lines.index("failed  train b")
    assert lines[at + 1].startswith("  SIGKILL ended this step: the kernel or the cluster ended it, most often because")
    assert lines[at + 2].startswith("  log logs/train/b.log")


@pytest.mark.parametrize("said", ["died with <Signals.SIGSEGV: 11>.", "returned non-zero exit status 139."])
def test_the_signal_is_shown_once_and_for_its_own_job(said, tmp_path, capsys):
    log = tmp_path / "a.log"
    for content in ("", f"ghost: error: {why(-11)}\n"):
        log.write_text(content)
        run = handler()
        send_start(run)
        for command, how in (("sleep 10", "returned non-zero exit status 1."), ("sleep 1", said)):
            text = f"CalledProcessError in file x, line 1:\nCommand 'set -euo pipefail;  {command}' {how}"
            send(run, text, logging.ERROR, event=LogEvent.ERROR, exception="RuleException")
        error = {"rule_name": "train", "rule_msg": None, "log": [str(log)], "shellcmd": "sleep 1"}
        send(run, level=logging.ERROR, event=LogEvent.JOB_ERROR, jobid=1, **error)
        assert capsys.readouterr().err.count("SIGSEGV ended this step") == 1


@pytest.mark.slow
def test_a_workflow_error_is_its_message_in_red_on_a_terminal(workflow):
    run = run_piped(workflow, "--logger", "ghost", "--cores", "1", "--config", "bad=1")
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "bad table: row 3\n")
    written, code = run_on_terminal(workflow, "--logger", "ghost", "--cores", "1", "--config", "bad=1")
    assert code == 1
    assert written == "\x1b[31mbad table: row 3\x1b[0m\r\n"


@pytest.mark.slow
def test_a_dry_run_is_shown_as_snakemake_does(workflow):
    def plan(text):
        """Its lines, but for times; sorted, since Snakemake lists jobs of one level in any order."""
        return sorted(re.sub(r"\[\w{3} \w{3} .*\]|  (Date|Workflow ID|Command): .*", "", text).splitlines())

    default = run_piped(workflow, "--dry-run").stdout
    assert "reason: Missing output files: out/simulate/a.txt" in default
    assert plan(run_piped(workflow, "--logger", "ghost", "--dry-run").stdout) == plan(default)
