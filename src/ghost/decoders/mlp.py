"""MLP: a direct map from context and state to the action chunk. B samples, d_e context, H horizon, d_a action.

    [e; E(state)] -> 512 -> 512 -> 512 -> H d_a

The paper says "direct mapping" and 2.1M parameters. These widths, with Ghost's encoders, give 2,084,193.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import encoders
from ghost.decoders.contract import Batch, Terms, Weights
from ghost.decoders.losses import imitation_terms
from ghost.dynamics.networks import linear_layers
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
        self.compressor, self.encoder = encoders(s, sizes)
        self.trunk = linear_layers(s.d_context + s.d_latent, *[s.hidden] * s.layers)
        self.out = nn.Linear(s.hidden, sizes.horizon * sizes.d_action)

    def latent(self, batch: Batch) -> Tensor:
        """The last hidden layer [B, hidden]. The evaluations compare it with Ghost's z*."""
        x = torch.cat([self.compressor(batch.tokens), self.encoder(batch.state)], dim=-1)
        for layer in self.trunk:
            x = nn.functional.silu(layer(x))
        return x

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        return imitation_terms(self.act(batch), batch, weights)

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        return torch.as_tensor(self.out(self.latent(batch))).view(len(batch), self.sizes.horizon, -1)
