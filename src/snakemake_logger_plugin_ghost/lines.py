"""Without a terminal (CI, nohup): a line on the state of the run every minute, and after every tenth job."""

import threading
import time
from collections.abc import Callable

from snakemake_logger_plugin_ghost.jobs import Run

EVERY_S = 60.0
EVERY_JOBS = 10


class Lines:
    """Says lines until it is stopped. A thread keeps the minutes: Snakemake is silent while a long job runs."""

    def __init__(self, say: Callable[[str], None], *, every_s: float = EVERY_S) -> None:
        self.say = say
        self.every_s = every_s
        self.due_s = 0.0  # when the next line is said, whatever happens
        self.said = 0  # jobs that were done at the last line
        self.over = threading.Event()

    def start(self, run: Run) -> None:
        self.due_s = time.time() + self.every_s
        threading.Thread(target=self._keep_time, args=(run,), name="lines", daemon=True).start()

    def on_job_done(self, run: Run) -> None:
        if run.done - self.said >= EVERY_JOBS:
            self._speak(run)

    def stop(self) -> None:
        self.over.set()

    def _keep_time(self, run: Run) -> None:
        while not self.over.wait(max(0.0, self.due_s - time.time())):
            if time.time() >= self.due_s:  # a tenth job may have put it off
                self._speak(run)

    def _speak(self, run: Run) -> None:
        now_s = time.time()
        self.due_s, self.said = now_s + self.every_s, run.done
        if run.done < run.total:  # else the closing line follows
            self.say(run.summary(now_s, {job_id: percent for job_id, (percent, _) in run.progress().items()}))
