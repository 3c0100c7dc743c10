"""The settings of a fine-tuning of GR00T N1.5's action head, and NVIDIA's optimiser and schedule.

The numbers are those of NVIDIA's `scripts/gr00t_finetune.py` and `gr00t/experiment/trainer.py` at the tag
n1.5-release of github.com/NVIDIA/Isaac-GR00T; the schedule and the length of gradients are the Trainer's of
transformers, which it uses.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ghost.runs.settings import at_least_one, below_one, not_negative

BETAS, EPSILON, WEIGHT_DECAY = (0.95, 0.999), 1e-8, 1e-5
LONGEST_GRADIENT = 1.0


@dataclass(frozen=True)
class FineTuning:
    checkpoint: str  # a folder, or a name on the hub
    revision: str  # the commit, for a name on the hub
    processor: str  # Eagle's: likewise; empty: the folder `eagle` of the checkpoint
    processor_revision: str
    embodiment: str
    cameras: tuple[str, ...]
    horizon: int
    euler_steps: int  # of the flow, from noise to an action
    train_episodes: int  # the first so many; 0: all but those that test_episodes or test_share hold back
    steps: int  # updates
    batch_size: int
    accumulation: int  # batches per update
    learning_rate: float
    warmup_share: float
    test_episodes: int = 0  # of each task, the last ones, are not trained on: the feature cache's test episodes
    test_share: float = 0.0  # likewise, as a share of each task's episodes
    crop: float = 1.0  # the share of a picture's sides that is seen (ghost.backbones.views)
    pixels: int = 0  # the side to which pictures are resized; 0: as they are
    jitter: bool = False  # crop at random places, in other colours

    def __post_init__(self) -> None:
        at_least_one(self, "horizon", "euler_steps", "batch_size", "accumulation")
        not_negative(self, "steps", "train_episodes", "test_episodes", "pixels")
        below_one(self, "test_share")
        if [self.train_episodes > 0, self.test_episodes > 0, self.test_share > 0].count(True) != 1:
            raise ValueError(
                f"one of train_episodes, test_episodes and test_share must be positive, got {self.train_episodes},"
                f" {self.test_episodes} and {self.test_share}"
            )
        if not 0 < self.crop <= 1:
            raise ValueError(f"crop must lie above 0 and at most at 1, got {self.crop}")
        if not (self.learning_rate > 0 and 0 <= self.warmup_share < 1):
            raise ValueError(
                f"learning_rate must be positive and warmup_share in [0, 1), got {self.learning_rate} and"
                f" {self.warmup_share}"
            )


@dataclass(frozen=True)
class Flow:
    """Of a checkpoint that takes its weights from another one."""

    euler_steps: int

    def __post_init__(self) -> None:
        at_least_one(self, "euler_steps")


def optimiser(head: torch.nn.Module, settings: FineTuning) -> torch.optim.AdamW:
    """AdamW on the whole head. Biases and the weights of layer norms do not decay."""
    parts = importlib.import_module("transformers.trainer_pt_utils")
    decaying = {name for name in parts.get_parameter_names(head, [torch.nn.LayerNorm]) if "bias" not in name}
    named = list(head.named_parameters())
    groups = [
        {"params": [x for name, x in named if (name in decaying) == decays], "weight_decay": WEIGHT_DECAY * decays}
        for decays in (True, False)
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=BETAS, eps=EPSILON)


def schedule(optimizer: Any, settings: FineTuning) -> Callable[[int], float]:
    """The share of the learning rate at a step: it rises from 0, then falls to 0 by half a cosine."""
    schedules = importlib.import_module("transformers.optimization")
    warm_up = math.ceil(settings.warmup_share * settings.steps)
    share: Callable[[int], float] = schedules.get_cosine_schedule_with_warmup(
        optimizer, warm_up, max(1, settings.steps)
    ).lr_lambdas[0]
    return share
