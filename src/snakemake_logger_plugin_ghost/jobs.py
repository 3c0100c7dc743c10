"""The state of a run: its jobs, their progress lines, and an estimate of the time left.

Times are seconds since the epoch, as in log records and file times.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from ghost.runs.progress import LINE

TAIL_BYTES = 4096
SAMPLE = 10  # percent of the jobs; the first ones are the longest, and a guess from fewer was ten times too long
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f-\x9f]")


def tail(path: str, *, since_s: float = 0.0) -> list[str]:
    """The lines in the last 4 KB of a log, without control codes.

    Empty if there is no such file, or if it was last written before `since_s`, in an earlier run.
    """
    try:
        with Path(path).open("rb") as file:
            stat = os.fstat(file.fileno())
            if stat.st_mtime < since_s:
                return []
            file.seek(max(0, stat.st_size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode(errors="replace")
    except OSError:
        return []
    return [CONTROL.sub("", line) for line in text.splitlines()]


@dataclass(frozen=True)
class Job:
    """A running job."""

    rule: str
    wildcards: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    threads: int = 1
    start_s: float = 0.0
    is_target: bool = False  # it only collects files, like `all`

    @property
    def label(self) -> str:
        return " ".join((self.rule, *self.wildcards))

    def progress(self) -> tuple[int, str] | None:
        """Percent and text of the last progress line in its log."""
        for log in self.logs:
            for line in reversed(tail(log, since_s=self.start_s)):
                if match := LINE.match(line):
                    return min(int(match["percent"]), 100), match["text"]
        return None


@dataclass
class Run:
    """The jobs of a run.

    One thread handles the log and changes it while another draws it, so readers copy before they loop.
    """

    start_s: float
    cores: int = 1  # or nodes, on a cluster
    total: int = 0
    done: int = 0
    failed: set[int] = field(default_factory=set)
    running: dict[int, Job] = field(default_factory=dict)
    unfinished: Counter[str] = field(default_factory=Counter)  # jobs of each rule
    took_s: dict[str, list[float]] = field(default_factory=dict)  # finished jobs of each rule
    threads: dict[str, int] = field(default_factory=dict)  # of each rule, once a job of it started

    def plan(self, stats: Mapping[str, int]) -> None:
        """Take Snakemake's job stats: how many jobs of each rule, and of all rules under `total`."""
        self.total = stats["total"]
        self.unfinished = Counter({rule: n for rule, n in stats.items() if rule not in ("total", "all")})

    def start(self, job_id: int, job: Job) -> None:
        self.failed.discard(job_id)  # if this is a second attempt
        self.threads[job.rule] = job.threads
        self.running[job_id] = job

    def finish(self, job_id: int, now_s: float) -> Job | None:
        job = self.running.pop(job_id, None)
        self.done += 1
        if job and not job.is_target:
            self.unfinished[job.rule] -= 1
            self.took_s[job.rule] = [*self.took_s.get(job.rule, []), now_s - job.start_s]
        return job

    def fail(self, job_id: int) -> Job | None:
        self.failed.add(job_id)
        return self.running.pop(job_id, None)

    def left_s(self, now_s: float, percents: Mapping[int, int]) -> float | None:
        """An estimate of the time left; None before a job finished, after one failed, or if all are overdue.

        We expect a job to take the mean time of the known jobs of its rule, or of all rules if there are none. The
        time of a running job with a percent (`percents`, by job id) is known too, from its pace. The rest of the run
        takes as long as its longest job, or as all its work shared by the cores, whichever is more.
        """
        if not self.took_s or self.failed:
            return None
        running = dict(self.running)
        known_s = {rule: list(times_s) for rule, times_s in dict(self.took_s).items()}
        paced_s = {}
        for job_id, percent in percents.items():
            if percent and job_id in running:
                job = running[job_id]
                paced_s[job_id] = (now_s - job.start_s) * 100 / percent
                known_s.setdefault(job.rule, []).append(paced_s[job_id])
        any_s = [time_s for times_s in known_s.values() for time_s in times_s]
        rule_s = {rule: fmean(known_s.get(rule, any_s)) for rule in dict(self.unfinished)}

        waiting = Counter(self.unfinished)
        waiting.subtract(job.rule for job in running.values())
        work = [(rule_s[rule], self.threads.get(rule, 1)) for rule in waiting.elements()]
        for job_id, job in running.items():
            expected_s = paced_s.get(job_id, rule_s.get(job.rule, 0.0))
            work.append((max(0.0, job.start_s + expected_s - now_s), job.threads))
        longest_s = max((time_s for time_s, _ in work), default=0.0)
        shared_s = sum(time_s * threads for time_s, threads in work) / self.cores
        return max(longest_s, shared_s) or None

    def progress(self) -> dict[int, tuple[int, str]]:
        """Percent and text of the running jobs whose logs show progress, by job id."""
        return {job_id: found for job_id, job in dict(self.running).items() if (found := job.progress())}

    def summary(self, now_s: float, percents: Mapping[int, int]) -> str:
        """`12 of 40 jobs done, 2 running, 26 left; 3 min 10 s, about 8 min left`."""
        counts = [f"{self.done} of {self.total} jobs done", f"{len(self.running)} running"]
        counts.append(f"{self.total - self.done - len(self.running) - len(self.failed)} left")
        if self.failed:
            counts.append(f"{len(self.failed)} failed")
        left_s = self.left_s(now_s, percents) if self.done * 100 >= SAMPLE * self.total else None
        left = f", about {rough_duration(left_s)} left" if left_s else ""
        return f"{', '.join(counts)}; {duration(now_s - self.start_s)}{left}"

    def closing_line(self, now_s: float) -> str:
        failed = f", {len(self.failed)} failed," if self.failed else ""
        return f"{self.done} of {self.total} jobs done{failed} in {duration(now_s - self.start_s)}"


def duration(time_s: float) -> str:
    """`1.2 s`, `34 s`, `2 min 05 s`, `1 h 05 min`."""
    if time_s < 9.95:
        return f"{time_s:.1f} s"
    minutes, seconds = divmod(round(time_s), 60)
    if minutes == 0:
        return f"{seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def rough_duration(time_s: float) -> str:
    """With the precision of an estimate: `5 s`, `40 s`, `2 min`, `1.5 h`."""
    if time_s < 90:
        return f"{max(5, 5 * round(time_s / 5))} s"
    return f"{time_s / 60:.0f} min" if time_s < 90 * 60 else f"{time_s / 3600:.1f} h"
