"""When jobs are done on so many GPUs and cores: list scheduling, the longest chain first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

Name = Any  # of a task: whatever can be a key


@dataclass(frozen=True)
class Task:
    seconds: float
    cores: int
    gpus: int
    after: Sequence[Name]  # the names of the tasks that it needs


def longest_chain(tasks: Mapping[Name, Task]) -> tuple[list[Name], float]:
    """The chain of tasks that takes longest, however many run at once. `tasks` are in the order the data flows."""
    best: dict[Name, tuple[float, int, Name | None]] = {}  # name: seconds, length, the one before
    for name, task in tasks.items():
        seconds, length, before = max(((*best[other][:2], other) for other in task.after), key=_first, default=START)
        best[name] = (seconds + task.seconds, length + 1, before)
    end = max(best, key=lambda name: best[name][:2], default=None)
    total, chain = (best[end][0] if end is not None else 0.0), []
    while end is not None:
        chain.append(end)
        end = best[end][2]
    return chain[::-1], total


START: tuple[float, int, Name | None] = (0.0, 0, None)


def _first(found: tuple[float, int, Name | None]) -> tuple[float, int]:
    return found[:2]


def makespan(tasks: Mapping[Name, Task], *, cores: int, gpus: int) -> float:
    """The seconds until all tasks are done, each started as soon as it may and there is room, the most urgent first.

    A task that wants more than there is gets all there is.
    """
    left, waiting, next_ones = _urgency(tasks)
    ready: dict[tuple[int, int], list[tuple[float, int, Name]]] = {}  # by what they want: most urgent first
    running: list[tuple[float, int, Name]] = []
    now, number = 0.0, 0
    free = [cores, gpus]

    def offer(name: Name) -> None:
        nonlocal number
        task = tasks[name]
        number += 1
        heappush(ready.setdefault((min(task.cores, cores), min(task.gpus, gpus)), []), (-left[name], number, name))

    for name, task in tasks.items():
        if not task.after:
            offer(name)
    while running or any(ready.values()):
        while fits := [want for want, queue in ready.items() if queue and want[0] <= free[0] and want[1] <= free[1]]:
            want = min(fits, key=lambda each: ready[each][0])
            _, order, name = heappop(ready[want])
            free = [free[0] - want[0], free[1] - want[1]]
            heappush(running, (now + tasks[name].seconds, order, name))
        now, _, name = heappop(running)
        task = tasks[name]
        free = [free[0] + min(task.cores, cores), free[1] + min(task.gpus, gpus)]
        for other in next_ones[name]:
            waiting[other] -= 1
            if waiting[other] == 0:
                offer(other)
    return now


def _urgency(
    tasks: Mapping[Name, Task],
) -> tuple[dict[Name, float], dict[Name, int], dict[Name, list[Name]]]:
    """Of each task: the seconds of the longest chain that begins with it, how many it waits for, who waits for it."""
    next_ones: dict[Name, list[Name]] = {name: [] for name in tasks}
    for name, task in tasks.items():
        for other in task.after:
            next_ones[other].append(name)
    left: dict[Name, float] = {}
    for name in reversed(list(tasks)):
        left[name] = tasks[name].seconds + max((left[other] for other in next_ones[name]), default=0.0)
    return left, {name: len(task.after) for name, task in tasks.items()}, next_ones
