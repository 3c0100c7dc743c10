"""A tiny feature cache in memory, and decoders with known answers."""

from __future__ import annotations

import numpy as np
import torch

from ghost.data.dual_arm import DIMENSIONS, GROUPS
from ghost.data.features import FeatureCache, Sizes
from ghost.data.normalisation import Normalisation, Scale, numbered
from ghost.decoders import ghost, mlp

TASKS = ("Arrange_cups", "Move_parts", "Take_book")
SCALE = Scale(numbered("action", DIMENSIONS), -np.ones(DIMENSIONS), np.ones(DIMENSIONS), GROUPS)
SIZES = Sizes(tokens=3, d_token=6, d_state=5, horizon=4, d_action=20)


def cache() -> FeatureCache:
    """48 samples of three tasks; a task's actions lie about a mean of its own, and the tokens tell the task."""
    rng = np.random.default_rng(0)
    n = 48
    task = np.arange(n, dtype=np.int64) % 3
    mask = np.arange(SIZES.d_action) < DIMENSIONS
    means = rng.normal(size=(3, SIZES.horizon, SIZES.d_action))
    action = (means[task] + 0.3 * rng.normal(size=(n, SIZES.horizon, SIZES.d_action))).astype(np.float32)
    action[..., ~mask] = 7.0  # padding: nobody may look at it
    tokens = (np.eye(6)[task][:, None] + 0.1 * rng.normal(size=(n, SIZES.tokens, 6))).astype(np.float16)
    order = rng.permutation(n)
    return FeatureCache(
        state=rng.normal(size=(n, SIZES.d_state)).astype(np.float32),
        action=action,
        action_mask=mask,
        task=task,
        phase=np.zeros(n, np.int64),
        episode=np.arange(n, dtype=np.int64) // 2,
        timestep=np.arange(n, dtype=np.int64) % 2,
        task_names=TASKS,
        sizes=SIZES,
        splits={"sample": (np.sort(order[:20]), np.sort(order[20:])), "episode": (np.arange(24), np.arange(24, n))},
        shards=(tokens,),
        samples_per_shard=n,
        normalisation=Normalisation("limits", SCALE, SCALE),
    )


class Truth(torch.nn.Module):
    """Knows the recorded actions, and adds an offset to them."""

    def __init__(self, offset: float = 0.0) -> None:
        super().__init__()
        self.offset = torch.nn.Parameter(torch.tensor(offset))

    def act(self, batch, generator=None):
        return batch.action + self.offset


def small_ghost() -> ghost.Decoder:
    torch.manual_seed(0)
    return ghost.Decoder(ghost.Settings(hidden=8, d_context=4, d_latent=4, steps=3), SIZES).eval()


def small_mlp() -> mlp.Decoder:
    torch.manual_seed(1)
    return mlp.Decoder(mlp.Settings(hidden=8, d_context=4, d_latent=4), SIZES).eval()
