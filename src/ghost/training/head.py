"""GR00T's own action head as a trained model. It is not loaded: the feature cache holds what it predicts.

The head reads all tokens of Eagle, of which the cache keeps some, and it needs GR00T's environment. So it acts once, on
every sample, when the features are cached. Its predictions have the normalisation of the recorded actions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from torch import Generator, Tensor

from ghost.data.features import FeatureCache, Sizes
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.forms import require
from ghost.runs.records import Run

FINETUNE = "finetune"  # the step that trains it


@dataclass(frozen=True)
class FineTunedHead:
    name: str  # of its run
    parameters: int
    train_episodes: int  # that it was trained on, from the first on

    @staticmethod
    def made(run: Run) -> bool:
        """Whether a run fine-tuned the head."""
        return bool(run.record()["step"] == FINETUNE)

    @classmethod
    def of(cls, run: Run, features: Run) -> Self:
        """The head of a run. It must be the one that predicted the actions of the feature cache."""
        settings = run.record()["settings"]
        require(settings.get("train_episodes"), range(1, 10**6), f"{run.name}: train_episodes")
        if features.record()["inputs"].get(run.name, {}).get("run_id") != run.run_id:
            raise GhostError(f"{features.name}: its predicted actions are not those of {run.name}")
        return cls(run.name, int(run.value("head", "parameters")), settings["train_episodes"])

    def predict(self, cache: FeatureCache, indices: np.ndarray) -> np.ndarray:
        """What it predicts for these samples [n, H, d_a]."""
        return cache.predicted_action(indices)

    def predict_unseen(self, cache: FeatureCache, indices: np.ndarray) -> np.ndarray:
        """The same for samples to test on. One of an episode that it was trained on is refused."""
        seen = np.flatnonzero(cache.episode[indices] < self.train_episodes)
        if len(seen):
            raise GhostError(
                f"{self.name} was trained on the first {self.train_episodes} episodes: it cannot be tested on episode"
                f" {cache.episode[indices][seen[0]]}"
            )
        return self.predict(cache, indices)


class OwnHead:
    """The head in closed loop, with the methods of a decoder. It acted when its backbone encoded the observation."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes

    def parameters(self) -> Iterator[Tensor]:
        """None here: the backbone holds them."""
        return iter(())

    def act(self, batch: Batch, generator: Generator | None) -> Tensor:
        """The prediction [B, H, d_a] that came with the tokens. Its noise is seeded by episode and plan."""
        if batch.teacher is None:
            raise GhostError("this backbone has no action head of its own")
        return batch.teacher
