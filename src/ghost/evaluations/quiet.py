"""Was the machine quiet while a time was measured? A time that was measured beside other work is no property of ours.

A run that measures a time also measures, under the name of that metric, the share of the machine's CPU time that went
to others (`busy_share`). Above a limit every cell of the metric says that a busy machine stands in for a quiet one.
"""

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ghost.runs.records import Run

METRIC = "busy_share"
LIMIT = 0.1
STAND_IN = "quiet machine"
STAT = Path("/proc/stat")
TICKS_PER_S = 100  # of /proc/stat, on every Linux


class Watch:
    """`with Watch() as watch: ...`; then `watch.busy_share`.

    It is the larger of two: the CPU time of all cores that others used (a host's steal included), as a share of all
    there was; and, for work in one thread on the CPU, the time that this thread waited, as a share of its time.
    """

    def __init__(self, *, one_thread: bool) -> None:
        self.one_thread, self.busy_share = one_thread, 0.0

    def __enter__(self) -> Self:
        self.before = _all_and_used_s(), time.process_time(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        (all_s, used_s), cpu_s, clock_s = self.before
        all_now_s, used_now_s = _all_and_used_s()
        own_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - clock_s
        others = (used_now_s - used_s - own_s) / (all_now_s - all_s) if all_now_s > all_s else 0.0
        waited = 1 - own_s / wall_s if self.one_thread and wall_s > 0 else 0.0
        self.busy_share = min(max(others, waited, 0.0), 1.0)


def _all_and_used_s() -> tuple[float, float]:
    """CPU time of all cores since the machine started: all, and what was used; zeros where the system does not say."""
    if not STAT.exists():
        return 0.0, 0.0
    ticks = [int(field) for field in STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    idle = ticks[3] + ticks[4]  # and waiting for disks
    return sum(ticks) / TICKS_PER_S, (sum(ticks) - idle) / TICKS_PER_S


def busy(runs: list[Run], metric: str) -> set[str]:
    """The stand-in of a cell of a metric, if one of its runs measured it on a busy machine."""
    shares = [m.value for run in runs for m in run.measured() if (m.condition, m.metric) == (metric, METRIC)]
    return {STAND_IN} if max(shares, default=0.0) > LIMIT else set()
