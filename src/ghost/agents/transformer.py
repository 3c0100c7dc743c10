"""The Transformer baseline: it knows the goal, like Ghost, and sees the last 150 steps with their rewards. L steps.

It has two pre-norm encoder layers of width 128 with feed-forward 512. The published 417,538 parameters leave 162
vectors of width 128: the embeddings of observation and context (5), last action (3) and last reward (2), the 150
positions and the last normalisation (2). The paper gives no heads; we take 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Generator, Tensor, nn

from ghost.agents.history import HistoryEncoder, Memory, check_history
from ghost.data.trajectories import Seen, Sizes, Window, Windows, imitation_error
from ghost.decoders.contract import Terms, Weights
from ghost.runs.records import Run

TERMS = ("bc",)


@dataclass(frozen=True)
class Settings:
    d_model: int = 128
    d_ff: int = 512
    layers: int = 2
    heads: int = 4
    window: int = 150  # W, the steps it looks back
    stride: int = 50  # between training windows, so that the positions wrap around at different places

    def __post_init__(self) -> None:
        check_history(self)


def gather(settings: Settings, runs: Sequence[Run]) -> Windows:
    """Windows of demonstrations."""
    return Windows(runs[0], settings.window, settings.stride)


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        self.settings, self.sizes = settings, sizes
        self.history = HistoryEncoder(settings, sizes, sizes.d_action)

    def loss_terms(self, batch: Window, weights: Weights, generator: Generator | None = None) -> Terms:
        return {"bc": imitation_error(self.history(batch.seen, batch.start), batch)}

    def begin(self, agents: int) -> Memory:
        return self.history.begin(agents)

    def act(self, memory: Memory, seen: Seen, noise: Tensor) -> Tensor:
        return self.history.step(memory, seen)
