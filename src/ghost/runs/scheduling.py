"""How often Snakemake looks for jobs to start."""

import math
import threading
import time
from typing import Any


def mend_looking(scheduler: Any) -> None:
    """Let Snakemake look for jobs once a second at most, beside the looks when a job ends.

    Its limit of jobs a second makes every look ask for another one a second later. Each job that ends adds a look, and
    so a chain of looks that goes on while jobs wait for a core: after 100 jobs it looks 100 times a second. Here a look
    that comes anyway before the one that is asked for will do. Nor does the end of Snakemake wait for looks that are
    still to come.
    """

    def ask(self: Any, delay: float) -> None:
        due_s = time.monotonic() + delay
        if due_s >= getattr(self, "_next_look_s", math.inf):
            return

        def look() -> None:
            self._next_look_s = math.inf  # before the look, which asks for the next one
            self._open_jobs.release()

        self._next_look_s = due_s
        timer = threading.Timer(delay, look)
        timer.daemon = True
        timer.start()

    scheduler._schedule_reevalutation = ask  # so spelt in Snakemake
