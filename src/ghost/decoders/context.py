"""The parts that decoders share: a two-layer MLP, and the compressor from backbone tokens to the context e.

B samples, T tokens, D token dims, d_e context dims. Section IV-E: each token goes through 2048 -> 512 -> 128, then
attention pools the tokens. The paper does not say how it pools. Here one learned query does: the score of a token is a
linear map 128 -> 1 with a bias. With these widths the count of parameters is exactly the paper's. All activations are
SiLU; the paper names SiLU for the potential only.
"""

from typing import Any

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes


def drop(x: Tensor, p: float, generator: Generator | None, *, training: bool = True) -> Tensor:
    """Dropout that draws from the given generator. nn.Dropout can use the global one only."""
    if p == 0 or not training:
        return x
    keep = torch.empty_like(x).bernoulli_(1 - p, generator=generator)
    return x * keep / (1 - p)


class Mlp(nn.Module):
    """d_in -> hidden -> d_out with SiLU, and dropout on the hidden layer while training."""

    def __init__(self, d_in: int, hidden: int, d_out: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.first = nn.Linear(d_in, hidden)
        self.second = nn.Linear(hidden, d_out)

    def forward(self, x: Tensor, generator: Generator | None = None) -> Tensor:
        x = drop(nn.functional.silu(self.first(x)), self.dropout, generator, training=self.training)
        return torch.as_tensor(self.second(x))


class Compressor(nn.Module):
    """Backbone tokens [B, T, D] -> context e [B, d_e]."""

    def __init__(self, d_token: int, hidden: int, d_context: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.compress = Mlp(d_token, hidden, d_context, dropout=dropout)
        self.score = nn.Linear(d_context, 1)

    def forward(self, tokens: Tensor, generator: Generator | None = None) -> Tensor:
        x = self.compress(tokens, generator)  # [B, T, d_e]
        attention = self.score(x).softmax(dim=1)  # [B, T, 1]
        return torch.matmul(attention.transpose(1, 2), x).squeeze(1)  # [B, d_e]


def encoders(settings: Any, sizes: Sizes, *, dropout: float = 0.0) -> tuple[Compressor, Mlp]:
    """The two encoders of most decoders, with Ghost's widths: of the tokens, and E of the state."""
    s = settings
    return (
        Compressor(sizes.d_token, s.hidden, s.d_context, dropout=dropout),
        Mlp(sizes.d_state, s.hidden, s.d_latent),
    )
