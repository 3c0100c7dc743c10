"""Trajectories that agents learn from, and windows of them as batches. N episodes, T steps, B windows, L steps each.

Trajectories are the arrays of a run, which `ghost.steps.make_demos` writes:

    observation [N, T, d_o]   context [N, T, d_c]   action [N, T, d_a]   reward [N, T]   length [N]
    target [N, T, d_a]        the right action, where it is not the one taken (an expert with noise)

A step holds what the agent knew before it acted: observation, context, last action and last reward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ghost.errors import GhostError
from ghost.runs.records import Run

AXES = {"observation": 3, "context": 3, "action": 3, "target": 3, "reward": 2, "length": 1}


@dataclass(frozen=True)
class Sizes:
    """The widths for which an agent is built. The Dark Room: 2, 2, 2. Meta-World: 51, the number of tasks, 4."""

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

    def map(self, function: Callable[[Tensor], Tensor]) -> Seen:
        """The function of each of the tensors."""
        return Seen(*map(function, vars(self).values()))

    def without_context(self) -> Seen:
        """For an agent that does not know the goal or the task: a context of zeros."""
        return replace(self, context=torch.zeros_like(self.context))


@dataclass(frozen=True)
class Window:
    """L steps from each of B episodes, with the right action at each."""

    seen: Seen
    target: Tensor  # [B, L, d_a]
    valid: Tensor  # [B, L] bool: false past an episode's end
    start: Tensor  # [B] int64: the window's first step in its episode

    def __len__(self) -> int:
        return len(self.start)


class Windows:
    """The samples of the training loop: all windows of `length` steps that begin every `stride` steps."""

    def __init__(self, run: Run, length: int, stride: int, device: str = "cpu") -> None:
        arrays = {name: torch.from_numpy(array).to(device) for name, array in _checked(run).items()}
        self.device, self.length = device, length
        self.observation, self.context = arrays["observation"], arrays["context"]
        self.action, self.reward = arrays["action"], arrays["reward"]
        self.target = arrays.get("target", self.action)
        self.lengths = arrays["length"]
        self.sizes = Sizes(self.observation.shape[-1], self.context.shape[-1], self.action.shape[-1])
        found = [(n, t) for n, end in enumerate(self.lengths.tolist()) for t in range(0, end, stride)]
        self.episodes, self.starts = (torch.tensor(column, device=device) for column in zip(*found, strict=True))
        self.episode = self.episodes.cpu().numpy()

    def __len__(self) -> int:
        return len(self.starts)

    def places(self) -> Tensor:
        return torch.arange(len(self), device=self.device)

    def prepare(self, decoder: torch.nn.Module, generator: torch.Generator, done: float) -> None:
        """Nothing to do before an epoch: these samples stay the same."""

    def arranged(self, order: Tensor) -> Tensor:
        """The places of an epoch: all are in memory, where any order will do."""
        return order

    def batch(self, places: Tensor) -> Window:
        """The windows at these places [B]."""
        n, start = self.episodes[places, None], self.starts[places]
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


def _checked(run: Run) -> dict[str, np.ndarray]:
    """The arrays of a run, refused if they are no trajectories."""
    arrays = run.arrays()
    n, t = arrays["reward"].shape if "reward" in arrays and arrays["reward"].ndim == 2 else (0, 0)
    for name, axes in AXES.items():
        found = arrays.get(name, np.zeros(0))
        if name == "target" and name not in arrays:
            continue
        kinds, shape = "iu" if name == "length" else "f", (n, t)[:axes]
        right = found.ndim == axes and found.shape[:2] == shape and found.dtype.kind in kinds
        if not (n and right and np.isfinite(found).all()):
            raise GhostError(f"{run.name} has no trajectories: {name} must hold finite numbers of {n} episodes")
    if not (arrays["length"].min() >= 1 and arrays["length"].max() <= t):
        raise GhostError(f"{run.name} has no trajectories: the lengths are not 1 to {t} steps")
    return arrays


def imitation_error(predicted: Tensor, window: Window) -> Tensor:
    """The mean squared error over the steps before the episodes' ends."""
    error = (predicted - window.target).square().mean(dim=-1)  # [B, L]
    return (error * window.valid).sum() / window.valid.sum()


def pack(episodes: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Episodes of unequal length [T_n, ...] as arrays [N, T, ...] with zeros past an end, and their lengths."""
    lengths = np.array([len(episode["reward"]) for episode in episodes])
    packed = {"length": lengths}
    for name, first in episodes[0].items():
        packed[name] = np.zeros((len(episodes), lengths.max(), *first.shape[1:]), np.float32)
        for n, episode in enumerate(episodes):
            packed[name][n, : lengths[n]] = episode[name]
    return packed
