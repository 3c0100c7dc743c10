import subprocess
import sys

import pytest

from ghost.runs.ending import why


@pytest.mark.parametrize(("code", "name"), [(-9, "SIGKILL"), (137, "SIGKILL"), (143, "SIGTERM"), (-11, "SIGSEGV")])
def test_a_signal_is_named_and_explained(code, name):
    assert why(code).startswith(f"{name} ended this step: ")
    assert len(why(code).split(": ", 1)[1].split()) > 3


@pytest.mark.parametrize("code", [0, 1, 2, 128, 255])
def test_a_step_that_ended_by_itself_has_no_signal(code):
    assert why(code) == ""


# Snakemake's own scheduler, asked to end by a signal while its main thread holds the lock, as it does while it chooses
# jobs. What it says when the lock is free again is what the handler has set.
ASKED = """
import os, signal, threading, time
from snakemake.scheduling.job_scheduler import JobScheduler
from ghost.runs.ending import mend_graceful_exit

{mend}
scheduler = JobScheduler.__new__(JobScheduler)
scheduler._lock, scheduler._open_jobs, scheduler._user_kill = threading.Lock(), threading.Semaphore(0), None
signal.signal(signal.SIGTERM, scheduler.exit_gracefully)
with scheduler._lock:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)
scheduler._open_jobs.acquire()
print(scheduler._user_kill)
"""


def asked_to_end(mend: str, seconds: float) -> str:
    command = [sys.executable, "-c", ASKED.format(mend=mend)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds).stdout.strip()


def test_snakemake_ends_when_asked_while_it_chooses_jobs():
    assert asked_to_end("mend_graceful_exit(JobScheduler)", 60) == "graceful"


def test_snakemake_alone_would_wait_for_ever():
    """When this fails, Snakemake has mended it, and `mend_graceful_exit` can go."""
    with pytest.raises(subprocess.TimeoutExpired):
        asked_to_end("", 10)
