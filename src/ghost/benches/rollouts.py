"""Rollouts: LIBERO's simulation as we step it, on two cores, against hf-libero's own environment in one plain loop.

episodes         two episodes of the same actions: ours in two processes, theirs one after the other
episodes/core    one episode of each on one core
drift            where the hand ends under the same actions, ours and theirs: the two steppings are not bit-identical
                 (ours in metres of distance, against the length of the hand's way)
dark_room        environment steps a second of the Dark Room, in batches, against one at a time
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from ghost.benches import Pair, Place, interleaved
from ghost.environments.dark_room import steps_per_second
from ghost.libero.assets import primitive_assets
from ghost.libero.environment import Environment
from ghost.libero.experts import expert

TASK, STEPS, REPEATS, WORKERS = 5, 60, 5, 2


def measure(place: Place) -> list[Pair]:
    env = environment()
    actions = demonstrate(env)
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        list(pool.map(episode, [actions] * WORKERS))  # builds the model in each

        def ours() -> None:
            list(pool.map(episode, [actions] * WORKERS))

        pairs = interleaved("episodes", ours, lambda: [plain_episode(actions) for _ in range(WORKERS)], REPEATS)
    pairs += interleaved("episodes/core", lambda: episode(actions), lambda: plain_episode(actions), REPEATS)
    theirs, way = plain_episode(actions)
    mine, _ = episode(actions)
    pairs.append(Pair("drift", 0, float(np.linalg.norm(mine - theirs)), way, "m"))
    speeds = [(steps_per_second(2048, 0.5), steps_per_second(1, 0.5)) for _ in range(REPEATS)]
    return pairs + [Pair("dark_room", repeat, *both, "steps/s") for repeat, both in enumerate(speeds)]


@cache
def environment() -> Environment:
    return Environment(TASK, primitive_assets())


def demonstrate(env: Environment) -> np.ndarray:
    """The expert's first actions [STEPS, 7]."""
    env.reset(0, seed=0)
    taken = []
    for _ in range(STEPS):
        taken.append(expert(TASK, env.look()).action)
        env.step(taken[-1])
    return np.array(taken)


def episode(actions: np.ndarray) -> tuple[np.ndarray, float]:
    """Ours: where the hand ends [3], and how far it went."""
    env = environment()
    env.reset(0, seed=0)
    return follow(env, env.step, actions)


def plain_episode(actions: np.ndarray) -> tuple[np.ndarray, float]:
    """From the same state, by hf-libero's own step, with the observations that it makes."""
    env = environment()
    env.reset(0, seed=0)
    libero: Any = env._libero
    for robot in libero.robots:
        robot.controller.update(force=True)
        robot.controller.reset_goal()
    return follow(env, libero.step, actions)


def follow(env: Environment, step: Callable[[np.ndarray], object], actions: np.ndarray) -> tuple[np.ndarray, float]:
    way, last = 0.0, env.look().hand
    for action in actions:
        step(action)
        env.success()
        hand = env.look().hand
        way += float(np.linalg.norm(hand - last))
        last = hand
    return last, way
