"""Policies with random weights on the real stand-in backbone, and what they may see: for tests without a simulator."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import torch

from ghost.backbones import libero_standin
from ghost.data.features import Sizes
from ghost.libero.conventions import find_convention
from ghost.libero.policy import Alone, Planned, Policy
from ghost.libero.sensing import Raw, Senses
from ghost.libero.tasks import TASKS, Look
from ghost.training.building import build

SIZES = Sizes(4, 160, 64, 16, 7)
SENSES = Senses(find_convention("ghost"), (), SIZES.d_state)
WIDTHS = {"hidden": 96, "d_context": 40, "d_latent": 24}  # no multiples of what a processor adds at once


def random_policy(decoder: str, rows: int, seeds: Sequence[int] = (0,), **settings: object) -> Policy:
    module = importlib.import_module(f"ghost.decoders.{decoder}")
    known = {field.name for field in fields(module.Settings)}
    chosen = module.Settings(**{key: value for key, value in {**WIDTHS, **settings}.items() if key in known})
    decoders = []
    for seed in seeds:
        torch.manual_seed(seed)
        decoders.append(build(module, chosen, SIZES).eval().requires_grad_(False))
    backbone = libero_standin.start(libero_standin.Settings(SIZES.tokens, SIZES.d_token, 0), SIZES, [])
    return Policy(decoders, backbone.encode, SENSES, rows)


def look(episode: int, step: int) -> Raw:
    rng = np.random.default_rng([episode, step])
    return Look(*(rng.standard_normal(shape) for shape in (3, (3, 3), 2, 2, (21, 9), 3))).columns()


def told(episode: int) -> str:
    return TASKS[episode % 3].instruction


def alone(policy: Policy, episode: int, steps: int = 5) -> list[Planned]:
    """The plans of an episode that nobody shares."""
    acting = Alone(policy)
    acting.start(episode)
    return [acting.plan(look(episode, step), told(episode)) for step in range(steps)]


def same(one: Planned, other: Planned) -> bool:
    """To the bit."""
    return one.phase == other.phase and np.array_equal(one.actions, other.actions)
