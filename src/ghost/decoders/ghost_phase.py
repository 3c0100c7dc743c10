"""Ghost PG: Ghost whose landscape depends on an inferred sub-phase. Also: a persistent z, and other attractors.

    e'      = FiLM(e; p)                          p: the phase inferred from e and state, see `phase.py`
    z_init  = E(state)
    z_start = f_mix([z_prev; z_init])             persistent: z_prev is the last chunk's z*, or z_init if there is none
    z^(k+1) = z^(k) + dt (-∇U(z^(k); e') + b(z^(k); e'))
    a_1:H   = decode(horizon(z^(n)))

`persistent` adds f_mix, a linear map with d_z (2 d_z + 1) = 8,256 parameters. It is trained on windows of sequential
chunks and starts as the mean of its two inputs. The variants of the attractor, for tab:attractor_tradeoff:

    contrastive   (a loss)  NT-Xent on z* by task, which pushes the tasks' basins apart
    pull          (a loss)  |z^(k) - c_p|² along the flow, to a learned anchor c_p of the true phase p
    basin_dims    U alone moves the first dimensions of z (16 of 64), the drift alone moves the others
    quartic       U = |z - c(e')|⁴ / (4 d_z) in place of a learned network, with the centre c linear in e'

The paper names these variants without formulas. The formulas are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import Mlp, encoders
from ghost.decoders.contract import Batch, Plan, Terms, Weights, join
from ghost.decoders.losses import imitation_terms, nt_xent
from ghost.decoders.phase import PhaseGate, phase_term
from ghost.dynamics.integrators import rollout
from ghost.dynamics.networks import Drift, Potential
from ghost.runs.settings import at_least_one, positive

TERMS = ("bc", "distillation", "phase", "contrastive", "pull")


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 192  # d_e
    d_latent: int = 64  # d_z
    potential_layers: int = 3
    drift_layers: int = 2
    steps: int = 5
    dt: float = 0.2
    phases: int = 8
    persistent: bool = False
    basin_dims: int = 0  # 0: all of z
    quartic: bool = False
    temperature: float = 0.1

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "potential_layers", "drift_layers", "steps", "phases")
        positive(self, "dt", "temperature")
        if not 0 <= self.basin_dims < self.d_latent:
            raise ValueError(f"basin_dims must lie in [0, {self.d_latent}), got {self.basin_dims}")
        if self.basin_dims and self.quartic:
            raise ValueError("basin_dims and quartic are two variants; choose one")


@dataclass(frozen=True)
class Bowl:
    """U = |z - centre|⁴ / (4 d_z), of which only the gradient is needed."""

    centre: Tensor  # [B, d_z]

    def gradient(self, z: Tensor) -> Tensor:
        away = z - self.centre
        return away.square().mean(dim=-1, keepdim=True) * away


class Quartic(nn.Module):
    """A bowl whose centre is linear in the context."""

    def __init__(self, d_z: int, d_c: int) -> None:
        super().__init__()
        self.centre = nn.Linear(d_c, d_z)

    def at(self, c: Tensor) -> Bowl:
        return Bowl(self.centre(c))


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        d_basin = s.basin_dims or s.d_latent
        self.compressor, self.encoder = encoders(s, sizes)
        self.gate = PhaseGate(s.d_context, s.d_latent, s.phases, s.d_context, s.d_latent)
        self.potential: Potential | Quartic = (
            Quartic(d_basin, s.d_context)
            if s.quartic
            else Potential(d_basin, s.d_context, (s.hidden,) * s.potential_layers)
        )
        self.drift = Drift(s.d_latent, s.d_context, (s.hidden,) * s.drift_layers)
        self.horizon = Mlp(s.d_latent, s.hidden, sizes.horizon * s.d_latent)
        self.decode = Mlp(s.d_latent, s.hidden, sizes.d_action)
        self.anchors = nn.Parameter(torch.randn(s.phases, s.d_latent) / s.d_latent**0.5)  # c_p
        if s.persistent:
            self.mix = nn.Linear(2 * s.d_latent, s.d_latent)  # f_mix
            with torch.no_grad():
                half = 0.5 * torch.eye(s.d_latent)
                self.mix.weight.copy_(torch.cat([half, half], dim=1))
                self.mix.bias.zero_()

    def field(self, e: Tensor) -> Callable[[Tensor], Tensor]:
        """dz/dt at the context e."""
        potential, drift, basin = self.potential.at(e), self.drift.at(e), self.settings.basin_dims
        if not basin:
            return lambda z: drift(z) - potential.gradient(z)
        return lambda z: torch.cat([-potential.gradient(z[:, :basin]), drift(z)[:, basin:]], dim=-1)

    def trajectory(self, batch: Batch, memory: Tensor | None = None) -> tuple[list[Tensor], Tensor]:
        """z^(0..n), each [B, d_z], and the logits of the phase."""
        s = self.settings
        e, z = self.compressor(batch.tokens), self.encoder(batch.state)
        logits = self.gate.logits(e, z)
        e = self.gate(e, logits)
        if s.persistent:
            before = z if memory is None else torch.where(memory.isnan(), z, memory)
            z = self.mix(torch.cat([before, z], dim=-1))
        return rollout(self.field(e), z, s.dt, s.steps), logits

    def readout(self, z: Tensor) -> Tensor:
        """The action chunk [B, H, d_a] of any latent [B, d_z]."""
        return torch.as_tensor(self.decode(self.horizon(z).view(len(z), self.sizes.horizon, -1)))

    def plan(self, batch: Batch, memory: Tensor | None = None) -> Plan:
        z, logits = self.trajectory(batch, memory)
        return Plan(self.readout(z[-1]), z[-1] if self.settings.persistent else None, logits)

    def window(self, batch: Batch) -> list[tuple[list[Tensor], Tensor]]:
        """The trajectory and the logits of each chunk of a window. A memory from before the episode began is nan."""
        memory: Tensor | None = None
        found = []
        for chunk in batch.window:
            z, logits = self.trajectory(chunk, memory)
            found.append((z, logits))
            memory = z[-1]
            if chunk.real is not None:
                memory = memory.masked_fill(~chunk.real[:, None].to(memory.device), float("nan"))
        return found

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        found = self.window(batch)
        trajectories, all_logits = [torch.stack(z, dim=1) for z, _ in found], [logits for _, logits in found]
        together, (z, logits) = join(batch.window, trajectories, all_logits)  # z [B', n + 1, d_z]
        terms = imitation_terms(self.readout(z[:, -1]), together, weights) | phase_term(logits, together, weights)
        if weights.get("contrastive"):
            terms["contrastive"] = nt_xent(z[:, -1], together.task, temperature=self.settings.temperature)
        if weights.get("pull"):
            assert together.phase is not None  # noqa: S101  # for the types
            terms["pull"] = (z[:, 1:] - self.anchors[together.phase][:, None]).square().sum(dim=-1).mean()
        return terms

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        return self.readout(self.window(batch)[-1][0][-1])

    def latents(self, batch: Batch) -> Tensor:
        """z^(0..n): [n + 1, B, d_z]."""
        return torch.stack(self.window(batch)[-1][0])
