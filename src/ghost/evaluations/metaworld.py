"""Agents in Meta-World while the task changes abruptly: direction of the first actions, and success. R rounds, K tasks.

In a round every task of the benchmark is the new one once. An agent first works for `steps_before` on another task, the
one before it in a random order. Then, from one step to the next, it is in the new task's world and knows the new task.
It keeps its memory. It acts until the task is done or `max_steps` are over.

    cosine    between its action and that of the new task's expert for the same observation, at each of the first
              `aligned_steps`; also reported for the first step alone and for the first ten
    arm       the same for the three dimensions that move the hand, without the gripper
    fresh     the cosine before the switch, from the very first step, with an empty memory. The difference is what the
              switch costs an agent.
    steps_to_change
              the first step after the switch at which the action has moved away from the last one before it by more
              than from any step to the next among the FIRST before the switch; `aligned_steps` if it never does. The
              paper says that all agents change their output within one or two steps and not how it was measured.
    success   whether the task was done in closed loop, by Meta-World's own test, for each episode

The experts themselves act too, and an agent that draws its actions uniformly. All act in the same worlds. The expert is
asked at every observation along the agent's own path; its action is not taken from a recording.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ghost.data.metaworld_demos import REWARD_SCALE
from ghost.data.results import Measured, Outcome
from ghost.data.trajectories import Seen
from ghost.environments.metaworld import World, check_benchmark, features, tasks
from ghost.evaluations.predict import Decoders, parameters_of
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one

FEATURES = False  # it reads no feature cache
EXPERT, RANDOM = "expert", "random_actions"
FIRST = 10  # steps that count as the first ones


@dataclass(frozen=True)
class Settings:
    benchmark: str = "ml10"
    tasks: int = 10  # how many of the benchmark, from its first on
    rounds: int = 20  # R
    steps_before: int = 30
    aligned_steps: int = 50
    max_steps: int = 200
    evaluation_seed: int = 1_000_000  # plus the training seed; no demonstration has these variations

    def __post_init__(self) -> None:
        check_benchmark(self.benchmark, self.tasks)
        at_least_one(self, "rounds", "steps_before")
        if not FIRST <= self.aligned_steps <= self.max_steps:
            raise ValueError(f"expected {FIRST} <= aligned_steps <= max_steps, got {self.aligned_steps}")


def evaluate(settings: Settings, cache: None, decoders: Decoders, *, seed: int, progress: Progress) -> Outcome:
    s, names = settings, tasks(settings.benchmark)[: settings.tasks]
    worlds = [World(name) for name in names]
    agents = {**decoders, EXPERT: None, RANDOM: None}
    found: dict[str, list[tuple[np.ndarray, ...]]] = {name: [] for name in agents}
    for number in range(s.rounds):
        for done, (name, agent) in enumerate(agents.items()):
            progress(number * len(agents) + done, s.rounds * len(agents), f"round {number}, {name}")
            rng = np.random.default_rng([s.evaluation_seed + seed, number])  # the same for all agents
            found[name].append(switch(s, worlds, name, agent, rng))
    progress(s.rounds * len(agents), s.rounds * len(agents))
    measured: list[Measured] = []
    arrays: dict[str, np.ndarray] = {}
    for name, rounds in found.items():
        cosine, arm, fresh, change, success = (np.concatenate(part) for part in zip(*rounds, strict=True))  # [R K, ...]
        measured += [
            Measured(name, "success", float(success.mean()), len(success)),
            Measured(name, "steps_to_change", float(change.mean()), len(change)),
            Measured(name, "first_cosine", float(cosine[:, 0].mean()), len(cosine)),
            Measured(name, "early_cosine", float(np.nanmean(cosine[:, :FIRST])), len(cosine)),
            Measured(name, "fresh_first_cosine", float(fresh[:, 0].mean()), len(fresh)),
            Measured(name, "fresh_early_cosine", float(fresh[:, :FIRST].mean()), len(fresh)),
            Measured(name, "first_arm_cosine", float(arm[:, 0].mean()), len(arm)),
            Measured(name, "early_arm_cosine", float(np.nanmean(arm[:, :FIRST])), len(arm)),
        ]
        for place in range(len(success)):
            episode = f"{name}/round{place // len(names):02d}/{names[place % len(names)]}"
            measured.append(Measured(episode, "success", float(success[place])))
            measured.append(Measured(episode, "first_cosine", float(cosine[place, 0])))
        arrays |= {f"{name}/cosine": cosine, f"{name}/arm_cosine": arm, f"{name}/success": success.astype(np.float64)}
    measured += [parameters_of(agent, name) for name, agent in decoders.items()]
    measured.append(Measured("episodes", "evaluation_seed", s.evaluation_seed + seed))
    return Outcome(measured, arrays)


@torch.no_grad()
def switch(s: Settings, worlds: list[World], name: str, agent: Any, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """One round of one agent: cosine [K, aligned_steps], arm, fresh [K, steps_before], steps_to_change and success [K].

    The cosines are nan once a task is done.
    """
    K = len(worlds)
    order = rng.permutation(K)
    before = np.empty(K, np.int64)
    before[order] = np.roll(order, 1)  # the task from which each is switched to
    seeds = rng.integers(2**31, size=(2, K))
    memory = agent.begin(K) if agent else None
    action, reward = np.zeros((K, 4), np.float32), np.zeros(K, np.float32)
    cosine, arm = np.full((2, K, s.aligned_steps), np.nan)
    fresh = np.full((K, s.steps_before), np.nan)
    taken = np.full((K, s.steps_before + s.aligned_steps, 4), np.nan)  # actions, before the switch and after it
    success = np.zeros(K, bool)
    for phase, at in enumerate((before, np.arange(K))):  # agent k is in world at[k]
        observation = np.stack([worlds[at[k]].reset(int(seeds[phase, at[k]])) for k in range(K)])
        context = np.eye(K, dtype=np.float32)[at]
        for t in range(s.max_steps if phase else s.steps_before):
            acting = np.flatnonzero(~success)
            if not len(acting):
                break
            noise = rng.random((K, 4), dtype=np.float32)
            expert = {k: worlds[at[k]].expert(observation[k]) for k in acting}
            if name == EXPERT:
                for k in acting:
                    action[k] = expert[k]
            elif name == RANDOM:
                action = 2 * noise - 1
            else:
                seen = Seen(*map(torch.from_numpy, (features(observation), context, action, reward)))
                action = agent.act(memory, seen, torch.from_numpy(noise)).numpy().clip(-1, 1)
            for k in acting:
                if not phase or t < s.aligned_steps:
                    taken[k, phase * s.steps_before + t] = action[k]
                if not phase:
                    fresh[k, t] = alignment(action[k], expert[k])
                elif t < s.aligned_steps:
                    cosine[k, t], arm[k, t] = alignment(action[k], expert[k]), alignment(action[k, :3], expert[k][:3])
                observation[k], earned, solved = worlds[at[k]].step(action[k])
                reward[k] = REWARD_SCALE * earned
                success[k] = phase == 1 and solved
    change = np.array([steps_to_change(own[: s.steps_before], own[s.steps_before :]) for own in taken])
    return cosine, arm, fresh, change, success


def steps_to_change(before: np.ndarray, after: np.ndarray) -> int:
    """From actions [steps, d] before and after a switch; those after the end of an episode are nan."""
    recent = before[-FIRST:]
    usual = np.linalg.norm(np.diff(recent, axis=0), axis=-1).max(initial=0.0)
    moved = np.linalg.norm(after - recent[-1], axis=-1) > usual
    return int(moved.argmax() + 1) if moved.any() else len(after)


def alignment(a: np.ndarray, b: np.ndarray) -> float:
    """The cosine of two actions; 0 if one of them is zero."""
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0
