"""The learned potential U_θ(z; c) and drift b_θ(z; c). B samples, d_z latent, d_c context dimensions.

The gradient of U is written out by hand, a backward chain through the layers, because it is the decoder's
forward pass: it runs without autograd at inference, and training differentiates through it like through any
other layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Potential(nn.Module):
    """A scalar MLP with SiLU: [z; c] -> hidden -> ... -> 1."""

    def __init__(self, d_z: int, d_c: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.d_z = d_z
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([d_z + d_c, *hidden]))
        self.out = nn.Linear([d_z + d_c, *hidden][-1], 1)

    def forward(self, z: Tensor, c: Tensor) -> Tensor:
        x = torch.cat([z, c], dim=-1)  # [B, d_z + d_c]
        for layer in self.hidden:
            x = nn.functional.silu(layer(x))
        return torch.as_tensor(self.out(x)).squeeze(-1)  # [B]

    def gradient(self, z: Tensor, c: Tensor) -> Tensor:
        """∇_z U [B, d_z] in closed form."""
        x = torch.cat([z, c], dim=-1)
        slopes = []  # SiLU'(u) = s + u s (1 - s) of every hidden layer, [B, width] each
        for layer in self.hidden:
            u = layer(x)
            s = torch.sigmoid(u)
            x = u * s
            slopes.append(s + x * (1 - s))  # plain operations, so autograd has SiLU'' right
        chain = self.out.weight.expand(len(z), -1)  # dU/dx, from the last layer down
        for layer, slope in zip(reversed(self.hidden), reversed(slopes), strict=True):
            chain = (chain * slope) @ layer.weight
        return chain[:, : self.d_z]


class Drift(nn.Module):
    """A vector MLP with SiLU: [z; c] -> hidden -> ... -> d_z."""

    def __init__(self, d_z: int, d_c: int, hidden: Sequence[int]) -> None:
        super().__init__()
        widths = [d_z + d_c, *hidden]
        layers: list[nn.Module] = []
        for a, b in pairwise(widths):
            layers += [nn.Linear(a, b), nn.SiLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], d_z))

    def forward(self, z: Tensor, c: Tensor) -> Tensor:
        return torch.as_tensor(self.layers(torch.cat([z, c], dim=-1)))  # [B, d_z]
