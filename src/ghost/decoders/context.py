"""The parts that decoders share: a two-layer MLP, and the compressor from backbone tokens to the context e.

B samples, T tokens, D token dims, d_e context dims. Section IV-E: 2048 -> 512 -> 128 for each token, then attention
pooling, here by one learned query: the score of a token is a linear map 128 -> 1 with bias, which together with the
other widths gives the paper's count of parameters exactly. SiLU throughout; the paper names it for the potential only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def drop(x: Tensor, p: float, generator: torch.Generator | None) -> Tensor:
    """Dropout from a generator of our own; nn.Dropout knows the global one only."""
    keep = torch.empty_like(x).bernoulli_(1 - p, generator=generator)
    return x * keep / (1 - p)


class Mlp(nn.Module):
    """d_in -> hidden -> d_out with SiLU, and dropout on the hidden layer while training."""

    def __init__(self, d_in: int, hidden: int, d_out: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.first = nn.Linear(d_in, hidden)
        self.second = nn.Linear(hidden, d_out)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        x = nn.functional.silu(self.first(x))
        if self.training and self.dropout > 0:
            x = drop(x, self.dropout, generator)
        return torch.as_tensor(self.second(x))


class Compressor(nn.Module):
    """Backbone tokens [B, T, D] -> context e [B, d_e]."""

    def __init__(self, d_token: int, hidden: int, d_context: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.compress = Mlp(d_token, hidden, d_context, dropout=dropout)
        self.score = nn.Linear(d_context, 1)

    def forward(self, tokens: Tensor, generator: torch.Generator | None = None) -> Tensor:
        x = self.compress(tokens, generator)  # [B, T, d_e]
        attention = self.score(x).softmax(dim=1)  # [B, T, 1]
        return torch.matmul(attention.transpose(1, 2), x).squeeze(1)  # [B, d_e]
