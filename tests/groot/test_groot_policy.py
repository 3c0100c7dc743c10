"""GR00T in a shared pass: its tokens and its own head's actions are, to the bit, those of an episode alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from ghost.backbones.groot import Groot, Settings
from ghost.data.features import Sizes
from ghost.data.lerobot import STATE
from ghost.libero.conventions import find_convention
from ghost.libero.policy import Alone, Asked, Policy
from ghost.libero.sensing import Senses
from ghost.libero.tasks import TASKS
from ghost.training.head import OwnHead

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
COLUMNS = ("observation.images.image", "observation.images.wrist_image")


def look(episode: int, step: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([episode, step])
    pictures = {column: rng.integers(0, 256, (32, 32, 3), np.uint8) for column in COLUMNS}
    return {STATE: rng.standard_normal(8).astype(np.float32), **pictures}


def test_an_episode_is_planned_alike_alone_and_among_others(tiny, torch_as_it_was):
    """Six episodes of two instructions, in passes of four rows, float32 on a CPU."""
    torch.set_num_threads(1)
    groot = Groot.load(tiny, "new_embodiment")
    config = groot.head.config
    sizes = Sizes(4, config.backbone_embedding_dim, config.max_state_dim, config.action_horizon, config.action_dim)
    settings = Settings(sizes.tokens, sizes.d_token, 0, 0, (), "new_embodiment", 16)
    senses = Senses(find_convention("ipec"), COLUMNS, sizes.d_state)
    policy = Policy([OwnHead(sizes)], partial(groot.encode, settings), senses, 4)

    def told(episode: int) -> str:
        return TASKS[episode % 2].instruction

    expected = []
    for episode in range(6):
        acting = Alone(policy)
        acting.start(episode)
        expected.append([acting.plan(look(episode, step), told(episode)).actions for step in range(2)])
    sessions = [policy.session(episode) for episode in range(6)]
    for step, order in enumerate(([3, 0, 5, 1, 4, 2], [2, 1, 0, 5, 3, 4])):
        planned = policy.plan([Asked(sessions[e], look(e, step), told(e)) for e in order])
        for episode, plan in zip(order, planned, strict=True):
            assert np.array_equal(plan.actions, expected[episode][step])
    assert not np.array_equal(expected[0][0], expected[2][0])
