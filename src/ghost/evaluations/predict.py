"""Run a decoder on held-out samples and compute its errors. n samples, H horizon, d_a action."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ghost.data.features import FeatureCache
from ghost.data.results import Measured
from ghost.data.samples import Samples
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.training.head import FineTunedHead

Decoders = Mapping[str, Any]  # trained ones, by the name of their experiment


def parameters_of(decoder: Any, condition: str = "model") -> Measured:
    """The decoder's number of parameters, as a measured value."""
    is_head = isinstance(decoder, FineTunedHead)
    number = decoder.parameters if is_head else sum(p.numel() for p in decoder.parameters())
    return Measured(condition, "parameters", number)


def device_of(decoder: Any) -> str:
    return str(next(iter(decoder.parameters())).device)


def gather(function: Callable[[Batch], Tensor], samples: Samples, *, dim: int = 0) -> np.ndarray:
    """`function` of all samples, computed in chunks and joined along its dimension of samples."""
    with torch.no_grad():
        return torch.cat([function(batch) for batch in samples.chunks(samples.places())], dim=dim).cpu().numpy()


def predict(decoder: Any, samples: Samples, *, seed: int) -> np.ndarray:
    """The action chunks [n, H, d_a]. A random decoder draws from a generator with this seed."""
    generator = torch.Generator(samples.device).manual_seed(seed)
    return gather(lambda batch: decoder.act(batch, generator), samples)


def squared_errors(predicted: np.ndarray, cache: FeatureCache, indices: np.ndarray) -> np.ndarray:
    """Per sample and real action dimension, averaged over the horizon: [n, 17]."""
    error = predicted[..., cache.action_mask] - cache.action[indices][..., cache.action_mask]
    return np.asarray((error.astype(np.float64) ** 2).mean(axis=1))


def per_task(cache: FeatureCache, indices: np.ndarray) -> dict[str, np.ndarray]:
    """The positions in `indices` of each task's samples. A task without samples is left out."""
    where = {name: np.flatnonzero(cache.task[indices] == number) for number, name in enumerate(cache.task_names)}
    return {name: positions for name, positions in where.items() if len(positions)}


def only(decoders: Decoders) -> Any:
    """The decoder of an evaluation that takes one."""
    if len(decoders) != 1:
        raise GhostError(f"this evaluation needs one trained decoder, got {', '.join(decoders) or 'none'}")
    return next(iter(decoders.values()))
