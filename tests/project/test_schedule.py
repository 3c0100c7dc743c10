"""List scheduling against schedules that can be seen by eye."""

from __future__ import annotations

import pytest

from ghost.project.schedule import Task, longest_chain, makespan


def task(seconds: float, *after: str, cores: int = 1, gpus: int = 0) -> Task:
    return Task(seconds, cores, gpus, after)


CHAIN = {"quick": task(1), "slow": task(50), "middle": task(1, "quick", "slow"), "aside": task(49, "quick")}
CHAIN |= {"end": task(1, "middle")}


def test_the_critical_path_is_the_slowest_chain():
    assert longest_chain(CHAIN) == (["slow", "middle", "end"], 52)
    assert longest_chain({}) == ([], 0)


@pytest.mark.parametrize(("cores", "seconds"), [(100, 52), (2, 52), (1, 102)])
def test_cores_limit_it(cores, seconds):
    assert makespan(CHAIN, cores=cores, gpus=0) == seconds
    assert makespan({}, cores=cores, gpus=0) == 0


def test_gpus_are_shared_and_do_not_hold_up_what_needs_none():
    trainings = {f"train{k}": task(10, gpus=1) for k in range(10)}
    assert makespan(trainings, cores=64, gpus=8) == 20
    assert makespan({**trainings, "rollout": task(15, cores=60)}, cores=64, gpus=4) == 30
    assert makespan({"wide": task(3, cores=500, gpus=9)}, cores=2, gpus=1) == 3  # it gets what there is


def test_the_longest_chain_goes_first():
    tasks = {"short": task(1, gpus=1), "long": task(5, gpus=1), "after": task(5, "long")}
    assert makespan(tasks, cores=9, gpus=1) == 10
