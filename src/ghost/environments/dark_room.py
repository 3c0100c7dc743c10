"""The Dark Room with a goal that moves: a grid world, many episodes at once. B episodes.

    rules = Rules(20)
    room = DarkRoom(rules, draw_episodes(rules, range(32), seed=7))
    while not room.over:
        reward = room.step(action)  # [B, 2] -> [B]

An agent stands on a cell of a square grid and moves by at most one cell along each axis. Its action is two numbers,
which are rounded to -1, 0 or 1. On the goal it earns 1, elsewhere it pays 0.1. It sees its position. Whether it knows
the goal depends on the agent (`ghost.agents`). Once in an episode the goal jumps to another cell.

The paper gives neither grid nor reward nor episode length. We inferred them from the numbers that it prints:

* Its agents have two outputs (see `ghost.agents`), so an action is a displacement in the plane.
* Total over steady reward is 281 for Ghost and 280 for RL², so an episode has about 300 steps.
* The latency of RL² is 219.4 ± 12.0. An agent that never arrives, counted until the end, has 220 ± 11.8 if the goal
  jumps at a step drawn from 60 to 100. The reward of RL², -0.08 a step, is nearly the -0.1 of never being there.
* The reward of Ghost is 300 - 1.1 (steps to the first goal + steps to the second). With its latency of 10.8 ± 3.4 this
  leaves 6 steps to the first goal. With 20 x 20 cells, a start in the middle, and a second goal at least 5 moves away
  from the first, an agent that takes the shortest way has a latency of 10.6 ± 3.7 and a total of 281.1.

So if an agent that knows the goal comes near the published latency, that is no evidence. How the agents compare is.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rules:
    """The paper's room has 20 cells along a side; tests have smaller ones."""

    size: int  # cells along a side
    steps = 300  # of an episode
    earliest_switch = 60
    latest_switch = 100
    reward_at_goal = 1.0
    reward_elsewhere = -0.1

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError(f"size must be at least 2, got {self.size}")

    @property
    def switch_distance(self) -> int:
        """Moves from the first goal to the second, at least. Some cell is that far away from any first goal."""
        return max(1, self.size // 4)


@dataclass(frozen=True)
class Episodes:
    """The random choices of episodes, drawn before any agent acts."""

    goals: np.ndarray  # [B, 2, 2] int: episode, first or second goal, x and y
    switch: np.ndarray  # [B] int: the first step with the second goal
    noise: np.ndarray  # [steps, B, 2] in [0, 1): for agents that draw their actions


def draw_episodes(rules: Rules, numbers: Sequence[int], *, seed: int) -> Episodes:
    """Episodes by number. Each has its own generator, so episode 7 is the same alone or among a thousand."""
    s = rules
    goals = np.empty((len(numbers), 2, 2), np.int64)
    switch = np.empty(len(numbers), np.int64)
    noise = np.empty((s.steps, len(numbers), 2), np.float32)
    for place, number in enumerate(numbers):
        rng = np.random.default_rng([seed, number])
        goals[place] = rng.integers(s.size, size=(2, 2))
        while moves(goals[place, 0], goals[place, 1]) < s.switch_distance:
            goals[place, 1] = rng.integers(s.size, size=2)
        switch[place] = rng.integers(s.earliest_switch, s.latest_switch + 1)
        noise[:, place] = rng.random((s.steps, 2), dtype=np.float32)
    return Episodes(goals, switch, noise)


def moves(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The number of moves between two cells [..., 2]. A move changes both axes at once."""
    return np.asarray(np.abs(a - b).max(axis=-1))


def shortest_way(position: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The expert's move [B, 2]: one cell nearer along each axis."""
    return np.asarray(np.sign(goal - position))


def scaled(cell: np.ndarray, size: int) -> np.ndarray:
    """A cell [..., 2] as agents see it: -1 to 1 along each axis."""
    return np.asarray(2 * cell / (size - 1) - 1, np.float32)


class DarkRoom:
    """Episodes that run in lockstep."""

    def __init__(self, rules: Rules, episodes: Episodes) -> None:
        self.rules, self.episodes = rules, episodes
        self.t = 0
        self.position = np.full((len(episodes.switch), 2), rules.size // 2)  # [B, 2]
        self.goal = episodes.goals[:, 0].copy()  # [B, 2], the present one

    @property
    def over(self) -> bool:
        return self.t >= self.rules.steps

    def step(self, action: np.ndarray) -> np.ndarray:
        """Move by the rounded action [B, 2]; the reward [B] is for the cell reached."""
        move = np.rint(np.minimum(np.maximum(action, -1), 1)).astype(np.int64)
        np.add(self.position, move, out=self.position)
        np.minimum(np.maximum(self.position, 0, out=self.position), self.rules.size - 1, out=self.position)
        x, y = self.position.T
        goal_x, goal_y = self.goal.T
        reward = np.where((x == goal_x) & (y == goal_y), self.rules.reward_at_goal, self.rules.reward_elsewhere)
        self.t += 1
        if self.rules.earliest_switch <= self.t <= self.rules.latest_switch:
            switched = self.episodes.switch == self.t
            self.goal[switched] = self.episodes.goals[switched, 1]
        return reward


class LongRoom(DarkRoom):
    """Rollouts of any length, in which the goal jumps every `hold` steps. G goals."""

    def __init__(self, rules: Rules, goals: np.ndarray, hold: int, noise: np.ndarray) -> None:
        """Goals [B, G, 2] and noise [G hold, B, 2]; `draw_rollouts` draws both."""
        never = np.full(len(goals), -1)  # the one jump of an episode
        super().__init__(rules, Episodes(goals[:, :2], never, noise))
        self.goals, self.hold = goals, hold

    @property
    def over(self) -> bool:
        return self.t >= len(self.episodes.noise)

    def step(self, action: np.ndarray) -> np.ndarray:
        reward = super().step(action)
        if self.t % self.hold == 0 and not self.over:
            self.goal = self.goals[:, self.t // self.hold].copy()
        return reward


def draw_rollouts(rules: Rules, rollouts: int, goals: int, hold: int, *, seed: int) -> LongRoom:
    """Rollouts with so many goals each. Each goal is as far from the last one as the two of an episode."""
    made = np.empty((rollouts, goals, 2), np.int64)
    noise = np.empty((goals * hold, rollouts, 2), np.float32)
    for place in range(rollouts):
        rng = np.random.default_rng([seed, place])
        for number in range(goals):
            made[place, number] = rng.integers(rules.size, size=2)
            while number and moves(made[place, number - 1], made[place, number]) < rules.switch_distance:
                made[place, number] = rng.integers(rules.size, size=2)
        noise[:, place] = rng.random((goals * hold, 2), dtype=np.float32)
    return LongRoom(rules, made, hold, noise)


def steps_per_second(batch: int = 2048, seconds: float = 1.0) -> float:
    """Environment steps a second on one thread. The moves and the episodes are drawn beforehand."""
    rules = Rules(20)
    episodes = draw_episodes(rules, range(batch), seed=0)
    actions = np.random.default_rng(0).uniform(-1.5, 1.5, size=(16, batch, 2)).astype(np.float32)
    taken, start_s = 0, time.perf_counter()
    while time.perf_counter() - start_s < seconds:
        room = DarkRoom(rules, episodes)
        while not room.over:
            room.step(actions[room.t % 16])
        taken += batch * rules.steps
    return taken / (time.perf_counter() - start_s)
