"""How a decoder infers the sub-phase of a task and uses it. B samples, d_e context, d_z encoded state.

A head reads the context and the encoded state and gives a logit for each sub-phase. The probabilities p gate features
by FiLM: x -> (1 + γ(p)) x + β(p). The head learns the demonstrations' phases by a cross-entropy of its own. The gate
sees the head's probabilities in training too, never the true phase, because nobody knows that one in closed loop. The
paper does not say how its decoders infer the phase.
"""

import torch
from torch import Tensor, nn

from ghost.decoders.context import Mlp
from ghost.decoders.contract import Batch, Terms, Weights


class PhaseGate(nn.Module):
    def __init__(self, d_context: int, d_state: int, phases: int, width: int, hidden: int) -> None:
        super().__init__()
        self.head = Mlp(d_context + d_state, hidden, phases)
        self.film = nn.Linear(phases, 2 * width)

    def logits(self, e: Tensor, state: Tensor) -> Tensor:
        """[B, phases]."""
        return torch.as_tensor(self.head(torch.cat([e, state], dim=-1)))

    def forward(self, x: Tensor, logits: Tensor) -> Tensor:
        """x [B, width], gated. No gradient flows from the gate into the head, which learns from its labels alone."""
        gamma, beta = self.film(logits.detach().softmax(dim=-1)).chunk(2, dim=-1)
        return torch.as_tensor((1 + gamma) * x + beta)


def phase_term(logits: Tensor, batch: Batch, weights: Weights) -> Terms:
    """The cross-entropy of the inferred phase, where it has a weight."""
    if not weights.get("phase"):
        return {}
    if batch.phase is None:
        raise ValueError("the phase has a weight but the batch has no phases")
    return {"phase": nn.functional.cross_entropy(logits, batch.phase)}
