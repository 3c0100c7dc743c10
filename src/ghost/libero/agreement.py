"""How often the rule for sub-phases agrees with those that the scripted experts record: `agreement_percent`.

Public demonstrations record no phases, so `ghost.libero.phases` infers them. Its lengths were chosen on scripted
demonstrations of seed 0. Here the same experts act in scenes of other seeds, and the rule sees of them what it sees of
a public recording: hand, fingers and commands. Attempts without success are left out, as they are there. An attempt is
a unit of work.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ghost.data.lerobot import ACTION, STATE
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.libero.assets import Assets, find_assets
from ghost.libero.demos import Settings, make_attempt, world
from ghost.libero.phases import infer_phases
from ghost.libero.stepping import environment
from ghost.runs.driver import Split
from ghost.runs.units import Kept, Made

__all__ = ["Settings", "agreement", "make", "world"]  # settings and assets are those of the demonstrations
CHOSEN_ON = 0  # the seed of the demonstrations on which the lengths of the rule were chosen
FINGERS = 25  # of the experts' state to a metre: `Look.columns`


def make(settings: Settings, *, seed: int, folder: Path) -> Split:
    """Let the experts try every task several times, and compare."""
    if seed == CHOSEN_ON:
        raise GhostError(f"the rule for phases was chosen on demonstrations of seed {seed}: take another seed")
    jobs = [(task, number) for task in settings.tasks for number in range(settings.attempts)]
    return Split(
        {f"T{task}_{number:03d}": [task, number] for task, number in jobs},
        partial(_attempt, settings, find_assets(), seed),
        partial(_join, settings),
        without=("tasks", "attempts"),
        noun="attempts",
    )


def agreement(columns: dict[str, np.ndarray]) -> np.ndarray:
    """At which steps [S] of a scripted demonstration the rule finds the recorded phase."""
    state = columns[STATE].astype(np.float64)
    first, second = state[:, 3:6], state[:, 6:9]  # of the rotation's columns
    rotation = np.stack([first, second, np.cross(first, second)], axis=2)
    opening = (state[:, 9] - state[:, 10]) / FINGERS
    return np.asarray(infer_phases(state[:, :3], rotation, opening, columns[ACTION][:, 6] > 0) == columns["phase"])


def _attempt(settings: Settings, assets: Assets, seed: int, folder: Path, job: list[int]) -> Made:
    task, number = job
    attempt = make_attempt(environment(task, assets), settings, seed, (task, number))
    agreed = agreement(attempt.columns)
    return Made({"task": task, "success": attempt.success, "steps": len(agreed), "agreed": int(agreed.sum())})


def _join(settings: Settings, made: list[Kept]) -> Outcome:
    succeeded = [kept.value for kept in made if kept.value["success"]]
    groups: dict[str, list[Any]] = {
        f"T{task}": [one for one in succeeded if one["task"] == task] for task in settings.tasks
    }
    if not succeeded:
        raise GhostError(f"none of {len(made)} attempts ended well: there is nothing to compare")
    measured = []
    for name, attempts in {"all": succeeded, **{name: own for name, own in groups.items() if own}}.items():
        steps = sum(one["steps"] for one in attempts)
        share = sum(one["agreed"] for one in attempts) / steps
        measured += [Measured(name, "agreement_percent", 100 * share, steps), Measured(name, "episodes", len(attempts))]
    return Outcome(measured)
