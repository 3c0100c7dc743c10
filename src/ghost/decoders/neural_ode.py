"""Neural ODE: Ghost with an unconstrained field. B samples, d_z latent, d_e context, H horizon, d_a action.

    z^(k+1) = z^(k) + dt f(z^(k); e)        the same 5 Euler steps of 0.2, the same encoders and readout

f is one MLP 192 -> 512 -> 512 -> 64 in place of -∇U + b. There is no potential, so nothing makes it have basins. At the
paper's widths it has 2,216,417 parameters (2.2M published).
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import Mlp, encoders
from ghost.decoders.contract import Batch, Terms, Weights
from ghost.decoders.losses import imitation_terms
from ghost.dynamics.integrators import rollout
from ghost.dynamics.networks import Drift
from ghost.runs.settings import at_least_one, positive

TERMS = ("bc", "distillation")


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 128
    d_latent: int = 64
    steps: int = 5
    dt: float = 0.2

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "steps")
        positive(self, "dt")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.compressor, self.encoder = encoders(s, sizes)
        self.field = Drift(s.d_latent, s.d_context, (s.hidden, s.hidden))  # f
        self.horizon = Mlp(s.d_latent, s.hidden, sizes.horizon * s.d_latent)
        self.decode = Mlp(s.d_latent, s.hidden, sizes.d_action)

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        return imitation_terms(self.act(batch), batch, weights)

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        field, start = self.field.at(self.compressor(batch.tokens)), self.encoder(batch.state)
        z = rollout(field, start, self.settings.dt, self.settings.steps)[-1]  # [B, d_z]
        u = self.horizon(z).view(len(batch), self.sizes.horizon, -1)  # [B, H, d_z]
        return torch.as_tensor(self.decode(u))
