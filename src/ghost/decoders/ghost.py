"""Ghost: the latent falls into a basin of a learned potential. B samples, d_z latent, d_e context, H horizon, d_a act.

    e      = compressor(tokens)                                 what the backbone sees, and its instruction
    z^(0)  = E(state)
    z^(k+1)= z^(k) + dt (-∇U(z^(k); e) + b(z^(k); e))           Phase I, eq. (phase1), `steps` times
    a_1:H  = decode(horizon(z^(n)))

The dual-phase variant adds `refinement_steps` of a dissipative Hamiltonian flow, eqs. (phase2_p) and (phase2_z), which
starts at rest: 3 + 2 steps in the paper. It has a potential V and a force φ of its own, which also see the state. The
state reaches them through a second encoder 64 -> 512 -> 64: with it the count is the published 2.94M, without it
2.87M. At the paper's widths the single-phase decoder has 2,315,746 parameters.

∇U is in closed form in training too, so there is no graph inside the graph. Dropout acts on the hidden layers of the
compressor and the readout. It does not act on U or b, because every step of one flow must see the same landscape.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import Mlp, encoders
from ghost.decoders.contract import Batch, Terms, Weights
from ghost.decoders.losses import imitation_terms, nt_xent
from ghost.dynamics.integrators import hamiltonian, rollout
from ghost.dynamics.networks import Drift, Potential
from ghost.runs.settings import at_least_one, below_one, not_negative, positive

TERMS = ("bc", "distillation", "contrastive", "basin")


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 128  # d_e
    d_latent: int = 64  # d_z
    potential_layers: int = 2  # hidden ones, of U
    drift_layers: int = 1  # of b
    steps: int = 5  # n_1
    dt: float = 0.2
    refinement_steps: int = 0  # n_2; 0: single-phase
    refinement_dt: float = 0.1
    damping: float = 0.5  # η
    mass: float = 1.0  # m
    temperature: float = 0.1  # of NT-Xent; the paper gives none
    dropout: float = 0.0

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "potential_layers", "drift_layers", "steps")
        positive(self, "dt", "refinement_dt", "mass", "temperature")
        not_negative(self, "refinement_steps", "damping")
        below_one(self, "dropout")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.compressor, self.encoder = encoders(s, sizes, dropout=s.dropout)
        self.potential = Potential(s.d_latent, s.d_context, (s.hidden,) * s.potential_layers)  # U
        self.drift = Drift(s.d_latent, s.d_context, (s.hidden,) * s.drift_layers)  # b
        self.horizon = Mlp(s.d_latent, s.hidden, sizes.horizon * s.d_latent, dropout=s.dropout)
        self.decode = Mlp(s.d_latent, s.hidden, sizes.d_action, dropout=s.dropout)
        if s.refinement_steps:
            d_xi = s.d_context + s.d_latent  # ξ = (e, encoded state)
            self.refinement_encoder = Mlp(sizes.d_state, s.hidden, s.d_latent)
            self.refinement_potential = Potential(s.d_latent, d_xi, (s.hidden, s.hidden))  # V
            self.force = Drift(s.d_latent, d_xi, (s.hidden,))  # φ

    def context(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        """e [B, d_e], which shapes the landscape."""
        return torch.as_tensor(self.compressor(batch.tokens, generator))

    def field(self, e: Tensor) -> Callable[[Tensor], Tensor]:
        """dz/dt = -∇U + b of Phase I, at the context e."""
        potential, drift = self.potential.at(e), self.drift.at(e)
        return lambda z: drift(z) - potential.gradient(z)

    def flow(self, state: Tensor, e: Tensor) -> list[Tensor]:
        """z^(0), ..., z^(n) of both phases, each [B, d_z]. The last is z*."""
        s = self.settings
        z = rollout(self.field(e), self.encoder(state), s.dt, s.steps)
        if s.refinement_steps:
            xi = torch.cat([e, self.refinement_encoder(state)], dim=-1)
            grad_V, phi = self.refinement_potential.at(xi).gradient, self.force.at(xi)
            p = torch.zeros_like(z[-1])
            for _ in range(s.refinement_steps):
                latent, p = hamiltonian(grad_V, phi, z[-1], p, s.refinement_dt, s.damping, s.mass)
                z.append(latent)
        return z

    def readout(self, z: Tensor, generator: Generator | None = None) -> Tensor:
        """The action chunk [B, H, d_a] of any latent [B, d_z]."""
        u = self.horizon(z, generator).view(len(z), self.sizes.horizon, -1)  # [B, H, d_z]
        return torch.as_tensor(self.decode(u, generator))

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        e = self.context(batch, generator)
        z = self.flow(batch.state, e)[-1]
        terms = imitation_terms(self.readout(z, generator), batch, weights)
        if weights.get("contrastive"):
            terms["contrastive"] = nt_xent(z, batch.task, temperature=self.settings.temperature)
        if weights.get("basin"):
            terms["basin"] = self.potential.gradient(z, e).square().sum(dim=-1).mean()
        return terms

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        return self.readout(self.flow(batch.state, self.context(batch, generator))[-1], generator)

    def latents(self, batch: Batch) -> Tensor:
        """The whole trajectory z^(0..n): [n + 1, B, d_z]."""
        return torch.stack(self.flow(batch.state, self.context(batch)))

    def gradient_norms(self, batch: Batch) -> Tensor:
        """|∇U(z^(k); e)| along the trajectory: [n + 1, B]."""
        return self._norms(batch, lambda e: self.potential.at(e).gradient)

    def drift_norms(self, batch: Batch) -> Tensor:
        """|b(z^(k); e)| along the trajectory: [n + 1, B]."""
        return self._norms(batch, self.drift.at)

    def _norms(self, batch: Batch, part: Callable[[Tensor], Callable[[Tensor], Tensor]]) -> Tensor:
        e = self.context(batch)
        field = part(e)
        return torch.stack([field(z).norm(dim=-1) for z in self.flow(batch.state, e)])
