"""Algorithm Distillation: predicts the next action of a learning algorithm from its history. B agents, L steps.

It learns from histories of a reinforcement-learning algorithm (`ghost.data.learning_histories`). Only the rewards of
the last 176 steps hint at the goal: its context is zero (unless `told`). An algorithm that explores draws its moves, so
the agent predicts a distribution, `bins` values along each axis, and draws from it. Where it imitates an expert that
draws nothing (Meta-World), it takes the mean (`draw`). It drew there too until a first look at ML10, where its first
actions were hardly better aligned than random ones.

The network is the Transformer's. The published 421,378 parameters leave 192 vectors of width 128 beside two outputs. A
distribution over three moves along each axis has six outputs, so there are four positions fewer: 176 steps, 421,382
parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.agents.bins import draw_action, nearest_bin
from ghost.agents.history import HistoryEncoder, Memory, check_history
from ghost.data.trajectories import Seen, Sizes, Window, Windows
from ghost.decoders.contract import Terms, Weights
from ghost.runs.records import Run
from ghost.runs.settings import at_least

TERMS = ("bc",)


@dataclass(frozen=True)
class Settings:
    d_model: int = 128
    d_ff: int = 512
    layers: int = 2
    heads: int = 4
    window: int = 176  # W, the steps it looks back
    stride: int = 62  # between training windows
    bins: int = 3  # values that an action may have along each axis
    told: bool = False  # whether it knows the goal or the task
    draw: bool = True  # whether it draws its actions; else it takes their mean

    def __post_init__(self) -> None:
        check_history(self)
        at_least(2, self, "bins")


def gather(settings: Settings, runs: Sequence[Run]) -> Windows:
    """Windows of learning histories."""
    return Windows(runs[0], settings.window, settings.stride)


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        self.settings, self.sizes = settings, sizes
        self.history = HistoryEncoder(settings, sizes, sizes.d_action * settings.bins)

    def loss_terms(self, batch: Window, weights: Weights, generator: Generator | None = None) -> Terms:
        bins = self.settings.bins
        logits = self.history(self.known(batch.seen), batch.start).unflatten(-1, (-1, bins))  # [B, L, d_a, bins]
        done = nearest_bin(batch.target, bins)  # [B, L, d_a]
        surprise = nn.functional.cross_entropy(logits.movedim(-1, 1), done, reduction="none").mean(dim=-1)  # [B, L]
        return {"bc": (surprise * batch.valid).sum() / batch.valid.sum()}

    def begin(self, agents: int) -> Memory:
        return self.history.begin(agents)

    def act(self, memory: Memory, seen: Seen, noise: Tensor) -> Tensor:
        logits = self.history.step(memory, self.known(seen)).view(len(noise), -1, self.settings.bins)
        chances = logits.softmax(dim=-1)  # [B, d_a, bins]
        if self.settings.draw:
            return draw_action(chances, noise)
        return chances @ torch.linspace(-1, 1, self.settings.bins, device=noise.device)

    def known(self, seen: Seen) -> Seen:
        """The part of `seen` that this agent knows."""
        return seen if self.settings.told else seen.without_context()
