"""What agents learn from: trajectories, and windows of them as batches. N episodes, T steps, B windows, L steps each.

Trajectories are the arrays of a run (`ghost.steps.make_demos` writes them):

    observation [N, T, d_o]   context [N, T, d_c]   action [N, T, d_a]   reward [N, T]   length [N]
    target [N, T, d_a]        what should have been done, where that is not what was done (an expert with noise)

A step shows what the agent knew before it acted: observation, context, and its last action and reward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ghost.runs.records import Run


@dataclass(frozen=True)
class Sizes:
    """What an agent must be built for. The Dark Room: 2, 2, 2; Meta-World: 39, the number of tasks, 4."""

    d_observation: int  # d_o
    d_context: int  # d_c
    d_action: int  # d_a


@dataclass(frozen=True)
class Seen:
    """What agents know before they act: one step [B, ...], or windows of L steps [B, L, ...]."""

    observation: Tensor  # [B, (L,) d_o]
    context: Tensor  # [B, (L,) d_c]: the goal or the task
    last_action: Tensor  # [B, (L,) d_a], zero before the first step
    last_reward: Tensor  # [B, (L,)], likewise


@dataclass(frozen=True)
class Window:
    """L steps from each of B episodes, with what to do at each."""

    seen: Seen
    target: Tensor  # [B, L, d_a]
    valid: Tensor  # [B, L] bool: false past an episode's end
    start: Tensor  # [B] int64: the window's first step in its episode

    def __len__(self) -> int:
        return len(self.start)


class Windows:
    """All windows of `length` steps that begin every `stride` steps; the samples of `ghost.steps.train.Fit`."""

    def __init__(self, run: Run, length: int, stride: int, device: str = "cpu") -> None:
        arrays = {name: torch.from_numpy(array).to(device) for name, array in run.arrays().items()}
        self.device, self.length = device, length
        self.observation, self.context = arrays["observation"], arrays["context"]
        self.action, self.reward = arrays["action"], arrays["reward"]
        self.target = arrays.get("target", self.action)
        self.lengths = arrays["length"]
        self.sizes = Sizes(self.observation.shape[-1], self.context.shape[-1], self.action.shape[-1])
        places = [(n, t) for n, end in enumerate(self.lengths.tolist()) for t in range(0, end, stride)]
        self.episodes, self.starts = (torch.tensor(column, device=device) for column in zip(*places, strict=True))
        self.episode = self.episodes.cpu().numpy()

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self) -> Tensor:
        return torch.arange(len(self), device=self.device)

    def prepare(self, decoder: torch.nn.Module, generator: torch.Generator, done: float) -> None:
        """Nothing: these samples stay as they are, whatever the agent has learnt."""

    def batch(self, rows: Tensor) -> Window:
        """The windows at these places [B]."""
        n, start = self.episodes[rows, None], self.starts[rows]
        t = start[:, None] + torch.arange(self.length, device=self.device)  # [B, L]
        valid = t < self.lengths[n]
        t = t.clamp(max=self.observation.shape[1] - 1)
        before = (t - 1).clamp(min=0)
        began = (t > 0)[..., None]
        seen = Seen(
            self.observation[n, t],
            self.context[n, t],
            self.action[n, before] * began,
            self.reward[n, before] * began[..., 0],
        )
        return Window(seen, self.target[n, t], valid, start)


def imitation_error(predicted: Tensor, window: Window) -> Tensor:
    """Mean squared error over the steps that an episode has."""
    error = (predicted - window.target).square().mean(dim=-1)  # [B, L]
    return (error * window.valid).sum() / window.valid.sum()


def pack(episodes: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Episodes of unequal length [T_n, ...] as arrays [N, T, ...], zeros past an end, and their lengths."""
    lengths = np.array([len(episode["reward"]) for episode in episodes])
    packed = {"length": lengths}
    for name, first in episodes[0].items():
        packed[name] = np.zeros((len(episodes), lengths.max(), *first.shape[1:]), np.float32)
        for n, episode in enumerate(episodes):
            packed[name][n, : lengths[n]] = episode[name]
    return packed
