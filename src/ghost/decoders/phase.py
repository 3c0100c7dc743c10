"""The sub-phase that a policy believes to be in, and what it does with it. B samples, d_e context, d_z state code.

A head reads the context and the encoded state and gives a logit for each of the sub-phases; the probabilities gate
features by FiLM: x -> (1 + γ(p)) x + β(p). The head is trained on the demonstrations' phases with a cross-entropy of
its own, and the gate sees the head's probabilities in training as well as at run time: what gates an action is never
the true phase, which nobody knows in closed loop. How the authors infer theirs is not published.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ghost.decoders.context import Mlp
from ghost.decoders.contract import Batch


class PhaseGate(nn.Module):
    def __init__(self, d_context: int, d_state: int, phases: int, width: int, hidden: int) -> None:
        super().__init__()
        self.head = Mlp(d_context + d_state, hidden, phases)
        self.film = nn.Linear(phases, 2 * width)

    def logits(self, e: Tensor, state: Tensor) -> Tensor:
        """[B, phases]."""
        return torch.as_tensor(self.head(torch.cat([e, state], dim=-1)))

    def forward(self, x: Tensor, logits: Tensor) -> Tensor:
        """x [B, width], gated. The gate does not teach the head: its labels do."""
        gamma, beta = self.film(logits.detach().softmax(dim=-1)).chunk(2, dim=-1)
        return torch.as_tensor((1 + gamma) * x + beta)


def phase_term(logits: Tensor, batch: Batch, weights: Mapping[str, float]) -> dict[str, Tensor]:
    """The cross-entropy of the inferred phase, where it has a weight."""
    if not weights.get("phase"):
        return {}
    if batch.phase is None or int(batch.phase.min()) < 0:
        raise ValueError("the phase has a weight but the data set has no phases")
    return {"phase": nn.functional.cross_entropy(logits, batch.phase)}
