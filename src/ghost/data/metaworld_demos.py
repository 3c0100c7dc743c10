"""Demonstrations of Meta-World's scripted experts, for ML10 or ML45. N episodes, T steps.

The arm follows the expert with a disturbance (a slow AR(1) noise, none on the gripper), so that the episodes show how
to come back to the path. The action to learn (`target`) is the expert's own. An episode ends a few steps after its
success. Episodes without success are left out and counted: soccer and stick-pull fail for some variations.

The observations are those that agents see (`ghost.environments.metaworld.features`). The context is the task, one-hot.
The rewards are a tenth of Meta-World's own, so that they are of order one. Nothing here is a stand-in.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghost.data.results import Measured, Outcome
from ghost.data.trajectories import pack
from ghost.environments.metaworld import World, check_benchmark, features, tasks
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one

REWARD_SCALE = 0.1


@dataclass(frozen=True)
class Settings:
    benchmark: str = "ml10"
    tasks: int = 10  # how many of the benchmark, from its first on
    episodes_per_task: int = 20
    max_steps: int = 200
    steps_after_success: int = 5
    noise: float = 0.1  # σ of the disturbance; at 0.2 only 4 of 10 pushes succeed
    noise_memory: float = 0.9  # its correlation from step to step

    def __post_init__(self) -> None:
        check_benchmark(self.benchmark, self.tasks)
        at_least_one(self, "episodes_per_task", "max_steps", "steps_after_success")
        if self.noise < 0 or not 0 <= self.noise_memory < 1:
            raise ValueError(f"expected noise >= 0 and 0 <= noise_memory < 1, got {self.noise}, {self.noise_memory}")


def make(settings: Settings, *, seed: int, folder: Path) -> Outcome:
    names, each = tasks(settings.benchmark)[: settings.tasks], settings.episodes_per_task
    progress = Progress("tasks")
    episodes, measured = [], []
    for number, name in enumerate(names):
        progress(number, len(names), name)
        world, succeeded = World(name), 0
        for episode in range(each):
            tried = demonstrate(settings, world, np.random.SeedSequence([seed, number, episode]))
            if tried is None:
                continue
            succeeded += 1
            context = np.tile(np.eye(len(names), dtype=np.float32)[number], (len(tried["reward"]), 1))
            episodes.append({**tried, "observation": features(tried["observation"]), "context": context})
        measured.append(Measured(name, "expert_success", succeeded / each, each))
    progress(len(names), len(names))
    packed, total = pack(episodes), len(names) * each
    measured.append(Measured("all", "expert_success", len(episodes) / total, total))
    measured.append(Measured("all", "steps", int(packed["length"].sum())))
    return Outcome(measured, packed)


def demonstrate(settings: Settings, world: World, seeds: np.random.SeedSequence) -> dict[str, np.ndarray] | None:
    """One disturbed episode of the expert, [T, ...] each; None if it did not succeed."""
    s, rng = settings, np.random.default_rng(seeds)
    seen = world.reset(int(rng.integers(2**31)))
    steps: list[tuple[np.ndarray, np.ndarray, np.ndarray, float]] = []
    disturbance, left, succeeded = np.zeros(4, np.float32), s.max_steps, False
    while left > 0:
        target = world.expert(seen)
        shock = np.append(rng.normal(size=3), 0.0).astype(np.float32)
        disturbance = s.noise_memory * disturbance + s.noise * np.sqrt(1 - s.noise_memory**2) * shock
        action = np.clip(target + disturbance, -1, 1)
        following, reward, success = world.step(action)
        steps.append((seen, action, target, REWARD_SCALE * reward))
        seen, left = following, left - 1
        if success and not succeeded:
            left, succeeded = min(left, s.steps_after_success), True
    if not succeeded:
        return None
    names = ("observation", "action", "target", "reward")
    return {name: np.array(column, np.float32) for name, column in zip(names, zip(*steps, strict=True), strict=True)}
