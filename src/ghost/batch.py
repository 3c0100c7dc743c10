"""What a decoder reads, and the contract it keeps. B samples, T tokens, D token dims, d_s state, H horizon, d_a action.

A decoder is one module under `ghost.decoders` with

    TERMS      the names of the losses it can minimise, "bc" for most
    Settings   a frozen dataclass: its widths and steps, checked in __post_init__
    Decoder    an nn.Module, `Decoder(settings, sizes)`, with two methods:

        loss_terms(batch, weights, generator) -> {term: scalar}   unweighted, only the terms whose weight is not zero
        act(batch, generator) -> [B, H, d_a]                      the action chunk; needs no batch.action

There is no base class: the loop (`ghost.train`) and the evaluation call these and nothing else. Whatever is random,
dropout included, is drawn from the generator, so that a run depends on its seed alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    tokens: Tensor  # [B, T, D]
    state: Tensor  # [B, d_s]
    action: Tensor  # [B, H, d_a]
    action_mask: Tensor  # [d_a] bool: the dimensions that are real, 17 of 32; the rest is padding
    task: Tensor  # [B] int64
    teacher: Tensor | None = None  # [B, H, d_a], what is distilled

    def __len__(self) -> int:
        return len(self.state)

    @property
    def target(self) -> Tensor:
        """The demonstrated actions with the padding at zero, for decoders that read them: [B, H, d_a]."""
        return self.action.masked_fill(~self.action_mask, 0.0)
