import subprocess
import sys
import time

# Snakemake's own scheduler, as its loop uses it for two seconds: ten jobs have ended, and every look asks for another
# one a tenth of a second later.
LOOKS = """
import threading, time
from snakemake.scheduling.job_scheduler import JobScheduler
from ghost.runs.scheduling import mend_looking

{mend}
scheduler = JobScheduler.__new__(JobScheduler)
scheduler._open_jobs = threading.Semaphore(10)
until_s, looks = time.monotonic() + 2, 0
while time.monotonic() < until_s and scheduler._open_jobs.acquire(timeout=1):
    looks += 1
    scheduler._schedule_reevalutation(0.1)
if "{mend}":
    scheduler._schedule_reevalutation(100)  # for which nobody waits
print(looks)
"""


def looks(mend: str) -> int:
    command = [sys.executable, "-c", LOOKS.format(mend=mend)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


def test_snakemake_looks_for_jobs_when_one_ends_and_then_once_in_a_while():
    started_s = time.monotonic()
    assert 12 <= looks("mend_looking(JobScheduler)") <= 31  # ten, and at most one in a tenth of a second
    assert time.monotonic() - started_s < 50


def test_an_earlier_look_is_not_put_off():
    code = (
        "import threading, time; from ghost.runs.scheduling import mend_looking\n"
        "class Scheduler: _open_jobs = threading.Semaphore(0)\n"
        "mend_looking(Scheduler); asked = Scheduler()\n"
        "asked._schedule_reevalutation(100); asked._schedule_reevalutation(0.1)\n"
        "assert asked._open_jobs.acquire(timeout=30)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_snakemake_alone_looks_ever_more_often():
    """When this fails, Snakemake has mended it, and `mend_looking` can go."""
    assert looks("") > 50
