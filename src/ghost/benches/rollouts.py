"""Rollouts: our stepping of LIBERO's simulation, on two cores, against hf-libero's own environment in one plain loop.

episodes         two episodes of the same actions: ours in two processes, theirs one after the other
episodes/core    one episode of each on one core
drift            the distance between the ends of the hand's two paths under the same actions, against the length of
                 the path: the two steppings are not bit-identical
success          successes of disturbed attempts of the expert, which observes every step: ours against theirs, paired
success/alike    pairs with the same outcome, against all pairs
dark_room        environment steps a second of the Dark Room, in batches, against one at a time
"""

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np

from ghost.benches import Pair, Place, interleaved
from ghost.environments.dark_room import steps_per_second
from ghost.libero.assets import primitive_assets
from ghost.libero.demos import Settings, make_attempt
from ghost.libero.environment import Environment
from ghost.libero.experts import expert
from ghost.runs.units import run_all

TASK, STEPS, REPEATS, WORKERS = 5, 60, 5, 2
PAIRED_TASKS, ATTEMPTS = (3, 5), 10
DISTURBED = Settings(PAIRED_TASKS, ATTEMPTS, max_steps=520, noise=0.12, bursts=0.01)


def measure(place: Place) -> list[Pair]:
    actions = demonstrate()
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        list(pool.map(episode, [actions] * WORKERS))  # builds the model in each

        def ours() -> None:
            list(pool.map(episode, [actions] * WORKERS))

        pairs = interleaved("episodes", ours, lambda: [episode(actions, plain=True) for _ in range(WORKERS)], REPEATS)
    pairs += interleaved("episodes/core", lambda: episode(actions), lambda: episode(actions, plain=True), REPEATS)
    theirs, way = episode(actions, plain=True)
    mine, _ = episode(actions)
    pairs.append(Pair("drift", 0, float(np.linalg.norm(mine - theirs)), way, "m"))
    pairs += successes()
    speeds = [(steps_per_second(2048, 0.5), steps_per_second(1, 0.5)) for _ in range(REPEATS)]
    return pairs + [Pair("dark_room", repeat, *both, "steps/s") for repeat, both in enumerate(speeds)]


class Plain(Environment):
    """The same task with hf-libero's own step and observations, from the state in which ours settles."""

    settling = False

    def reset(self, init_state: int | None, seed: int) -> None:
        self.settling = True
        super().reset(init_state, seed)
        self.settling = False
        for robot in self._libero.robots:
            robot.controller.update(force=True)
            robot.controller.reset_goal()

    def step(self, action: np.ndarray) -> None:
        if self.settling:
            super().step(action)
        else:
            self._libero.step(action)


@cache
def environment(plain: bool = False, task: int = TASK) -> Environment:
    return (Plain if plain else Environment)(task, primitive_assets())


def demonstrate() -> np.ndarray:
    """The expert's first actions [STEPS, 7]."""
    env = environment()
    env.reset(0, seed=0)
    taken = []
    for _ in range(STEPS):
        taken.append(expert(TASK, env.look()).action)
        env.step(taken[-1])
    return np.array(taken)


def episode(actions: np.ndarray, plain: bool = False) -> tuple[np.ndarray, float]:
    """The hand's last position [3], and the length of its path."""
    env = environment(plain)
    env.reset(0, seed=0)
    way, last = 0.0, env.look().hand
    for action in actions:
        env.step(action)
        env.success()
        hand = env.look().hand
        way += float(np.linalg.norm(hand - last))
        last = hand
    return last, way


def successes() -> list[Pair]:
    jobs = [(task, number) for task in PAIRED_TASKS for number in range(ATTEMPTS)]
    done = list(run_all(both_succeed, jobs, WORKERS))
    ours, theirs = (sum(side) for side in zip(*done, strict=True))
    alike = sum(a == b for a, b in done)
    return [Pair("success", 0, ours, theirs, "episodes"), Pair("success/alike", 0, alike, len(jobs), "episodes")]


def both_succeed(job: tuple[int, int]) -> tuple[bool, bool]:
    """One attempt with each stepping, under the same disturbance."""
    mine, theirs = (make_attempt(environment(plain, job[0]), DISTURBED, 0, job) for plain in (False, True))
    return mine.success, theirs.success
