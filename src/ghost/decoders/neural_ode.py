"""Neural ODE: Ghost with an unconstrained field. B samples, d_z latent, d_e context, H horizon, d_a action.

    z^(k+1) = z^(k) + dt f(z^(k); e)        the same 5 Euler steps of 0.2, the same encoders and readout

f is one MLP 192 -> 512 -> 512 -> 64 in place of -∇U + b: no potential, so no basins by construction. 2,216,417
parameters at the paper's widths (2.2M published).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import Compressor, Mlp
from ghost.decoders.contract import Batch
from ghost.decoders.losses import imitation_terms
from ghost.dynamics.integrators import rollout
from ghost.dynamics.networks import Drift
from ghost.runs.settings import at_least_one

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
        if not self.dt > 0:
            raise ValueError(f"dt must be positive, got {self.dt}")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.compressor = Compressor(sizes.d_token, s.hidden, s.d_context)
        self.encoder = Mlp(sizes.d_state, s.hidden, s.d_latent)
        self.field = Drift(s.d_latent, s.d_context, (s.hidden, s.hidden))  # f
        self.horizon = Mlp(s.d_latent, s.hidden, sizes.horizon * s.d_latent)
        self.decode = Mlp(s.d_latent, s.hidden, sizes.d_action)

    def flow(self, batch: Batch) -> list[Tensor]:
        """z^(0), ..., z^(n), each [B, d_z]."""
        e = self.compressor(batch.tokens)
        return rollout(self.field.at(e), self.encoder(batch.state), self.settings.dt, self.settings.steps)

    def loss_terms(
        self, batch: Batch, weights: Mapping[str, float], generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return imitation_terms(self.act(batch), batch, weights)

    def act(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        u = self.horizon(self.flow(batch)[-1]).view(len(batch), self.sizes.horizon, -1)  # [B, H, d_z]
        return torch.as_tensor(self.decode(u))

    def latents(self, batch: Batch) -> Tensor:
        """The trajectory z^(0..n): [n + 1, B, d_z]."""
        return torch.stack(self.flow(batch))
