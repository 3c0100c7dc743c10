"""Agents in the Dark Room over long rollouts: the goal jumps again and again, and no memory is ever emptied.

E rollouts, G goals, T = G hold steps. The paper says that its values are over rollouts of 10,000 steps and not what
happens in them. Here the goal jumps every `hold` steps, so that an agent meets many goals in one life, far beyond the
300 steps of the episodes that it was trained for.

    latency       steps from a jump until the agent first stands on the new goal; `hold` if it does not
    reached       the share of jumps after which it did
    reward        mean reward per step; also over the first and the last tenth of the goals, `first_reward` and
                  `last_reward`: an agent that wears out has less in the end
"""

from dataclasses import dataclass

import numpy as np

from ghost.data.results import Measured, Outcome
from ghost.environments.dark_room import Rules, draw_rollouts
from ghost.evaluations.dark_room import SHORTEST_WAY, act
from ghost.evaluations.predict import Decoders
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least, at_least_one

FEATURES = False  # it reads no feature cache


@dataclass(frozen=True)
class Settings:
    size: int = 20  # of the room
    rollouts: int = 20  # E
    steps: int = 10_000  # T
    hold: int = 200  # steps from one jump to the next
    evaluation_seed: int = 3_000_000  # plus the training seed; no training has seen these rollouts

    def __post_init__(self) -> None:
        Rules(self.size)
        at_least_one(self, "rollouts", "hold")
        at_least(2 * self.hold, self, "steps")
        if self.steps % self.hold:
            raise ValueError(f"steps must be a multiple of hold = {self.hold}, got {self.steps}")


def evaluate(settings: Settings, cache: None, decoders: Decoders, *, seed: int, progress: Progress) -> Outcome:
    s, rules = settings, Rules(settings.size)
    measured: list[Measured] = []
    agents = {**decoders, SHORTEST_WAY: None}
    for done, (name, agent) in enumerate(agents.items()):
        progress(done, len(agents), name)
        room = draw_rollouts(rules, s.rollouts, s.steps // s.hold, s.hold, seed=s.evaluation_seed + seed)
        position, reward = act(name, agent, room)
        found = measure(position, reward, room.goals, s.hold)
        measured += [Measured(name, metric, float(values.mean()), values.size) for metric, values in found.items()]
    progress(len(agents), len(agents))
    return Outcome(measured)


def measure(position: np.ndarray, reward: np.ndarray, goals: np.ndarray, hold: int) -> dict[str, np.ndarray]:
    """From cells [E, T, 2], rewards [E, T] and goals [E, G, 2]: latency and reached [E, G - 1], rewards [E, ...]."""
    E, G = goals.shape[:2]
    at_goal = (position.reshape(E, G, hold, 2) == goals[:, :, None]).all(axis=-1)[:, 1:]  # [E, G - 1, hold]
    reached = at_goal.any(axis=-1)
    tenth = max(1, G // 10) * hold
    return {
        "latency": np.where(reached, at_goal.argmax(axis=-1) + 1, hold).astype(np.float64),
        "reached": reached.astype(np.float64),
        "reward": reward,
        "first_reward": reward[:, :tenth],
        "last_reward": reward[:, -tenth:],
    }
