"""Many independent episodes over processes. An episode resets everything it reads, so any number of workers gives the
same results; they come back in the order of the jobs. A crash in a worker ends the whole step: it is never a result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context, parent_process
from typing import TypeVar

from ghost.libero.assets import Assets
from ghost.libero.environment import Environment

Job = TypeVar("Job")
Result = TypeVar("Result")


def workers() -> int:
    """Cores that this job was given: by Slurm, or by Snakemake, whose rules pass their `threads` on."""
    return max(1, int(os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("OMP_NUM_THREADS") or 1))


def run_all(function: Callable[[Job], Result], jobs: Sequence[Job], count: int) -> Iterator[Result]:
    """`function` of every job, in order; in this process when there is one worker."""
    if count == 1 or len(jobs) < 2:
        yield from map(function, jobs)
        return
    # spawned, not forked: a fork of a process with MuJoCo, torch and numba in it is no clean start
    with ProcessPoolExecutor(min(count, len(jobs)), get_context("spawn"), initializer=_end_with_parent) as pool:
        yield from pool.map(function, jobs)


def _end_with_parent() -> None:
    """A worker whose step was killed would wait for its next job for ever."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@cache
def environment(task: int, assets: Assets) -> Environment:
    """A worker builds the model of a task once."""
    return Environment(task, assets)
