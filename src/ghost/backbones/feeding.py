"""What a fine-tuning reads: samples of a data set, decoded by worker processes ahead of the model.

An update of the recipe has `accumulation` batches of `batch_size` samples (B). How a batch is cut is a matter of memory
and of the number of GPUs, not of the recipe: each process takes its share of the rows, a pass through the model has
some of them. So nothing that is drawn depends on the cut. The samples of a batch are drawn together, crops and colours
by row, and a pass is padded to the longest text of the whole batch, because GR00T's head attends to padding, too.

Workers are forked by torch's own DataLoader: it hands passes over in order, through shared memory, at most AHEAD per
worker before the model asks for them.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ghost.backbones.groot import choose_cameras, eagle_inputs
from ghost.backbones.recipe import FineTuning
from ghost.backbones.views import jittered, middle
from ghost.data.lerobot import LeRobotDataset
from ghost.data.sampling import frames, held_back
from ghost.errors import GhostError

AHEAD = 2  # passes that a worker prepares before they are asked for
DEAD = "DataLoader worker"  # how torch begins to tell of a worker that ended by itself
TEXT = ("eagle_input_ids", "eagle_attention_mask")  # [n, L] of the passes; all else has one length


@dataclass(frozen=True)
class Failed:
    """What a worker returns in place of a pass that cannot be had."""

    why: str


class Steps:
    """The training steps of the data set. All but their pictures is in memory."""

    def __init__(self, dataset: LeRobotDataset, settings: FineTuning) -> None:
        if not settings.train_episodes <= len(dataset):
            raise GhostError(
                f"{dataset.folder} has {len(dataset)} episodes, train_episodes is {settings.train_episodes}"
            )
        chosen = np.arange(settings.train_episodes)
        if not settings.train_episodes:
            last = held_back(dataset, settings.test_episodes, settings.test_share)
            chosen = np.setdiff1d(np.arange(len(dataset)), last)
        self.dataset, self.numbers = dataset, chosen
        self.episodes = [dataset.episode(int(index)) for index in chosen]
        self.last = np.cumsum([len(data) for data in self.episodes])
        self.cameras = choose_cameras(settings.cameras, dataset.cameras)

    def draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Uniformly drawn steps: episode [count] and timestep [count]; the episodes rise, as `frames` needs them."""
        places = np.sort(rng.integers(0, self.last[-1], count))
        episode = np.searchsorted(self.last, places, side="right")
        return episode, places - np.concatenate([[0], self.last])[episode]

    def instruction(self, episode: int, timestep: int) -> str:
        return self.dataset.tasks[int(self.episodes[episode].task[timestep])]

    def views(self, episode: np.ndarray, timestep: np.ndarray) -> list[np.ndarray]:
        """Of each camera the pictures [n, h, w, 3]."""
        return [frames(self.dataset, camera, self.numbers[episode], timestep) for camera in self.cameras]


class Feed(Dataset[dict[str, Any] | Failed]):
    """The passes of one process, in order. `share` is (its number, how many there are); `micro` rows at most a pass."""

    def __init__(
        self,
        steps: Steps,
        processor: Any,
        head: Any,  # the configuration of GR00T's head
        embodiment: int,
        settings: FineTuning,
        seed: int,
        *,
        share: tuple[int, int] = (0, 1),
        micro: int = 0,  # 0: all rows of this process at once
    ) -> None:
        self.steps, self.processor, self.head, self.embodiment = steps, processor, head, embodiment
        self.settings, self.seed = settings, seed
        mine = np.array_split(np.arange(settings.batch_size), share[1])[share[0]]
        size = min(micro or len(mine), len(mine))
        self.cuts = [mine[first : first + size] for first in range(0, len(mine), size)]  # rows of a batch
        self.lengths: dict[str, int] = {}  # tokens of an instruction with its pictures

    @cached_property
    def an_update(self) -> int:
        """Passes that make an update."""
        return self.settings.accumulation * len(self.cuts)

    def __len__(self) -> int:
        return self.settings.steps * self.an_update

    def __getitem__(self, index: int) -> dict[str, Any] | Failed:
        try:
            step, of_update = divmod(index, self.an_update)
            part, cut = divmod(of_update, len(self.cuts))
            return self.read(step, part, self.cuts[cut])
        except GhostError as error:  # a worker's exception would arrive with the worker's traceback in its text
            return Failed(str(error))

    def read(self, step: int, part: int, rows: np.ndarray) -> dict[str, Any]:
        """A pass as lerobot's model reads it: Eagle's inputs, state, action chunk and mask; and what it draws by."""
        episode, timestep, seed = self.drawn(step, part)
        told = [self.steps.instruction(e, k) for e, k in zip(episode, timestep, strict=True)]
        seen = self.pictures(self.steps.views(episode[rows], timestep[rows]), (step, part), rows)
        numbers = [self.numbers(int(episode[row]), int(timestep[row])) for row in rows]
        longest = max(self.length(text, seen[0]) for text in set(told))
        eagle = [eagle_inputs(self.processor, [told[row]], [views]) for row, views in zip(rows, seen, strict=True)]
        return {
            **joined([self.padded(inputs, longest) for inputs in eagle]),
            **joined(numbers),
            "embodiment_id": torch.full((len(rows),), self.embodiment),
            "rows": (int(rows[0]), int(rows[-1]) + 1),
            "seed": seed,
        }

    def drawn(self, step: int, part: int) -> tuple[np.ndarray, np.ndarray, int]:
        """Episode [B] and timestep [B] of a batch, and the seed of the model's own draws."""
        rng = np.random.default_rng([self.seed, step, part])
        episode, timestep = self.steps.draw(self.settings.batch_size, rng)
        return episode, timestep, int(rng.integers(2**62))

    def pictures(self, views: list[np.ndarray], of: tuple[int, int], rows: np.ndarray) -> list[list[np.ndarray]]:
        """Of each row the pictures of its cameras as the model sees them; what is drawn is drawn by row."""
        s = self.settings
        if not s.jitter:
            views = [middle(view, s.crop, s.pixels) for view in views]
        seen = [[view[number] for view in views] for number in range(len(rows))]
        if not s.jitter:
            return seen
        rngs = [np.random.default_rng([self.seed, *of, int(row)]) for row in rows]
        return [jittered(each, s.crop, s.pixels, rng) for each, rng in zip(seen, rngs, strict=True)]

    def numbers(self, episode: int, timestep: int) -> dict[str, Tensor]:
        """State and action chunk of a sample, padded to the sizes of the head; each has a first axis of 1."""
        data, config = self.steps.episodes[episode], self.head
        d_state, d_action = data.state.shape[1], data.action.shape[1]
        if d_action > config.action_dim or d_state > config.max_state_dim:
            raise GhostError(
                f"{self.steps.dataset.folder}: state {d_state} and action {d_action} do not fit into the checkpoint's"
                f" {config.max_state_dim} and {config.action_dim}"
            )
        state = np.zeros((1, 1, config.max_state_dim), np.float32)
        action = np.zeros((1, config.action_horizon, config.action_dim), np.float32)
        mask = np.zeros_like(action)
        state[0, 0, :d_state] = data.state[timestep]
        ahead = np.minimum(timestep + np.arange(config.action_horizon), len(data) - 1)
        action[0, :, :d_action], mask[0, :, :d_action] = data.action[ahead], 1
        return {name: torch.from_numpy(x) for name, x in (("state", state), ("action", action), ("action_mask", mask))}

    def length(self, instruction: str, pictures: list[np.ndarray]) -> int:
        """How many tokens Eagle reads for an instruction beside pictures of these sizes."""
        if instruction not in self.lengths:
            blank = [np.zeros_like(picture) for picture in pictures]
            self.lengths[instruction] = eagle_inputs(self.processor, [instruction], [blank])[TEXT[0]].shape[1]
        return self.lengths[instruction]

    def padded(self, inputs: Mapping[str, Tensor], length: int) -> dict[str, Tensor]:
        """Filled up on the left, as Eagle's processor does it."""
        fill = dict(zip(TEXT, (self.processor.tokenizer.pad_token_id, 0), strict=True))
        return {
            name: torch.nn.functional.pad(x, (length - x.shape[1], 0), value=fill[name]) if name in fill else x
            for name, x in inputs.items()
        }


def joined(samples: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.cat([sample[name] for sample in samples]) for name in samples[0]}


def ahead(feed: Feed, first: int, workers: int) -> Iterator[dict[str, Any]]:
    """The passes of the updates from `first` on, decoded by so many workers; 0: here, when they are asked for."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the tokenizer's own threads do not survive a fork
    loader = DataLoader(
        feed,
        batch_size=None,
        sampler=range(first * feed.an_update, len(feed)),
        num_workers=workers,
        prefetch_factor=AHEAD if workers else None,
        multiprocessing_context="fork" if workers else None,  # they inherit data and processor, and use no GPU
        pin_memory=torch.cuda.is_available(),
    )
    for found in loader:
        if isinstance(found, Failed):
            raise GhostError(found.why)
        yield found


@contextmanager
def dead_workers_told() -> Iterator[None]:
    """torch raises wherever the program is when a worker ends. This makes one line of it."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith(DEAD):
            raise
        said = str(error).splitlines()[0].strip()
        raise GhostError(f"a worker that decodes pictures ended ({said}); it may have had too little memory") from None
