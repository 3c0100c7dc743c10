"""Progress of a slow step, as lines in its log: `[ 17%] 340/2000 epochs, 12 s left; loss 0.0131`.

The line is for people who read the log; the live display (`snakemake_logger_plugin_ghost`) tails the logs of the
running jobs and draws the last such line as a bar. So a step needs no channel of its own, on a cluster either.
"""

import re
import sys
import time
from typing import TextIO

LINE = re.compile(r"^\[ *(?P<percent>\d+)%\] (?P<text>.*)$")


class Progress:
    """Call it as often as you like: it writes at most one line in `every_s` seconds, and the last one."""

    def __init__(self, unit: str = "steps", *, stream: TextIO | None = None, every_s: float = 0.5) -> None:
        self.unit = unit
        self.stream = stream if stream is not None else sys.stderr
        self.every_s = every_s
        self.start_s = time.monotonic()
        self.written_s = float("-inf")

    def __call__(self, done: int, total: int, text: str = "") -> None:
        now_s = time.monotonic()
        if now_s - self.written_s < self.every_s and done < total:
            return
        self.written_s = now_s
        left = f", {(now_s - self.start_s) * (total - done) / done:.0f} s left" if 0 < done < total else ""
        note = f"; {text}" if text else ""
        percent = 100 * done // total if total else 100
        self.stream.write(f"[{percent:3d}%] {done}/{total} {self.unit}{left}{note}\n")
        self.stream.flush()
