"""What a decoder reads, and the contract it keeps. B samples, T tokens, D token dims, d_s state, H horizon, d_a action.

A decoder is one module under `ghost.decoders` with

    TERMS      the names of the losses it can minimise, "bc" for most
    Settings   a frozen dataclass: its widths and steps, checked in __post_init__
    Decoder    an nn.Module, `Decoder(settings, sizes)`, with two methods:

        loss_terms(batch, weights, generator) -> {term: scalar}   unweighted, only the terms whose weight is not zero
        act(batch, generator) -> [B, H, d_a]                      the action chunk; needs no batch.action

A decoder that is asked again and again in closed loop may also have

        plan(batch, memory) -> Plan                               memory is None when an episode begins

and then carries something from chunk to chunk. It is trained on windows of sequential chunks (`batch.history`), and
`act` runs through the window.

There is no base class: the loop (`ghost.steps.train`) and the evaluation call these and nothing else. Whatever is random,
dropout included, is drawn from the generator, so that a run depends on its seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    tokens: Tensor  # [B, T, D]
    state: Tensor  # [B, d_s]
    action: Tensor  # [B, H, d_a]
    action_mask: Tensor  # [d_a] bool: the dimensions that are real, 17 of 32; the rest is padding
    task: Tensor  # [B] int64
    teacher: Tensor | None = None  # [B, H, d_a], what is distilled
    phase: Tensor | None = None  # [B] int64: sub-phase of the demonstration, for training alone
    history: tuple[Batch, ...] = ()  # the chunks before this one, oldest first, each a batch of the same B episodes
    real: Tensor | None = None  # [B] bool, in a history: the episode had begun by then

    def __len__(self) -> int:
        return len(self.state)

    @property
    def target(self) -> Tensor:
        """The demonstrated actions with the padding at zero, for decoders that read them: [B, H, d_a]."""
        return self.action.masked_fill(~self.action_mask, 0.0)

    @property
    def window(self) -> tuple[Batch, ...]:
        """The sequential chunks up to this one."""
        return (*self.history, self)


@dataclass(frozen=True)
class Plan:
    action: Tensor  # [B, H, d_a]
    memory: Tensor | None = None  # [B, ...], for the next chunk
    phase_logits: Tensor | None = None  # [B, phases], where the decoder infers a sub-phase


def join(batches: Sequence[Batch], parts: Sequence[Tensor]) -> tuple[Batch, Tensor]:
    """A window's batches as one, without what was before the episodes' beginning; `parts`, one a chunk, likewise."""
    if len(batches) == 1:
        return batches[0], parts[0]
    real = torch.cat([torch.ones(len(b), dtype=torch.bool) if b.real is None else b.real.cpu() for b in batches])
    rows = real.nonzero()[:, 0].to(batches[-1].state.device)

    def joined(tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(tensors)).index_select(0, rows)

    last = batches[-1]
    together = Batch(
        joined([b.tokens for b in batches]),
        joined([b.state for b in batches]),
        joined([b.action for b in batches]),
        last.action_mask,
        joined([b.task for b in batches]),
        phase=None if last.phase is None else joined([b.phase for b in batches if b.phase is not None]),
    )
    return together, joined(parts)
