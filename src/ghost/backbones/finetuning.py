"""Fine-tuning of GR00T N1.5's action head on a data set, by the paper's recipe or NVIDIA's.

The paper's recipe has 15,000 updates at 5e-5 with batches of 4, accumulated over 2. For LIBERO it is NVIDIA's: larger
batches, crops, colours. Eagle is frozen and the whole action head learns. Model and loss are lerobot's own classes; the
optimiser and the schedule are NVIDIA's (`ghost.backbones.recipe`). Training steps are drawn from the episodes on which
decoders train as well, by the episode split of the feature cache.

What is drawn depends on the seed and the step alone, not on the number of decoding workers, passes or GPUs
(`ghost.backbones.feeding`): with other passes or GPUs the loss is the same to rounding, with other workers to the byte.
A killed run goes on from its last state file. An update waits for nothing on the device. On a GPU the weights of the
head are float32 and it computes in bfloat16.
"""

import contextlib
import io
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.functional import dropout
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode

from ghost.backbones.feeding import Feed, Steps, ahead, dead_workers_told
from ghost.backbones.groot import Groot
from ghost.backbones.groot_environment import device
from ghost.backbones.groot_files import ASSETS, EAGLE
from ghost.backbones.recipe import LONGEST_GRADIENT, FineTuning, optimiser, schedule
from ghost.backbones.several_gpus import ALONE, Share
from ghost.data.lerobot import LeRobotDataset
from ghost.errors import GhostError
from ghost.runs.progress import Progress
from ghost.runs.units import workers
from ghost.training.checkpoint import read_tensors, write_tensors

STATE = "state.safetensors"  # of an unfinished run
STATE_EVERY_S = 600.0  # the head with its moments: 13 GB for the published one
LOOK_EVERY = 20  # updates; losses stay on the device until then
MICRO_BATCH = "GHOST_MICRO_BATCH"  # the variable that says how many samples a pass has at most


def save(model: Groot, processor: Path, folder: Path) -> tuple[str, ...]:
    """Write weights, configuration and processor into one folder. Returns their names below the run's folder."""
    shutil.rmtree(folder, ignore_errors=True)
    model.model.save_pretrained(folder, safe_serialization=True)
    (folder / EAGLE).mkdir()
    for name in ASSETS:
        shutil.copyfile(processor / name, folder / EAGLE / name)
    return listed(folder)


def listed(folder: Path) -> tuple[str, ...]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple(str(path.relative_to(folder.parent)) for path in files)


def micro_batch() -> int:
    """Samples of a pass at most, as the job says; 0: all."""
    said = os.environ.get(MICRO_BATCH) or "0"
    if not said.isdecimal():
        raise GhostError(f"{MICRO_BATCH} must be a whole number, got {said!r}")
    return int(said)


class WholeBatch(TorchFunctionMode):
    """Draws as if all rows of the batch went through the model at once; a pass gets those of its rows.

    The head draws noise, time and dropout with torch's own generator, for as many samples as a pass has. This draws for
    all samples of the batch instead, so that the cut of a batch changes no number that is drawn.
    """

    def __init__(self, rows: slice, total: int) -> None:
        super().__init__()
        self.rows, self.total = rows, total

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is dropout and kwargs["training"]:
            (x,) = args
            kept = dropout(torch.ones(self._all(x.shape), device=x.device, dtype=x.dtype), kwargs["p"])
            return x * kept[self.rows]
        name = getattr(function, "__name__", "")
        if name == "randn":
            return function(self._all(args[0]), **kwargs)[self.rows]
        if name == "_sample_dirichlet":  # of torch's Beta distribution; every row has the same parameters
            (alike,) = args
            return function(alike[:1].expand(self._all(alike.shape)).contiguous())[self.rows]
        return function(*args, **kwargs)

    def _all(self, shape: Any) -> tuple[int, ...]:
        if shape[0] != self.rows.stop - self.rows.start:
            raise AssertionError(f"the head draws {tuple(shape)} numbers, which is not by sample")
        return (self.total, *shape[1:])


class Passing(torch.nn.Module):
    """A pass through the model: what its rows add to the mean loss of the update."""

    def __init__(self, model: Any, settings: FineTuning) -> None:
        super().__init__()
        self.model, self.settings = model, settings

    def forward(self, batch: dict[str, Any]) -> Tensor:
        s, inputs = self.settings, dict(batch)
        rows = slice(*inputs.pop("rows"))
        torch.manual_seed(inputs.pop("seed"))
        with WholeBatch(rows, s.batch_size), torch.autocast("cuda", torch.bfloat16, enabled=device() == "cuda"):
            mean = self.model(inputs)["loss"]  # over its rows: each has as many real dimensions
        loss: Tensor = mean * ((rows.stop - rows.start) / (s.batch_size * s.accumulation))
        return loss


class Fit:
    """One run of the recipe on a loaded checkpoint, which it changes; or the share of one process in it."""

    def __init__(
        self,
        model: Groot,
        dataset: LeRobotDataset,
        settings: FineTuning,
        seed: int,
        state: Path,
        *,
        share: Share = ALONE,
        micro: int | None = None,  # samples of a pass at most; as the job says, if left out
        decoders: int | None = None,  # workers that decode; the free cores of the job, if left out
    ) -> None:
        self.model, self.settings, self.state, self.share = model, settings, state, share
        micro = micro_batch() if micro is None else micro
        self.decoders = workers() // share[1] - 1 if decoders is None else decoders
        steps = Steps(dataset, settings)
        self.feed = Feed(
            steps, model.processor, model.head.config, model.embodiment, settings, seed, share=share, micro=micro
        )
        model.head.float()
        with contextlib.redirect_stdout(io.StringIO()):  # lerobot prints what it tunes
            model.head.set_trainable_parameters(tune_projector=True, tune_diffusion_model=True)
        self.parameters = dict(model.head.named_parameters())
        self.optimizer = optimiser(model.head, settings)
        self.rate_share = schedule(self.optimizer, settings)
        self.losses: list[float] = []  # one per step, as far as they were looked at
        self.on_device: list[Tensor] = []  # the later ones
        self.passing: Callable[[dict[str, Any]], Tensor] = Passing(model.model, settings)
        self.incoming: Iterator[dict[str, Any]] = iter(())

    @property
    def updates(self) -> int:
        return len(self.losses) + len(self.on_device)

    def run(self, progress: Progress | None = None) -> list[float]:
        self._resume()
        saved_s = time.monotonic()
        self.model.head.train()
        self.model.model.compute_dtype = "float32"  # inputs arrive as float32; autocast does the rest
        with dead_workers_told():
            self.incoming = ahead(self.feed, self.updates, max(0, self.decoders))
            if self.share != ALONE:
                self.passing = DistributedDataParallel(self.passing, broadcast_buffers=False)  # type: ignore[arg-type]
            while self.updates < self.settings.steps:
                self.on_device.append(self.update(self.updates))
                due = time.monotonic() - saved_s > STATE_EVERY_S
                if due or self.updates % LOOK_EVERY == 0 or self.updates == self.settings.steps:
                    self._look(progress)
                if due and self.share[0] == 0:
                    self._save()
                    saved_s = time.monotonic()
        self.model.head.eval().requires_grad_(False)
        return self.losses

    def update(self, step: int) -> Tensor:
        """One update of the weights; returns the mean loss of its batches, on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * self.rate_share(step)
        self.optimizer.zero_grad()
        total = torch.zeros((), device=self.model.model.device)
        for number in range(self.feed.an_update):
            with self._apart(last=number == self.feed.an_update - 1):
                loss = self._passed(next(self.incoming))
                (loss * self.share[1]).backward()  # type: ignore[no-untyped-call]  # DDP takes the mean
            total += loss.detach()
        if self.share != ALONE:
            distributed.all_reduce(total)
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), LONGEST_GRADIENT)
        self.optimizer.step()
        return total

    def _passed(self, batch: dict[str, Any]) -> Tensor:
        try:
            return self.passing(batch)
        except torch.OutOfMemoryError:
            first, last = batch["rows"]
            raise GhostError(
                f"the memory of the GPU is too small for {last - first} samples at once; with"
                f" --config micro_batch={max(1, (last - first) // 2)} a batch goes through the model in parts, and the"
                " result is the same to rounding"
            ) from None

    def _apart(self, *, last: bool) -> contextlib.AbstractContextManager[None]:
        """Processes exchange their gradients in the last pass of an update only."""
        if last or not isinstance(self.passing, DistributedDataParallel):
            return contextlib.nullcontext()
        return self.passing.no_sync()

    def _look(self, progress: Progress | None) -> None:
        """Bring the losses here. This waits for the device."""
        self.losses += torch.stack(self.on_device).double().tolist()
        self.on_device.clear()
        if not all(map(math.isfinite, self.losses[-LOOK_EVERY:])):
            raise GhostError(
                f"the loss is not finite in the updates before {self.updates}; try a smaller learning_rate"
            )
        if progress is not None:
            progress(self.updates, self.settings.steps, f"loss {self.losses[-1]:.4f}")

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
