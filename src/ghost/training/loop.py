"""The one training loop: Adam on the weighted sum of a model's loss terms, for decoders and agents alike.

A run depends on its seed alone. Initial weights, order of samples, and noise come from three generators of the run, and
one thread computes, since sums that are split over threads round differently. An unfinished run keeps its state in a
file; a killed run goes on from there to the same bytes.

An update waits for nothing: losses stay on the device until the epoch ends, the number of updates is counted here.
"""

import copy
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam

from ghost.data.results import Measured, Outcome
from ghost.decoders.contract import Batch
from ghost.decoders.losses import contrastive_weight, masked_mse
from ghost.errors import GhostError
from ghost.runs.driver import Job, Unit
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one, below_one, not_negative, positive
from ghost.training.building import build
from ghost.training.checkpoint import MODEL, read_tensors, save_decoder, write_tensors

STATE = "state.safetensors"  # of an unfinished run
STATE_EVERY_S = 60.0
COPIES = 4  # of the weights: themselves, their gradient, Adam's two moments
FULL, HALF = "float32", "bf16"
WEIGHTS = ("contrastive", "basin", "phase", "pull", "kl", "consistency", "distillation")  # of terms beside the first


@dataclass(frozen=True)
class Training:
    """How a decoder is trained; what is left out is off. Zero weights switch their loss term off."""

    epochs: int
    batch_size: int
    learning_rate: float
    split: str = "sample"  # or "episode", see ghost.data.features
    contrastive: float = 0.0  # λ_c
    curriculum_share: float = 0.0  # λ_c falls linearly to 0 over this share of the epochs; 0: it is constant
    basin: float = 0.0
    phase: float = 0.0  # of the inferred sub-phase
    pull: float = 0.0  # of the latents to their phase's anchor
    kl: float = 0.0
    consistency: float = 0.0
    distillation: float = 0.0  # d: (1 - d) of the decoder's first term and d of the teacher's
    final_rate: float = 1.0  # the learning rate falls to this share of itself, by half a cosine
    window: int = 1  # sequential chunks that are trained on together
    gap: int = 1  # steps from one to the next
    tasks: tuple[str, ...] = ()  # only these; all when empty
    samples: int = 0  # at most this many, evenly spaced over the training samples; all when 0
    noise: float = 0.0  # σ of the Gaussian noise on tokens and state
    validation_share: float = 0.0  # of the training samples held back; the weights of the best epoch on them are kept
    patience: int = 0  # stop after this many epochs without a better one; never when 0
    precision: str = FULL  # of the products in an update: float32, or bf16; weights and moments are float32 always

    def __post_init__(self) -> None:
        at_least_one(self, "epochs", "batch_size", "window", "gap")
        positive(self, "learning_rate")
        not_negative(self, "contrastive", "basin", "phase", "pull", "kl", "consistency", "samples", "noise", "patience")
        for name in ("curriculum_share", "distillation", "final_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        below_one(self, "validation_share")
        if self.patience and not self.validation_share:
            raise ValueError(f"patience = {self.patience} needs a validation_share")
        if self.precision not in (FULL, HALF):
            raise ValueError(f"precision must be {FULL} or {HALF}, got {self.precision!r}")
        if self.curriculum_share and not self.contrastive:
            raise ValueError(f"curriculum_share = {self.curriculum_share} needs a contrastive weight")

    def weights(self, terms: tuple[str, ...], epoch: int) -> dict[str, float]:
        """The weight of each of a decoder's loss terms at an epoch. Its first term is the imitation itself."""
        given = {name: getattr(self, name) for name in WEIGHTS if name != "contrastive"}
        given["contrastive"] = contrastive_weight(self.contrastive, epoch, self.curriculum_share * self.epochs)
        given[terms[0]] = 1 - self.distillation
        return {name: given[name] for name in terms}


def fit(job: Job, settings: Any, training: Training, samples: Any, unit: Unit) -> Outcome:
    """Train the model of one seed and write its checkpoint into the unit's folder."""
    be_deterministic()
    progress = Progress("epochs")

    def tell(epoch: int, text: str) -> None:
        done, total = unit.number * training.epochs + epoch, unit.count * training.epochs
        progress(done, total, f"seed {unit.seed}, {text}")

    run = Fit(job.module, settings, training, samples, unit.seed, unit.folder / STATE)
    run.run(tell)
    save_decoder(unit.folder / MODEL, job.module.__name__, run.decoder, run.weights())
    return run.outcome()


def read_training(job: Job) -> tuple[Any, Training]:
    """The settings of the model and of its training. A weight of a loss term that the model lacks is refused."""
    settings, training = job.read(job.module.Settings, Training)
    for name in WEIGHTS:
        if getattr(training, name) and name not in job.module.TERMS:
            known = ", ".join(job.module.TERMS)
            raise GhostError(f"{job.name}: {job.module.__name__} has no loss term {name!r}; it has {known}")
    return settings, training


def be_deterministic() -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what CUDA asks for
    # as torch.use_deterministic_algorithms(True), which imports torch's compiler first: 2 s of every training
    torch.set_deterministic_debug_mode("error")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a costly debugging aid
    torch.set_num_threads(1)


class Fit:
    """One run: the decoder, the optimiser's moments, the generators and the curves, all of which a state file holds."""

    def __init__(
        self, module: ModuleType, settings: Any, training: Training, samples: Any, seed: int, state: Path
    ) -> None:
        self.training, self.samples, self.terms, self.state = training, samples, module.TERMS, state
        initial, order, noise, held_back = (int(x) for x in np.random.SeedSequence(seed).generate_state(4))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(initial)
            self.decoder: Any = build(module, settings, samples.sizes, copies=COPIES).to(samples.device)
        self.order = torch.Generator().manual_seed(order)
        self.noise = torch.Generator(samples.device).manual_seed(noise)
        self.places, self.validation_places = self._hold_back(held_back)
        self.names, self.parameters = zip(*self.decoder.named_parameters(), strict=True)
        self.first = [torch.zeros_like(p) for p in self.parameters]  # Adam's moments
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.steps = [torch.zeros((), device=samples.device) for _ in self.parameters]  # Adam's count, on the device
        self.updates = 0  # the same count
        self.curves: dict[str, list[float]] = {"loss": [], **{name: [] for name in self.terms}, "validation": []}
        self.best: dict[str, Tensor] = {}  # weights of the best epoch on the validation samples

    def run(self, tell: Callable[[int, str], None]) -> None:
        self._resume()
        saved_s = time.monotonic()
        while not self.finished:
            self.epoch()
            if not np.isfinite(self.curves["loss"][-1]):
                raise GhostError(f"the loss is not finite in epoch {self.epochs_run}; try a smaller learning_rate")
            tell(self.epochs_run, f"loss {self.curves['loss'][-1]:.4f}")
            if time.monotonic() - saved_s > STATE_EVERY_S or self.finished:
                self._save()
                saved_s = time.monotonic()
        tell(self.training.epochs, f"{self.epochs_run} epochs")

    @property
    def epochs_run(self) -> int:
        return len(self.curves["loss"])

    @property
    def finished(self) -> bool:
        t, validation = self.training, self.curves["validation"]
        since_best = len(validation) - 1 - int(np.argmin(validation)) if validation else 0
        return self.epochs_run >= t.epochs or 0 < t.patience <= since_best

    def epoch(self) -> None:
        """One pass over the training samples, then a look at the validation samples if there are any."""
        t = self.training
        weights = t.weights(self.terms, self.epochs_run)
        sums = {name: torch.zeros((), device=self.samples.device) for name in ("loss", *self.terms)}
        self.decoder.train()
        self.samples.prepare(self.decoder, self.noise, self.epochs_run / t.epochs)
        order = self.places[torch.randperm(len(self.places), generator=self.order)]
        for places in torch.split(self.samples.arranged(order), t.batch_size):
            for name, value in self.step(self.samples.batch(places), weights).items():
                sums[name] += value * len(places)
        for name, value in sums.items():
            self.curves[name].append(value.item() / len(self.places))
        if len(self.validation_places):
            self.curves["validation"].append(self.validate())
            if np.argmin(self.curves["validation"]) == self.epochs_run - 1:
                self.best = copy.deepcopy(self.decoder.state_dict())

    def step(self, batch: Batch, weights: Mapping[str, float]) -> dict[str, Tensor]:
        """One update; returns the loss before it and its terms, unweighted."""
        if self.training.noise:
            batch = self._noisy(batch)
        with torch.autocast(self.samples.device, torch.bfloat16, enabled=self.training.precision == HALF):
            terms = self.decoder.loss_terms(batch, weights, self.noise)
        loss = torch.stack([weights[name] * term for name, term in terms.items()]).sum()
        # what has no part in the loss, such as the bias under ∇U, has a zero gradient and stays as it is
        gradients = torch.autograd.grad(loss, self.parameters, materialize_grads=True)
        with torch.no_grad():  # the function behind torch.optim.Adam: no import of the compiler, and the state is ours
            adam(
                list(self.parameters),
                list(gradients),
                self.first,
                self.second,
                [],
                self.steps,
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._rate(),
                weight_decay=0.0,
                eps=1e-8,
                maximize=False,
            )
        self.updates += 1
        return {"loss": loss.detach(), **{name: term.detach() for name, term in terms.items()}}

    def validate(self) -> float:
        """Mean squared error of the actions on the samples held back; the same draws every epoch."""
        self.decoder.eval()
        generator = torch.Generator(self.samples.device).manual_seed(0)
        total = 0.0
        with torch.no_grad():
            for batch in self.samples.chunks(self.validation_places):
                error = masked_mse(self.decoder.act(batch, generator), batch.action, batch.action_mask)
                total += error.item() * len(batch)  # in double precision, as the curves are
        return total / len(self.validation_places)

    def weights(self) -> dict[str, Tensor]:
        """The result: the last weights, or those of the best epoch where samples were held back."""
        return self.best or self.decoder.state_dict()

    def outcome(self) -> Outcome:
        n = len(self.places)
        best = int(np.argmin(self.curves["validation"])) if self.best else self.epochs_run - 1
        used = [name for name in self.terms if any(self.curves[name])]
        measured = [
            Measured("train", "loss", self.curves["loss"][best], n),
            *(Measured("train", f"{name}_loss", self.curves[name][best], n) for name in used),
            Measured("train", "samples", n),
            Measured("train", "epochs", self.epochs_run),
            Measured("train", "updates", self.updates),
            Measured("train", "kept_epoch", best + 1),
            Measured("model", "parameters", sum(p.numel() for p in self.parameters)),
        ]
        if self.best:
            measured.append(Measured("validation", "mse", self.curves["validation"][best], len(self.validation_places)))
        arrays = {f"training/{name}": np.array(curve) for name, curve in self.curves.items() if any(curve)}
        return Outcome(measured, arrays, (MODEL,))

    def _hold_back(self, seed: int) -> tuple[Tensor, Tensor]:
        """Training and validation samples: whole episodes are held back where the split is by episode, else samples."""
        n, share = len(self.samples), self.training.validation_share
        groups = self.samples.episode if self.training.split == "episode" else np.arange(n)
        names = np.unique(groups)
        chosen = np.random.default_rng(seed).permutation(names)[: round(share * len(names))]
        held_back = np.isin(groups, chosen)
        if share and not 0 < held_back.sum() < n:
            raise GhostError(f"validation_share = {share} of {len(names)} leaves nothing to train or to validate on")
        places = self.samples.places()
        mask = torch.from_numpy(held_back).to(places.device)
        return places[~mask], places[mask]

    def _noisy(self, batch: Batch) -> Batch:
        def noisy(x: Tensor) -> Tensor:
            return x + self.training.noise * torch.empty_like(x).normal_(generator=self.noise)

        return replace(batch, tokens=noisy(batch.tokens), state=noisy(batch.state))

    def _rate(self) -> float:
        """The learning rate of the next update."""
        t = self.training
        total = t.epochs * math.ceil(len(self.places) / t.batch_size)
        done = min(1.0, self.updates / total)
        return t.learning_rate * (t.final_rate + (1 - t.final_rate) * (1 + math.cos(math.pi * done)) / 2)

    def _save(self) -> None:
        tensors = {
            **{f"model/{name}": value for name, value in self.decoder.state_dict().items()},
            **{f"best/{name}": value for name, value in self.best.items()},
            **{f"first/{name}": value for name, value in zip(self.names, self.first, strict=True)},
            **{f"second/{name}": value for name, value in zip(self.names, self.second, strict=True)},
            **{f"curve/{name}": torch.tensor(curve, dtype=torch.float64) for name, curve in self.curves.items()},
            "steps": self.steps[0],
            "order": self.order.get_state(),
            "noise": self.noise.get_state(),
        }
        write_tensors(self.state, tensors, {})

    def _resume(self) -> None:
        if not self.state.is_file():
            return
        tensors, _ = read_tensors(self.state)
        try:
            self._set(tensors)
        except (KeyError, RuntimeError, TypeError) as error:
            said = str(error).splitlines()[0]
            raise GhostError(f"{self.state} is not of this run: {said}; remove it to begin anew") from None

    def _set(self, tensors: Mapping[str, Tensor]) -> None:
        def below(prefix: str) -> dict[str, Tensor]:
            return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

        self.decoder.load_state_dict(below("model/"))
        self.best = {name: value.to(self.samples.device) for name, value in below("best/").items()}
        for mine, prefix in ((self.first, "first/"), (self.second, "second/")):
            for tensor, name in zip(mine, self.names, strict=True):
                tensor.copy_(tensors[prefix + name])
        for count in self.steps:
            count.copy_(tensors["steps"])
        self.updates = int(tensors["steps"])
        self.curves = {name: curve.tolist() for name, curve in below("curve/").items()}
        self.order.set_state(tensors["order"])
        self.noise.set_state(tensors["noise"])
