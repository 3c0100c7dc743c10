"""GRU+Phase: a recurrent decoder. Its hidden state goes from chunk to chunk; an inferred sub-phase gates the context.

    e' = FiLM(e; p)      x_t = [e'; E(state); p]      h_t = GRU(x_t, h_{t-1})      a_1:H = out(h_t)

Trained on windows of sequential chunks, from h = 0 at the window's start, and used so: a plan starts from h = 0 at the
oldest of the last `window` chunks. Carried on for a whole episode, h leaves what training has shown it, and nearly
every episode fails. At the paper's widths 3.9M parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import Compressor, Mlp
from ghost.decoders.contract import Batch, Plan, join
from ghost.decoders.losses import imitation_terms
from ghost.decoders.phase import PhaseGate, phase_term
from ghost.runs.settings import at_least_one

TERMS = ("bc", "distillation", "phase")


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 128
    d_latent: int = 64
    d_recurrent: int = 832
    phases: int = 8
    window: int = 3  # chunks, the training's

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "d_recurrent", "phases", "window")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.compressor = Compressor(sizes.d_token, s.hidden, s.d_context)
        self.encoder = Mlp(sizes.d_state, s.hidden, s.d_latent)
        self.gate = PhaseGate(s.d_context, s.d_latent, s.phases, s.d_context, s.d_latent)
        self.cell = nn.GRUCell(s.d_context + s.d_latent + s.phases, s.d_recurrent)
        self.out = nn.Linear(s.d_recurrent, sizes.horizon * sizes.d_action)

    def inputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """x [B, d_x] and the phase's logits."""
        e, state = self.compressor(batch.tokens), self.encoder(batch.state)
        logits = self.gate.logits(e, state)
        return torch.cat([self.gate(e, logits), state, logits.detach().softmax(dim=-1)], dim=-1), logits

    def readout(self, h: Tensor) -> Tensor:
        """A hidden state [B, d_recurrent] as an action chunk [B, H, d_a]."""
        return torch.as_tensor(self.out(h).view(len(h), self.sizes.horizon, -1))

    def plan(self, batch: Batch, memory: Tensor | None = None) -> Plan:
        """The memory is x of the chunks before, [B, up to window, d_x]."""
        x, logits = self.inputs(batch)
        seen = x[:, None] if memory is None else torch.cat([memory, x[:, None]], dim=1)[:, -self.settings.window :]
        h: Tensor | None = None
        for chunk in seen.unbind(dim=1):
            h = self.cell(chunk, h)
        assert h is not None
        return Plan(self.readout(h), seen, logits)

    def window(self, batch: Batch) -> list[Plan]:
        """The plans of a window's chunks; before an episode's beginning the hidden state is that of a beginning."""
        plans: list[Plan] = []
        h: Tensor | None = None
        for chunk in batch.window:
            x, logits = self.inputs(chunk)
            h = self.cell(x, h)
            plans.append(Plan(self.readout(h), None, logits))
            if chunk.real is not None:
                h = h * chunk.real[:, None]
        return plans

    def loss_terms(
        self, batch: Batch, weights: Mapping[str, float], generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        plans = self.window(batch)
        together, action = join(batch.window, [plan.action for plan in plans])
        _, logits = join(batch.window, [plan.phase_logits for plan in plans if plan.phase_logits is not None])
        return imitation_terms(action, together, weights) | phase_term(logits, together, weights)

    def act(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        return self.window(batch)[-1].action
