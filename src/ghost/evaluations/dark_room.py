"""Agents in the Dark Room while the goal jumps: latency and reward of every episode. E episodes, T steps.

All agents act in the same episodes: the goals, the step of the jump, and the noise for those that draw their actions
are the same. A random walk acts too, and the shortest way, which no agent can beat.

    latency        steps from the jump until the agent first stands on the new goal; if it never does, the steps left in
                   the episode (as the paper's numbers suggest, see `ghost.environments.dark_room`)
    reached        whether it did
    steady_reward  mean reward over the last `steady_steps`
    total_reward   over the whole episode
    old_goal       the share of steps spent on the old goal from the jump until the new one is reached

Two more are of the reward averaged over the episodes, after the jump. The paper reads them off its curves and gives no
rule; this one is ours:

    plateau        the mean reward over the last PLATEAU_STEPS of the curve
    recovery       the first step from which the mean reward over RECOVERY_STEPS has come RECOVERED of the way from the
                   reward off the goal to the plateau; nan for an agent that never stands on the goal. In steps, and as
                   the time that they take at `control_hz`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ghost.data.results import Measured, Outcome
from ghost.data.trajectories import Seen
from ghost.environments.dark_room import DarkRoom, Rules, draw_episodes, moves, scaled, shortest_way
from ghost.evaluations.predict import Decoders, parameters_of
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one, positive

FEATURES = False  # it reads no feature cache
RANDOM_WALK, SHORTEST_WAY = "random_walk", "shortest_way"
PLATEAU_STEPS, RECOVERY_STEPS, RECOVERED = 50, 5, 0.9


@dataclass(frozen=True)
class Settings:
    size: int = 20  # of the room
    episodes: int = 20  # E
    evaluation_seed: int = 1_000_000  # plus the training seed; no training has seen these episodes
    steady_steps: int = 100
    steps_before: int = 50  # in the figure, before the jump
    steps_after: int = 200  # and after it
    control_hz: float = 100.0  # of the robot that would act like this

    def __post_init__(self) -> None:
        rules = Rules(self.size)
        at_least_one(self, "episodes")
        positive(self, "control_hz")
        if not 1 <= self.steady_steps <= rules.steps - rules.latest_switch:
            raise ValueError(f"steady_steps must lie after the jump, got {self.steady_steps}")
        if not (self.steps_before <= rules.earliest_switch and self.steps_after <= rules.steps - rules.latest_switch):
            raise ValueError(f"no episode has steps_before = {self.steps_before} and steps_after = {self.steps_after}")


def evaluate(settings: Settings, cache: None, decoders: Decoders, *, seed: int, progress: Progress) -> Outcome:
    rules = Rules(settings.size)
    episodes = draw_episodes(rules, range(settings.episodes), seed=settings.evaluation_seed + seed)
    measured: list[Measured] = []
    arrays: dict[str, np.ndarray] = {}
    agents = {**decoders, RANDOM_WALK: None, SHORTEST_WAY: None}
    for done, (name, agent) in enumerate(agents.items()):
        progress(done, len(agents), name)
        position, reward = act(name, agent, DarkRoom(rules, episodes))
        found = measure(settings, rules, position, reward, episodes.goals, episodes.switch)
        for metric, values in found.items():
            measured.append(Measured(name, metric, float(values.mean()), settings.episodes))
            measured += [Measured(f"{name}/episode{n:03d}", metric, value) for n, value in enumerate(values)]
        around = episodes.switch[:, None] + np.arange(-settings.steps_before, settings.steps_after)
        arrays |= {f"{name}/{metric}": values for metric, values in found.items()}
        course = arrays[f"{name}/reward"] = np.take_along_axis(reward, around, axis=1)  # [E, before + after]
        plateau, steps = recovery(course[:, settings.steps_before :].mean(axis=0), rules.reward_elsewhere)
        times_s = steps / settings.control_hz
        measured += [
            Measured(name, "plateau", plateau, settings.episodes),
            Measured(name, "recovery_steps", steps, settings.episodes),
            Measured(name, "recovery_s", times_s, settings.episodes),
            Measured(name, "recovery_ms", 1e3 * times_s, settings.episodes),
        ]
    facts = {
        "switch_step": episodes.switch,
        "steps_left": rules.steps - episodes.switch,  # the latency of an agent that never arrives
        "first_distance": moves(np.array(rules.size // 2), episodes.goals[:, 0]),
        "switch_distance": moves(episodes.goals[:, 0], episodes.goals[:, 1]),
        "evaluation_seed": np.full(settings.episodes, settings.evaluation_seed + seed),
    }
    for metric, values in facts.items():
        measured += [Measured(f"episode{n:03d}", metric, float(value)) for n, value in enumerate(values)]
    measured += [parameters_of(agent, name) for name, agent in decoders.items()]
    arrays["steps_left"] = facts["steps_left"].astype(np.float64)
    progress(len(agents), len(agents))
    return Outcome(measured, arrays)


@torch.no_grad()
def act(name: str, agent: Any, room: DarkRoom) -> tuple[np.ndarray, np.ndarray]:
    """One agent through all episodes: cells after each step [E, T, 2] and rewards [E, T]."""
    s, noise = room.rules, room.episodes.noise
    episodes = len(room.position)
    memory = agent.begin(episodes) if agent else None
    action, reward = np.zeros((episodes, 2), np.float32), np.zeros(episodes)
    positions, rewards = [], []
    while not room.over:
        if name == RANDOM_WALK:
            action = np.floor(3 * noise[room.t]) - 1
        elif name == SHORTEST_WAY:
            action = shortest_way(room.position, room.goal)
        else:
            known = (scaled(room.position, s.size), scaled(room.goal, s.size), action, reward)
            seen = Seen(*(torch.from_numpy(np.asarray(x, np.float32)) for x in known))
            action = agent.act(memory, seen, torch.from_numpy(noise[room.t])).numpy().clip(-1, 1).round()
        reward = room.step(action)
        positions.append(room.position.copy())
        rewards.append(reward)
    return np.stack(positions, axis=1), np.stack(rewards, axis=1)


def measure(
    settings: Settings, rules: Rules, position: np.ndarray, reward: np.ndarray, goals: np.ndarray, switch: np.ndarray
) -> dict[str, np.ndarray]:
    """The metrics of the episodes, each [E]."""
    after = np.arange(rules.steps) >= switch[:, None]  # [E, T]: the steps with the new goal
    at_new = after & (position == goals[:, None, 1]).all(axis=-1)
    at_old = after & (position == goals[:, None, 0]).all(axis=-1)
    reached = at_new.any(axis=1)
    latency = np.where(reached, at_new.argmax(axis=1) - switch + 1, rules.steps - switch)
    searching = after & (np.arange(rules.steps) < (switch + latency)[:, None])
    return {
        "latency": latency.astype(np.float64),
        "reached": reached.astype(np.float64),
        "steady_reward": reward[:, -settings.steady_steps :].mean(axis=1),
        "total_reward": reward.sum(axis=1),
        "old_goal": (at_old & searching).sum(axis=1) / latency,
    }


def recovery(course: np.ndarray, off_goal: float) -> tuple[float, float]:
    """The plateau of a mean reward [steps after the jump], and the step (from 1) from which it has recovered."""
    plateau = float(course[-PLATEAU_STEPS:].mean())
    ahead = np.lib.stride_tricks.sliding_window_view(course, min(RECOVERY_STEPS, len(course))).mean(axis=-1)
    back = ahead >= off_goal + RECOVERED * (plateau - off_goal)
    never = math.isclose(plateau, off_goal, abs_tol=1e-9) or not back.any()
    return plateau, math.nan if never else float(back.argmax() + 1)
