"""Fine-tuning of GR00T N1.5's action head on a data set, by the paper's recipe.

The recipe has 15,000 updates at 5e-5 with batches of 4, accumulated over 2. Eagle is frozen and the whole action head
learns (lerobot's and NVIDIA's default). Model, loss, AdamW and the cosine schedule with its warm-up are lerobot's own
classes; the schedule is stretched over the steps. Training steps are drawn from the episodes on which decoders train as
well, by the episode split of the feature cache. For LIBERO the recipe is NVIDIA's: larger batches, crops, colours.

What is drawn depends on the seed and the step alone. A killed run goes on from its last state file. On a GPU the
weights of the head are float32 and it computes in bfloat16.
"""

import contextlib
import importlib
import io
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ghost.backbones.groot import Groot, choose_cameras
from ghost.backbones.groot_environment import device
from ghost.backbones.groot_files import ASSETS, EAGLE
from ghost.backbones.views import jittered, middle
from ghost.data.lerobot import LeRobotDataset
from ghost.data.sampling import frames, held_back
from ghost.errors import GhostError
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one, below_one, not_negative
from ghost.training.checkpoint import read_tensors, write_tensors

STATE = "state.safetensors"  # of an unfinished run
STATE_EVERY_S = 600.0  # the head with its moments: 13 GB for the published one


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


def save(model: Groot, processor: Path, folder: Path) -> tuple[str, ...]:
    """Write weights, configuration and processor into one folder. Returns their names below the run's folder."""
    shutil.rmtree(folder, ignore_errors=True)
    model.model.save_pretrained(folder, safe_serialization=True)
    (folder / EAGLE).mkdir()
    for name in ASSETS:
        shutil.copyfile(processor / name, folder / EAGLE / name)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple(str(path.relative_to(folder.parent)) for path in files)


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

    def batch(self, model: Groot, settings: FineTuning, rng: np.random.Generator) -> dict[str, Tensor]:
        """B uniformly drawn steps as lerobot's model reads them: Eagle's inputs, state, action chunk and its mask."""
        config, B = model.head.config, settings.batch_size
        places = np.sort(rng.integers(0, self.last[-1], B))  # [B], rising, as `frames` needs them
        episode = np.searchsorted(self.last, places, side="right")
        step = places - np.concatenate([[0], self.last])[episode]
        state = np.zeros((B, 1, config.max_state_dim), np.float32)
        action = np.zeros((B, config.action_horizon, config.action_dim), np.float32)
        mask = np.zeros_like(action)
        instructions = []
        for b, (e, k) in enumerate(zip(episode, step, strict=True)):
            data = self.episodes[e]
            d_state, d_action = data.state.shape[1], data.action.shape[1]
            if d_action > config.action_dim or d_state > config.max_state_dim:
                raise GhostError(
                    f"{self.dataset.folder}: state {d_state} and action {d_action} do not fit into the checkpoint's"
                    f" {config.max_state_dim} and {config.action_dim}"
                )
            state[b, 0, :d_state] = data.state[k]
            action[b, :, :d_action] = data.action[np.minimum(k + np.arange(config.action_horizon), len(data) - 1)]
            mask[b, :, :d_action] = 1
            instructions.append(self.dataset.tasks[int(data.task[k])])
        cameras = choose_cameras(settings.cameras, self.dataset.cameras)
        views = [frames(self.dataset, camera, self.numbers[episode], step) for camera in cameras]  # V of [B, h, w, 3]
        if not settings.jitter:
            views = [middle(view, settings.crop, settings.pixels) for view in views]
        seen = [[view[b] for view in views] for b in range(B)]
        if settings.jitter:
            seen = [jittered(pictures, settings.crop, settings.pixels, rng) for pictures in seen]
        return {
            **model.inputs(instructions, seen),
            "state": torch.from_numpy(state),
            "action": torch.from_numpy(action),
            "action_mask": torch.from_numpy(mask),
            "embodiment_id": torch.full((B,), model.embodiment),
        }


class Fit:
    """One run of the recipe on a loaded checkpoint, which it changes."""

    def __init__(self, model: Groot, dataset: LeRobotDataset, settings: FineTuning, seed: int, state: Path) -> None:
        self.model, self.settings, self.seed, self.state = model, settings, seed, state
        self.data = Steps(dataset, settings)
        model.head.float()
        with contextlib.redirect_stdout(io.StringIO()):  # lerobot prints what it tunes
            model.head.set_trainable_parameters(tune_projector=True, tune_diffusion_model=True)
        self.parameters = dict(model.head.named_parameters())
        policy = importlib.import_module("lerobot.policies.groot.configuration_groot")
        preset = policy.GrootConfig(optimizer_lr=settings.learning_rate, device=device()).get_optimizer_preset()
        self.longest_gradient = preset.grad_clip_norm
        self.optimizer = preset.build(list(self.parameters.values()))
        self.share = schedule(self.optimizer, settings)
        self.losses: list[float] = []  # one per step

    def run(self, progress: Progress) -> list[float]:
        self._resume()
        saved_s = time.monotonic()
        self.model.head.train()
        self.model.model.compute_dtype = "float32"  # inputs arrive as float32; autocast does the rest
        while len(self.losses) < self.settings.steps:
            self.losses.append(self.update(len(self.losses)))
            progress(len(self.losses), self.settings.steps, f"loss {self.losses[-1]:.4f}")
            if time.monotonic() - saved_s > STATE_EVERY_S:
                self._save()
                saved_s = time.monotonic()
        self.model.head.eval().requires_grad_(False)
        return self.losses

    def update(self, step: int) -> float:
        """One update of the weights; returns the mean loss of its batches."""
        s, total = self.settings, 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = s.learning_rate * self.share(step)
        self.optimizer.zero_grad()
        for part in range(s.accumulation):
            rng = np.random.default_rng([self.seed, step, part])
            batch = self.data.batch(self.model, s, rng)
            torch.manual_seed(int(rng.integers(2**62)))  # the head draws time, noise and dropout with torch
            with torch.autocast("cuda", torch.bfloat16, enabled=device() == "cuda"):
                loss = self.model.model(batch)["loss"] / s.accumulation
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.longest_gradient)
        self.optimizer.step()
        return total

    def _save(self) -> None:
        moments = {
            f"{key}/{name}": value
            for name, parameter in self.parameters.items()
            for key, value in self.optimizer.state[parameter].items()
        }
        weights = {f"weight/{name}": parameter for name, parameter in self.parameters.items()}
        losses = torch.tensor(self.losses, dtype=torch.float64)
        write_tensors(self.state, {**moments, **weights, "losses": losses}, {})

    def _resume(self) -> None:
        if not self.state.is_file():
            return
        tensors, _ = read_tensors(self.state)
        self.losses = tensors["losses"].tolist()
        for name, parameter in self.parameters.items():
            parameter.data.copy_(tensors[f"weight/{name}"])
            self.optimizer.state[parameter] = {
                key: tensors[f"{key}/{name}"].to(parameter.device if key != "step" else "cpu")
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"{key}/{name}" in tensors
            }


def schedule(optimizer: Any, settings: FineTuning) -> Callable[[int], float]:
    """The share of the learning rate at a step: lerobot's warm-up and cosine, stretched over the steps."""
    schedulers = importlib.import_module("lerobot.optim.schedulers")
    config = schedulers.CosineDecayWithWarmupSchedulerConfig(
        num_warmup_steps=int(settings.warmup_share * settings.steps),
        num_decay_steps=max(1, settings.steps),
        peak_lr=settings.learning_rate,
        decay_lr=0.1 * settings.learning_rate,
    )
    share: Callable[[int], float] = config.build(optimizer, max(1, settings.steps)).lr_lambdas[0]
    return share
