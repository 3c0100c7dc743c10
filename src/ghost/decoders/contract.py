"""What a decoder reads, and the contract it keeps. B samples, T tokens, D token dims, d_s state, H horizon, d_a action.

A decoder is one module under `ghost.decoders` with

    TERMS      the names of the losses that it can minimise; the first is the imitation itself
    Settings   a frozen dataclass with its widths and steps, checked in __post_init__
    Decoder    an nn.Module, `Decoder(settings, sizes)`, with two methods:

        loss_terms(batch, weights, generator) -> {term: scalar}   unweighted, only the terms whose weight is not zero
        act(batch, generator) -> [B, H, d_a]                      the action chunk; does not read batch.action

A decoder may also have a third method, for closed loop:

        plan(batch, memory) -> Plan                               memory is None when an episode begins

Such a decoder can carry a memory from chunk to chunk. It is trained on windows of sequential chunks (`batch.history`),
and `act` runs through the window.

There is no base class. The training loop and the evaluations call these methods and nothing else. Everything random,
dropout included, is drawn from the generator, so a run depends on its seed alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

Weights = Mapping[str, float]  # by the term's name
Terms = dict[str, Tensor]


@dataclass(frozen=True)
class Batch:
    tokens: Tensor  # [B, T, D]
    state: Tensor  # [B, d_s]
    action: Tensor  # [B, H, d_a]
    action_mask: Tensor  # [d_a] bool: the real dimensions, 17 of 32; the others are padding
    task: Tensor  # [B] int64
    teacher: Tensor | None = None  # [B, H, d_a], the actions to distil
    phase: Tensor | None = None  # [B] int64: the demonstration's sub-phase, for training only
    history: tuple[Batch, ...] = ()  # the chunks before this one, oldest first, each of the same B episodes
    real: Tensor | None = None  # [B] bool, on the CPU, in a history: whether the episode had begun by then

    def __len__(self) -> int:
        return len(self.state)

    @property
    def target(self) -> Tensor:
        """The demonstrated actions with zeros as padding, for decoders that read them: [B, H, d_a]."""
        return self.action.masked_fill(~self.action_mask, 0.0)

    @property
    def window(self) -> tuple[Batch, ...]:
        """The sequential chunks up to and including this one."""
        return (*self.history, self)


@dataclass(frozen=True)
class Plan:
    action: Tensor  # [B, H, d_a]
    memory: Tensor | None = None  # [B, ...], for the next chunk
    phase_logits: Tensor | None = None  # [B, phases], where the decoder infers a sub-phase


def join(batches: Sequence[Batch], *parts: Sequence[Tensor]) -> tuple[Batch, list[Tensor]]:
    """Join the batches of a window into one, without the chunks from before an episode began.

    Each of `parts` holds one tensor per chunk; these are joined likewise.
    """
    if len(batches) == 1:
        return batches[0], [part[0] for part in parts]
    last = batches[-1]
    real = np.concatenate([np.ones(len(b), bool) if b.real is None else b.real.numpy() for b in batches])
    kept = torch.from_numpy(np.flatnonzero(real)).to(last.state.device)  # found on the CPU: no device waits

    def joined(tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(tensors)).index_select(0, kept)

    names = ("tokens", "state", "action", "task", "teacher", "phase")
    known = [name for name in names if getattr(last, name) is not None]
    together = replace(last, history=(), **{name: joined([getattr(b, name) for b in batches]) for name in known})
    return together, [joined(part) for part in parts]
