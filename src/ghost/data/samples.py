"""Samples of a feature cache as batches, for training and evaluation. n samples, T tokens, D token dims.

A sample's place is its position among the chosen samples, 0 to n - 1. It is not its index in the cache.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor

from ghost.data.features import FeatureCache, Sizes
from ghost.decoders.contract import Batch

MEMORY_BYTES = 8 * 2**30  # tokens up to this size stay in memory as float32; the paper's 5,600 samples take 2.9 GB
CHUNK = 256  # samples at a time where nothing is trained


class Samples:
    """The chosen samples. With a `window` above 1 a batch also holds earlier chunks of its episodes, `gap` steps apart.

    The tokens are in memory, as float32, if they take no more than MEMORY_BYTES.
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
        self.earlier = self._earlier(cache.timestep[indices], window, gap)  # [window - 1, n], -1 where there is none
        self.teacher: Tensor | None = None  # [n, H, d_a]
        self.tokens: Tensor | None = None  # [n, T, D]
        if len(indices) * self.sizes.tokens * self.sizes.d_token * 4 <= MEMORY_BYTES:
            self.tokens = torch.empty(len(indices), self.sizes.tokens, self.sizes.d_token, device=device)
            for start in range(0, len(indices), CHUNK):
                self.tokens[start : start + CHUNK] = torch.from_numpy(cache.tokens(indices[start : start + CHUNK]))

    def __len__(self) -> int:
        return len(self.indices)

    def places(self) -> Tensor:
        """All places: [n]."""
        return torch.arange(len(self), device=self.device)

    def prepare(self, decoder: torch.nn.Module, generator: torch.Generator, done: float) -> None:
        """Nothing to do before an epoch. An agent that learns by acting makes new samples here."""

    def batch(self, places: Tensor) -> Batch:
        """The samples at these places [B]."""
        befores = [earlier[places] for earlier in self.earlier]
        history = tuple(replace(self._chunk(before.clamp(min=0)), real=before >= 0) for before in befores)
        return replace(self._chunk(places), history=history)

    def chunks(self, places: Tensor) -> Iterator[Batch]:
        """The samples at these places in order, a moderate number at a time."""
        return (self.batch(part) for part in torch.split(places, CHUNK))

    def _chunk(self, places: Tensor) -> Batch:
        if self.tokens is not None:
            tokens = self.tokens[places]
        else:
            tokens = torch.from_numpy(self.cache.tokens(self.indices[places.cpu().numpy()])).float().to(self.device)
        teacher = None if self.teacher is None else self.teacher[places]
        state, action, task, phase = (x[places] for x in (self.state, self.action, self.task, self.phase))
        return Batch(tokens, state, action, self.action_mask, task, teacher, phase)

    def _earlier(self, timestep: np.ndarray, window: int, gap: int) -> Tensor:
        """The places of the chunks before each sample, oldest first."""
        keys = list(zip(self.episode.tolist(), timestep.tolist(), strict=True))
        place = {key: number for number, key in enumerate(keys)}
        found = [[place.get((e, t - back * gap), -1) for e, t in keys] for back in range(window - 1, 0, -1)]
        return torch.tensor(found, dtype=torch.int64, device=self.device).reshape(window - 1, len(self))
