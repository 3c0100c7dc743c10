"""Demonstrations in the Dark Room: an expert that knows the goal takes the shortest way. N episodes, T steps.

The goal jumps every few steps, so that an episode is not mostly standing still. Some moves go wrong at random, so that
an agent sees how to come back. The move to learn (`target`) is always the right one. Nothing here is a stand-in.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghost.data.results import Measured, Outcome
from ghost.environments.dark_room import Rules, scaled, shortest_way
from ghost.runs.settings import at_least_one, below_one


@dataclass(frozen=True)
class Settings:
    size: int = 20  # of the room
    episodes: int = 512
    switch_every: int = 15  # steps, on average
    wrong_share: float = 0.1  # of the moves

    def __post_init__(self) -> None:
        at_least_one(self, "size", "episodes", "switch_every")
        below_one(self, "wrong_share")


def make(settings: Settings, *, seed: int, folder: Path) -> Outcome:
    s, room, rng = settings, Rules(settings.size), np.random.default_rng(seed)
    shape = (s.episodes, room.steps)
    position = rng.integers(room.size, size=(s.episodes, 2))
    goal = rng.integers(room.size, size=(s.episodes, 2))
    arrays = {name: np.zeros((*shape, 2), np.float32) for name in ("observation", "context", "action", "target")}
    reward = np.zeros(shape, np.float32)
    for t in range(room.steps):
        jumps = rng.random(s.episodes) < 1 / s.switch_every
        goal[jumps] = rng.integers(room.size, size=(jumps.sum(), 2))
        target = shortest_way(position, goal)
        wrong = rng.random(s.episodes) < s.wrong_share
        action = np.where(wrong[:, None], rng.integers(-1, 2, size=(s.episodes, 2)), target)
        for name, value in (("observation", position), ("context", goal)):
            arrays[name][:, t] = scaled(value, room.size)
        arrays["action"][:, t], arrays["target"][:, t] = action, target
        position = np.clip(position + action, 0, room.size - 1)
        reward[:, t] = np.where((position == goal).all(axis=1), room.reward_at_goal, room.reward_elsewhere)
    measured = [Measured("demos", "steps", reward.size), Measured("demos", "reward", float(reward.mean()), reward.size)]
    return Outcome(measured, {**arrays, "reward": reward, "length": np.full(s.episodes, room.steps)})
