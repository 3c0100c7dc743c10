"""Samples of a feature cache as batches, for training and evaluation. n samples, T tokens, D token dims.

A sample's place is its position among the chosen samples, 0 to n - 1. It is not its index in the cache.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor

from ghost.data.features import FeatureCache, Sizes
from ghost.data.pools import Pools
from ghost.decoders.contract import Batch

MEMORY_BYTES = 8 * 2**30  # tokens up to this size stay in memory as float32; the paper's 5,600 samples take 2.9 GB
HALF_BYTES = 2  # of a number on the disk and in a pool, float16
CHUNK = 256  # samples at a time where nothing is trained


class Samples:
    """The chosen samples. With a `window` above 1 a batch also holds earlier chunks of its episodes, `gap` steps apart.

    The tokens are in memory, as float32 and without padding, if they take no more than MEMORY_BYTES. Larger ones are
    read in every epoch (`ghost.data.pools`).
    """

    def __init__(
        self,
        cache: FeatureCache,
        indices: np.ndarray,
        device: str = "cpu",
        *,
        window: int = 1,
        gap: int = 1,
        memory_bytes: int | None = None,  # allowed for tokens; MEMORY_BYTES if left out
    ) -> None:
        self.cache, self.indices, self.device = cache, indices, device
        self.sizes = Sizes(**asdict(cache.sizes))
        self.state = torch.from_numpy(cache.state[indices]).float().to(device)
        self.action = torch.from_numpy(cache.action[indices]).float().to(device)
        self.task = torch.from_numpy(cache.task[indices]).to(device)
        self.action_mask = torch.from_numpy(cache.action_mask).to(device)
        self.phase = torch.from_numpy(cache.phase[indices]).to(device)
        self.has_phases = bool((cache.phase[indices] >= 0).all())
        self.episode = cache.episode[indices]
        self.earlier = self._earlier(cache.timestep[indices], window, gap)  # [window - 1, n], -1 where there is none
        self.teacher: Tensor | None = None  # [n, H, d_a]
        self.tokens: Tensor | None = None  # [n, t, d]
        self.pools: Pools | None = None
        self.stored = t, d = cache.stored()
        allowed = MEMORY_BYTES if memory_bytes is None else memory_bytes
        if len(indices) * t * d * 4 <= allowed:
            self.tokens = torch.empty(len(indices), t, d, device=device)
            for start in range(0, len(indices), CHUNK):
                self.tokens[start : start + CHUNK] = torch.from_numpy(
                    self._read(np.arange(start, min(start + CHUNK, len(self))))
                )
        else:
            self.pools = Pools(self.episode, self.earlier, allowed // (t * d * HALF_BYTES), self._read)

    def __len__(self) -> int:
        return len(self.indices)

    def places(self) -> Tensor:
        """All places: [n]. They stay on the CPU, where no look at them waits for the device."""
        return torch.arange(len(self))

    def arranged(self, order: Tensor) -> Tensor:
        """The places of an epoch: as they are, or in an order that suits the disk."""
        return order if self.pools is None else self.pools.arranged(order)

    def prepare(self, decoder: torch.nn.Module, generator: torch.Generator, done: float) -> None:
        """Nothing to do before an epoch. An agent that learns by acting makes new samples here."""

    def batch(self, places: Tensor) -> Batch:
        """The samples at these places [B]."""
        befores = [earlier[places] for earlier in self.earlier]
        history = tuple(  # a chunk from before the episode began stands as the sample itself, and does not count
            replace(self._chunk(before.where(before >= 0, places)), real=before >= 0) for before in befores
        )
        return replace(self._chunk(places), history=history)

    def chunks(self, places: Tensor) -> Iterator[Batch]:
        """The samples at these places in order, a moderate number at a time."""
        return (self.batch(part) for part in torch.split(places, CHUNK))

    def _chunk(self, places: Tensor) -> Batch:
        at = places.to(self.device)
        teacher = None if self.teacher is None else self.teacher[at]
        state, action, task, phase = (x[at] for x in (self.state, self.action, self.task, self.phase))
        return Batch(self._tokens(places), state, action, self.action_mask, task, teacher, phase)

    def _tokens(self, places: Tensor) -> Tensor:
        """The tokens at these places [B, T, D], with the zeros that are not stored."""
        if self.tokens is not None:
            found = self.tokens[places.to(self.device)]
        else:
            pooled = None if self.pools is None else self.pools.tokens(places)
            read = torch.from_numpy(self._read(places.numpy())) if pooled is None else pooled
            found = read.to(self.device).float()
        t, d = self.stored
        padding = (0, self.sizes.d_token - d, 0, self.sizes.tokens - t)
        return torch.nn.functional.pad(found, padding) if any(padding) else found

    def _read(self, places: np.ndarray) -> np.ndarray:
        """What is stored of these samples [m, t, d] float16, from the disk."""
        return self.cache.tokens(self.indices[places], np.empty((len(places), *self.stored), np.float16))

    def _earlier(self, timestep: np.ndarray, window: int, gap: int) -> Tensor:
        """The places of the chunks before each sample, oldest first."""
        keys = list(zip(self.episode.tolist(), timestep.tolist(), strict=True))
        place = {key: number for number, key in enumerate(keys)}
        found = [[place.get((e, t - back * gap), -1) for e, t in keys] for back in range(window - 1, 0, -1)]
        return torch.tensor(found, dtype=torch.int64).reshape(window - 1, len(self))
