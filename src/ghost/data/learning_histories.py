"""Histories of a source reinforcement-learning algorithm in the Dark Room, for Algorithm Distillation to learn from.

N learners live through one episode of T steps each, as in the benchmark (the goal jumps once). The algorithm is tabular
temporal-difference learning of afterstates: W(s), the value of moving to cell s, is set to the reward found there plus
the discounted best W within one move. The learner knows where its moves lead and nothing about rewards. Moves are
ε-greedy, and ties are broken at random. W starts at 0, which is optimistic because a step costs reward. So the learner
goes where it has not been until it finds the goal, stays there, and leaves when the reward stops. A learning rate of 1
suits a world without chance, and a short horizon (the discount) lets it forget soon. The histories do not hold the
goal. A move against a wall is recorded as standing still. Nothing here is a stand-in.

Q-learning, with nine moves to try in each of 400 cells, ended its 300 steps before it had learnt: only 8 % of the
learners stood on the goal in the last 50 steps.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghost.data.results import Measured, Outcome
from ghost.environments.dark_room import DarkRoom, Rules, draw_episodes, scaled
from ghost.runs.settings import at_least_one, below_one

MOVES = np.array([(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)])  # [9, 2]


@dataclass(frozen=True)
class Settings:
    size: int = 20  # of the room
    learners: int = 512
    epsilon: float = 0.01
    learning_rate: float = 1.0
    discount: float = 0.8

    def __post_init__(self) -> None:
        at_least_one(self, "learners")
        below_one(self, "epsilon", "discount")
        if not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate must lie in (0, 1], got {self.learning_rate}")


def make(settings: Settings, *, seed: int, folder: Path) -> Outcome:
    s, rules, rng = settings, Rules(settings.size), np.random.default_rng(seed)
    room = DarkRoom(rules, draw_episodes(rules, range(s.learners), seed=int(rng.integers(2**31))))
    learner = np.arange(s.learners)
    leads_to = destinations(rules.size)  # [cells, 9]
    value = np.zeros((s.learners, rules.size**2))  # W
    observation = np.zeros((s.learners, rules.steps, 2), np.float32)
    action = np.zeros_like(observation)
    reward = np.zeros((s.learners, rules.steps), np.float32)
    while not room.over:
        t, cell = room.t, room.position @ [rules.size, 1]  # [N]
        ahead = value[learner[:, None], leads_to[cell]]  # [N, 9]
        greedy = (ahead + 1e-9 * rng.random(ahead.shape)).argmax(axis=1)
        chosen = np.where(rng.random(s.learners) < s.epsilon, rng.integers(len(MOVES), size=s.learners), greedy)
        before = room.position.copy()
        reward[:, t] = room.step(MOVES[chosen])
        observation[:, t], action[:, t] = scaled(before, rules.size), room.position - before
        reached = room.position @ [rules.size, 1]
        wanted = reward[:, t] + s.discount * value[learner[:, None], leads_to[reached]].max(axis=1)
        value[learner, reached] += s.learning_rate * (wanted - value[learner, reached])
    arrays = {"observation": observation, "context": np.zeros_like(observation), "action": action, "reward": reward}
    late = reward[:, -50:]
    measured = [
        Measured("source", "reward", float(reward.mean()), reward.size),
        Measured("source", "late_reward", float(late.mean()), late.size),
    ]
    return Outcome(measured, {**arrays, "length": np.full(s.learners, rules.steps)})


def destinations(size: int) -> np.ndarray:
    """The cell to which each move leads, given the walls: [cells, 9]."""
    x, y = np.divmod(np.arange(size**2), size)
    ahead = np.clip(np.stack([x, y], axis=-1)[:, None] + MOVES, 0, size - 1)  # [cells, 9, 2]
    return np.asarray(ahead @ [size, 1])
