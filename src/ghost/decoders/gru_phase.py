"""GRU+Phase: a recurrent decoder with a hidden state from chunk to chunk. An inferred sub-phase gates the context.

    e' = FiLM(e; p)      x_t = [e'; E(state); p]      h_t = GRU(x_t, h_{t-1})      a_1:H = out(h_t)

It is trained on windows of sequential chunks, with h = 0 before the first. A plan does the same: it starts from h = 0
before the oldest of the last `window` chunks. If h is carried through a whole episode instead, it leaves the range that
training has shown, and nearly every episode fails. At the paper's widths it has 3.9M parameters.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import encoders
from ghost.decoders.contract import Batch, Plan, Terms, Weights, join
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
    window: int = 3  # chunks, as in training

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "d_recurrent", "phases", "window")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.compressor, self.encoder = encoders(s, sizes)
        self.gate = PhaseGate(s.d_context, s.d_latent, s.phases, s.d_context, s.d_latent)
        self.cell = nn.GRUCell(s.d_context + s.d_latent + s.phases, s.d_recurrent)
        self.out = nn.Linear(s.d_recurrent, sizes.horizon * sizes.d_action)

    def inputs(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """x [B, d_x] and the logits of the phase."""
        e, state = self.compressor(batch.tokens), self.encoder(batch.state)
        logits = self.gate.logits(e, state)
        return torch.cat([self.gate(e, logits), state, logits.detach().softmax(dim=-1)], dim=-1), logits

    def readout(self, h: Tensor) -> Tensor:
        """The action chunk [B, H, d_a] of a hidden state [B, d_recurrent]."""
        return torch.as_tensor(self.out(h).view(len(h), self.sizes.horizon, -1))

    def plan(self, batch: Batch, memory: Tensor | None = None) -> Plan:
        """The memory holds x of the earlier chunks, [B, up to window, d_x]."""
        x, logits = self.inputs(batch)
        seen = x[:, None] if memory is None else torch.cat([memory, x[:, None]], dim=1)[:, -self.settings.window :]
        h: Tensor | None = None
        for chunk in seen.unbind(dim=1):
            h = self.cell(chunk, h)
        assert h is not None  # noqa: S101  # for the types
        return Plan(self.readout(h), seen, logits)

    def window(self, batch: Batch) -> list[Plan]:
        """The plans of a window's chunks. Chunks from before the episode began leave the hidden state at zero."""
        plans: list[Plan] = []
        h: Tensor | None = None
        for chunk in batch.window:
            x, logits = self.inputs(chunk)
            h = self.cell(x, h)
            plans.append(Plan(self.readout(h), None, logits))
            if chunk.real is not None:
                h = h * chunk.real[:, None].to(h.device)
        return plans

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        plans = self.window(batch)
        all_logits = [plan.phase_logits for plan in plans if plan.phase_logits is not None]
        together, (action, logits) = join(batch.window, [plan.action for plan in plans], all_logits)
        return imitation_terms(action, together, weights) | phase_term(logits, together, weights)

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        return self.window(batch)[-1].action
