"""Transformer: action queries cross-attend to the backbone's tokens, after ACT. B samples, T tokens, H horizon, d dims.

    memory  = [project(tokens) + positions; project(state)]      [B, T + 1, d]
    x       = H learned queries; per layer self-attention, cross-attention to the memory, feed-forward (pre-norm)
    actions = out(norm(x))                                       one query gives one action

It has no CVAE encoder, unlike ACT: the paper lists the CVAE as another decoder. At these widths it has 2,020,896
parameters (2.0M published). The paper gives no width, depth or heads.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.attention import Attention
from ghost.decoders.contract import Batch, Terms, Weights
from ghost.decoders.losses import imitation_terms
from ghost.runs.settings import at_least_one

TERMS = ("bc", "distillation")


@dataclass(frozen=True)
class Settings:
    d_model: int = 256
    hidden: int = 384  # of the feed-forward layers; narrow, because projecting the tokens takes a quarter of the budget
    layers: int = 2
    heads: int = 8

    def __post_init__(self) -> None:
        at_least_one(self, "d_model", "hidden", "layers", "heads")
        if self.d_model % self.heads:
            raise ValueError(f"d_model must be a multiple of heads, got {self.d_model} and {self.heads}")


class Layer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        d = settings.d_model
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.itself = Attention(d, settings.heads, d)
        self.cross = Attention(d, settings.heads, d)
        self.feed_forward = nn.Sequential(nn.Linear(d, settings.hidden), nn.SiLU(), nn.Linear(settings.hidden, d))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        y = self.norms[0](x)
        x = x + self.itself(y, y)
        x = x + self.cross(self.norms[1](x), memory)
        return x + torch.as_tensor(self.feed_forward(self.norms[2](x)))


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.project_tokens = nn.Linear(sizes.d_token, s.d_model)
        self.project_state = nn.Linear(sizes.d_state, s.d_model)
        self.positions = nn.Parameter(0.02 * torch.randn(sizes.tokens, s.d_model))
        self.queries = nn.Parameter(0.02 * torch.randn(sizes.horizon, s.d_model))
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.layers))
        self.norm = nn.LayerNorm(s.d_model)
        self.out = nn.Linear(s.d_model, sizes.d_action)

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        return imitation_terms(self.act(batch), batch, weights)

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        tokens = self.project_tokens(batch.tokens) + self.positions
        memory = torch.cat([tokens, self.project_state(batch.state)[:, None]], dim=1)  # [B, T + 1, d]
        x = self.queries.expand(len(batch), -1, -1)  # [B, H, d]
        for layer in self.layers:
            x = layer(x, memory)
        return torch.as_tensor(self.out(self.norm(x)))
