"""Algorithm Distillation: predicts the next action of a learner from the learner's history. B agents, L steps.

It is shown histories of a reinforcement-learning algorithm (`ghost.data.learning_histories`), which explores, finds the
goal and stays there, and learns to do what the algorithm would do next. It is not told the goal: the context is held at
zero (`told`), and what it knows of the goal are the rewards of the last 176 steps. A learner that explores draws its
moves, so the agent predicts a distribution, `bins` values along each axis, and draws from it. Where it imitates an
expert instead (Meta-World), which draws nothing, it takes the mean (`draw`). It drew there too until a first look at
ML10, where its first actions were hardly better aligned than random ones.

The network is the Transformer's. The published 421,378 parameters leave 192 rows of 128 beside two outputs; a
distribution over three moves along each axis has six, so four rows of positions less: 176 steps, 421,382 parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ghost.agents.history import HistoryEncoder, Memory
from ghost.data.trajectories import Seen, Sizes, Window, Windows
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one

TERMS = ("bc",)


@dataclass(frozen=True)
class Settings:
    d_model: int = 128
    d_ff: int = 512
    layers: int = 2
    heads: int = 4
    window: int = 176  # W, the steps it looks back
    stride: int = 62  # between windows of training
    bins: int = 3  # values that an action may have along each axis, evenly from -1 to 1
    told: bool = False  # the goal or the task
    draw: bool = True  # its actions; else their mean

    def __post_init__(self) -> None:
        at_least_one(self, "d_model", "d_ff", "layers", "heads", "window", "stride")
        if self.d_model % self.heads:
            raise ValueError(f"d_model = {self.d_model} must be a multiple of heads = {self.heads}")
        if self.bins < 2:
            raise ValueError(f"bins must be at least 2, got {self.bins}")


def gather(settings: Settings, runs: Sequence[Run], seed: int) -> Windows:
    """Windows of learning histories."""
    return Windows(runs[0], settings.window, settings.stride)


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        outputs = sizes.d_action * s.bins
        self.history = HistoryEncoder(
            sizes, outputs, d=s.d_model, heads=s.heads, d_ff=s.d_ff, layers=s.layers, window=s.window
        )

    def told(self, seen: Seen) -> Seen:
        return seen if self.settings.told else replace(seen, context=torch.zeros_like(seen.context))

    def loss_terms(
        self, batch: Window, weights: Mapping[str, float], generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        bins = self.settings.bins
        logits = self.history(self.told(batch.seen), batch.start).unflatten(-1, (-1, bins))  # [B, L, d_a, bins]
        done = ((batch.target.clamp(-1, 1) + 1) / 2 * (bins - 1)).round().long()  # [B, L, d_a]
        surprise = nn.functional.cross_entropy(logits.movedim(-1, 1), done, reduction="none").mean(dim=-1)  # [B, L]
        return {"bc": (surprise * batch.valid).sum() / batch.valid.sum()}

    def begin(self, agents: int) -> Memory:
        return self.history.begin(agents)

    def act(self, memory: Memory, seen: Seen, noise: Tensor) -> Tensor:
        logits = self.history.step(memory, self.told(seen)).view(len(noise), -1, self.settings.bins)
        chances = logits.softmax(dim=-1)  # [B, d_a, bins]
        if not self.settings.draw:
            return chances @ torch.linspace(-1, 1, self.settings.bins, device=noise.device)
        drawn = (noise[..., None] > chances.cumsum(dim=-1)).sum(dim=-1).clamp(max=self.settings.bins - 1)  # [B, d_a]
        return torch.as_tensor(2 * drawn / (self.settings.bins - 1) - 1)
