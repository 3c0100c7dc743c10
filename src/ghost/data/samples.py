"""Samples of a feature cache as batches, for training and evaluation. n samples, T tokens, D token dims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor

from ghost.data.features import FeatureCache, Sizes
from ghost.decoders.contract import Batch

MEMORY_BYTES = 8 * 2**30  # tokens up to this size are kept in memory as float32; the paper's 5,600 samples take 2.9 GB
CHUNK = 256  # samples at a time where nothing is learned


class Samples:
    """Chosen samples of a cache, as batches. The tokens are in memory, as float32, if they fit MEMORY_BYTES.

    With a `window` above 1 a batch also has the chunks before, each `gap` steps earlier in the same episode.
    """

    def __init__(
        self, cache: FeatureCache, indices: np.ndarray, device: str = "cpu", *, window: int = 1, gap: int = 1
    ) -> None:
        self.cache, self.indices, self.device = cache, indices, device
        self.sizes = Sizes(**asdict(cache.sizes))
        self.state = torch.from_numpy(cache.state[indices]).float().to(device)
        self.action = torch.from_numpy(cache.action[indices]).float().to(device)
        self.task = torch.from_numpy(cache.task[indices]).to(device)
        self.action_mask = torch.from_numpy(cache.action_mask).to(device)
        self.phase = torch.from_numpy(cache.phase[indices]).to(device)
        self.episode = cache.episode[indices]
        self.earlier = self._earlier(cache.timestep[indices], window, gap)  # [window - 1, n], -1: there is none
        self.teacher: Tensor | None = None  # [n, H, d_a]
        self.tokens: Tensor | None = None  # [n, T, D]
        if len(indices) * self.sizes.tokens * self.sizes.d_token * 4 <= MEMORY_BYTES:
            self.tokens = torch.empty(len(indices), self.sizes.tokens, self.sizes.d_token, device=device)
            for start in range(0, len(indices), CHUNK):
                self.tokens[start : start + CHUNK] = torch.from_numpy(cache.tokens(indices[start : start + CHUNK]))

    def __len__(self) -> int:
        return len(self.indices)

    def batch(self, rows: Tensor) -> Batch:
        """The samples at these places [B] (not indices of the cache)."""
        history = []
        for places in self.earlier:
            before = places[rows]
            history.append(replace(self._chunk(before.clamp(min=0)), real=before >= 0))
        return replace(self._chunk(rows), history=tuple(history))

    def _chunk(self, rows: Tensor) -> Batch:
        if self.tokens is not None:
            tokens = self.tokens[rows]
        else:
            tokens = torch.from_numpy(self.cache.tokens(self.indices[rows.cpu().numpy()])).float().to(self.device)
        teacher = None if self.teacher is None else self.teacher[rows]
        return Batch(
            tokens, self.state[rows], self.action[rows], self.action_mask, self.task[rows], teacher, self.phase[rows]
        )

    def _earlier(self, timestep: np.ndarray, window: int, gap: int) -> Tensor:
        """Where the chunks before each sample stand, oldest first."""
        place = {key: row for row, key in enumerate(zip(self.episode.tolist(), timestep.tolist(), strict=True))}
        found = [
            [place.get((e, t - back * gap), -1) for e, t in zip(self.episode.tolist(), timestep.tolist(), strict=True)]
            for back in range(window - 1, 0, -1)
        ]
        return torch.tensor(found, dtype=torch.int64, device=self.device).reshape(window - 1, len(self))

    def prepare(self, decoder: torch.nn.Module, generator: torch.Generator, done: float) -> None:
        """Before an epoch. Nothing here: an agent that learns by acting has samples that it makes anew."""

    def rows(self) -> Tensor:
        """All places: [n]."""
        return torch.arange(len(self), device=self.device)

    def chunks(self, rows: Tensor) -> Iterator[Batch]:
        """These samples in order, a moderate number at a time."""
        return (self.batch(part) for part in torch.split(rows, CHUNK))
