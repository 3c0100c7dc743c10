"""The learned potential U_θ(z; c) and drift b_θ(z; c). B samples, d_z latent, d_c context dimensions.

Along a flow only z moves and the context stays. So `at(c)` gives the landscape at a context: it computes c's part of
the first layer, the widest input, once for all steps.

The gradient of U is written out by hand, as a backward chain through the layers, because it is the decoder's forward
pass: inference runs it without autograd, and training differentiates through it as through any other layer.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


class FirstLayer:
    """A layer on [z; c] at a given context: W_z z + (W_c c + bias)."""

    def __init__(self, layer: nn.Linear, c: Tensor) -> None:
        d_z = layer.in_features - c.shape[-1]
        self.weight = layer.weight[:, :d_z]  # W_z [width, d_z]
        self.offset = nn.functional.linear(c, layer.weight[:, d_z:], layer.bias)  # [B, width]

    def __call__(self, z: Tensor) -> Tensor:
        return torch.addmm(self.offset, z, self.weight.T)


class Landscape:
    """U(.; c) at given contexts [B, d_c]."""

    def __init__(self, layers: Sequence[nn.Linear], c: Tensor) -> None:
        self.first, self.rest = FirstLayer(layers[0], c), layers[1:]

    def __call__(self, z: Tensor) -> Tensor:
        return forward(self.first, self.rest, z).squeeze(-1)  # [B]

    def gradient(self, z: Tensor) -> Tensor:
        """∇_z U [B, d_z] in closed form."""
        u = self.first(z)
        slopes = []  # SiLU'(u) = s + u s (1 - s), for every hidden layer [B, width]
        for layer in self.rest:
            s = torch.sigmoid(u)
            x = u * s
            slopes.append(s + x * (1 - s))  # plain operations, so that autograd gets SiLU'' right
            u = layer(x)
        *weights, last = self.first.weight, *(layer.weight for layer in self.rest)
        chain = last.expand(len(z), -1)  # dU/dx, from the last layer down
        for weight, slope in zip(reversed(weights), reversed(slopes), strict=True):
            chain = (chain * slope) @ weight
        return chain


def forward(first: FirstLayer, rest: Sequence[nn.Linear], z: Tensor) -> Tensor:
    x = first(z)
    for layer in rest:
        x = layer(nn.functional.silu(x))
    return x


class Potential(nn.Module):
    """A scalar MLP with SiLU: [z; c] -> hidden -> ... -> 1."""

    def __init__(self, d_z: int, d_c: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers: Sequence[nn.Linear] = linear_layers(d_z + d_c, *hidden, 1)

    def at(self, c: Tensor) -> Landscape:
        return Landscape(self.layers, c)

    def forward(self, z: Tensor, c: Tensor) -> Tensor:
        return self.at(c)(z)  # [B]

    def gradient(self, z: Tensor, c: Tensor) -> Tensor:
        return self.at(c).gradient(z)  # [B, d_z]


class Drift(nn.Module):
    """A vector MLP with SiLU: [z; c] -> hidden -> ... -> d_z."""

    def __init__(self, d_z: int, d_c: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers: Sequence[nn.Linear] = linear_layers(d_z + d_c, *hidden, d_z)

    def at(self, c: Tensor) -> Callable[[Tensor], Tensor]:
        """b(.; c) at given contexts [B, d_c]."""
        return partial(forward, FirstLayer(self.layers[0], c), self.layers[1:])

    def forward(self, z: Tensor, c: Tensor) -> Tensor:
        return self.at(c)(z)  # [B, d_z]


def linear_layers(*widths: int) -> Any:
    return nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
