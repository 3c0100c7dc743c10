"""MLP+Phase: the MLP with FiLM by an inferred sub-phase on its hidden layers. It has no memory between chunks.

    [e; E(state)] -> 512, gated by the phase -> H d_a

At the paper's widths it has 1.4M parameters, as published.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import encoders
from ghost.decoders.contract import Batch, Plan, Terms, Weights
from ghost.decoders.losses import imitation_terms
from ghost.decoders.phase import PhaseGate, phase_term
from ghost.dynamics.networks import linear_layers
from ghost.runs.settings import at_least_one

TERMS = ("bc", "distillation", "phase")


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 128
    d_latent: int = 64
    layers: int = 1
    phases: int = 8

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "layers", "phases")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.compressor, self.encoder = encoders(s, sizes)
        self.trunk = linear_layers(s.d_context + s.d_latent, *[s.hidden] * s.layers)
        self.gate = PhaseGate(s.d_context, s.d_latent, s.phases, s.hidden, s.d_latent)
        self.out = nn.Linear(s.hidden, sizes.horizon * sizes.d_action)

    def plan(self, batch: Batch, memory: Tensor | None = None) -> Plan:
        e, state = self.compressor(batch.tokens), self.encoder(batch.state)
        logits = self.gate.logits(e, state)
        x = torch.cat([e, state], dim=-1)
        for layer in self.trunk:
            x = self.gate(nn.functional.silu(layer(x)), logits)
        return Plan(self.out(x).view(len(batch), self.sizes.horizon, -1), None, logits)

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        plan = self.plan(batch)
        assert plan.phase_logits is not None  # noqa: S101  # for the types
        return imitation_terms(plan.action, batch, weights) | phase_term(plan.phase_logits, batch, weights)

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        return self.plan(batch).action
