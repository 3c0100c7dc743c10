"""Tokens that memory does not hold, read once an epoch in the order of the disk while the model trains.

A block is some whole episodes: neighbours on the disk, and with every sample of a block the earlier chunks of its
window. The blocks come in random order. As many of them as a third of the allowed memory holds are a pool, and the
samples of a pool are shuffled. While the model trains on a pool, a thread reads the next one; the pool before is kept
for the batch that begins in it. Which samples are neighbours in an epoch depends on the seed and the allowance alone.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

BLOCK = 64  # samples at least
POOLS = 3  # at once in memory: the one before, the one at work, the next one


@dataclass(frozen=True)
class Pool:
    places: Tensor  # [m], rising
    tokens: Tensor  # [m, t, d] float16


Read = Callable[[np.ndarray], np.ndarray]  # places, rising -> tokens [m, t, d] float16


class Pools:
    """The pools of one epoch, in the order in which `arranged` puts its samples."""

    def __init__(self, episode: np.ndarray, earlier: Tensor, most: int, read: Read) -> None:
        self.block, self.earlier, self.most, self.read = blocks(episode), earlier, max(1, most // POOLS), read
        self.held: list[Pool] = []
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="tokens")
        self.waiting: Iterator[np.ndarray] = iter(())
        self.next: Future[Pool] | None = None

    def arranged(self, order: Tensor) -> Tensor:
        """The places of an epoch, given in random order, pool by pool. The reading of the first pool begins."""
        places = order.numpy()
        number = self.block[places]
        first = np.unique(number, return_index=True)[1]
        shuffled = number[np.sort(first)]  # the blocks, in the order in which the places name them
        sizes = np.bincount(number)[shuffled]
        pool = np.empty(len(self.block), np.int64)  # of each block
        pool[shuffled] = (np.cumsum(sizes) - sizes) // self.most
        parts = [places[pool[number] == k] for k in np.unique(pool[shuffled])]
        self.held, self.waiting, self.next = [], iter(parts), None
        self._begin()
        return torch.from_numpy(np.concatenate(parts))

    def tokens(self, places: Tensor) -> Tensor | None:
        """The tokens [B, t, d] of samples of the pools at work; None where the epoch has no such samples left."""
        while not (found := self._found(places))[1].all():
            if self.next is None:
                return None
            self.held = [*self.held[-1:], self.next.result()]
            self._begin()
        return found[0]

    def _found(self, places: Tensor) -> tuple[Tensor, Tensor]:
        there = torch.zeros(len(places), dtype=torch.bool)
        tokens = torch.empty(0)
        for pool in self.held:
            row = torch.searchsorted(pool.places, places).clamp(max=len(pool.places) - 1)
            here = pool.places[row] == places
            if not len(tokens):
                tokens = torch.empty(len(places), *pool.tokens.shape[1:], dtype=pool.tokens.dtype)
            tokens[here] = pool.tokens[row[here]]
            there |= here
        return tokens, there

    def _begin(self) -> None:
        part = next(self.waiting, None)
        self.next = None if part is None else self.thread.submit(self._load, part)

    def _load(self, part: np.ndarray) -> Pool:
        """Read the samples and the earlier chunks of their windows, each once."""
        before = self.earlier[:, part].numpy().ravel()
        places = np.unique(np.concatenate([part, before[before >= 0]]))
        return Pool(torch.from_numpy(places), torch.from_numpy(self.read(places)))


def blocks(episode: np.ndarray) -> np.ndarray:
    """The block of each sample [n]: whole episodes, each block with at least BLOCK samples where there are so many."""
    block, number, size = np.empty(len(episode), np.int64), 0, 0
    names, inverse = np.unique(episode, return_inverse=True)
    for name, samples in enumerate(np.bincount(inverse, minlength=len(names))):
        block[inverse == name] = number
        size += samples
        if size >= BLOCK:
            number, size = number + 1, 0
    return block
