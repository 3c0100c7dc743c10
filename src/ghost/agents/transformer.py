"""The Transformer baseline: told the goal like Ghost, and it sees the last 150 steps with their rewards. L steps.

Two pre-norm encoder layers of width 128, feed-forward 512. Embeddings of observation and context (5 rows of 128), last
action (3), last reward (2), 150 positions and the last normalisation (2) are the 162 rows that the published 417,538
parameters leave. Heads are not published: 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ghost.agents.history import HistoryEncoder, Memory
from ghost.data.trajectories import Seen, Sizes, Window, Windows, imitation_error
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one

TERMS = ("bc",)


@dataclass(frozen=True)
class Settings:
    d_model: int = 128
    d_ff: int = 512
    layers: int = 2
    heads: int = 4
    window: int = 150  # W, the steps it looks back
    stride: int = 50  # between windows of training: positions wrap around at different places

    def __post_init__(self) -> None:
        at_least_one(self, "d_model", "d_ff", "layers", "heads", "window", "stride")
        if self.d_model % self.heads:
            raise ValueError(f"d_model = {self.d_model} must be a multiple of heads = {self.heads}")


def gather(settings: Settings, runs: Sequence[Run], seed: int) -> Windows:
    """Windows of demonstrations."""
    return Windows(runs[0], settings.window, settings.stride)


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.history = HistoryEncoder(
            sizes, sizes.d_action, d=s.d_model, heads=s.heads, d_ff=s.d_ff, layers=s.layers, window=s.window
        )

    def loss_terms(
        self, batch: Window, weights: Mapping[str, float], generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {"bc": imitation_error(self.history(batch.seen, batch.start), batch)}

    def begin(self, agents: int) -> Memory:
        return self.history.begin(agents)

    def act(self, memory: Memory, seen: Seen, noise: Tensor) -> Tensor:
        return self.history.step(memory, seen)
