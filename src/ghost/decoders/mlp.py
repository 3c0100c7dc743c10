"""MLP: the direct map from context and state to the action chunk. B samples, d_e context, H horizon, d_a action.

    [e; E(state)] -> 512 -> 512 -> 512 -> H d_a

The paper says "direct mapping" and 2.1M parameters; these widths, with Ghost's compressor and state encoder, give
2,084,193.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import Compressor, Mlp
from ghost.decoders.contract import Batch
from ghost.decoders.losses import imitation_terms
from ghost.runs.settings import at_least_one

TERMS = ("bc", "distillation")


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 128
    d_latent: int = 64  # the encoded state, as wide as Ghost's latent
    layers: int = 3  # hidden layers between the inputs and the chunk

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "layers")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.compressor = Compressor(sizes.d_token, s.hidden, s.d_context)
        self.encoder = Mlp(sizes.d_state, s.hidden, s.d_latent)
        widths = [s.d_context + s.d_latent, *[s.hidden] * s.layers]
        self.trunk = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.out = nn.Linear(s.hidden, sizes.horizon * sizes.d_action)

    def latent(self, batch: Batch) -> Tensor:
        """The last hidden layer [B, hidden]: what this decoder has in place of z*."""
        x = torch.cat([self.compressor(batch.tokens), self.encoder(batch.state)], dim=-1)
        for layer in self.trunk:
            x = nn.functional.silu(layer(x))
        return x

    def loss_terms(
        self, batch: Batch, weights: Mapping[str, float], generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return imitation_terms(self.act(batch), batch, weights)

    def act(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        return torch.as_tensor(self.out(self.latent(batch))).view(len(batch), self.sizes.horizon, -1)

    def latents(self, batch: Batch) -> Tensor:
        """One static latent, no trajectory: [1, B, hidden]."""
        return self.latent(batch)[None]
