"""The beginning of a training at full size: a few updates at full width and batch, a state and a checkpoint.

`ghost rehearse` does this before anybody pays for the rest. A model that memory does not hold with its gradient and
moments is tried by layers: one of each kind, and two of one kind at a time. Time and memory of the whole follow. Its
checkpoint is the whole model's where memory holds that alone, so that the rehearsals behind it are of full size.
"""

import resource
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ghost.data.features import Sizes
from ghost.data.results import Measured, Outcome
from ghost.data.samples import Samples
from ghost.decoders import mlp
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.runs.driver import Job, Plan, Unit
from ghost.steps.train import first_runs, gather, teach
from ghost.training import building
from ghost.training.building import TooLargeError, build, count
from ghost.training.checkpoint import MODEL, save_decoder
from ghost.training.loop import STATE, Fit, Training, be_deterministic, read_training

UPDATES = 3  # timed ones, after one that is not
MATRIX = 1024  # of the product that tells how fast this device is
TO_SAVE = 2  # copies of the weights while a checkpoint is written, beside themselves
WRITTEN = 3  # copies of what is written while safetensors writes it, beside itself: its parts, and their join twice
STATES = 3  # of a training: weights, and two moments
SMALLEST = (mlp.Settings(hidden=8, d_context=8, d_latent=8, layers=1), Sizes(1, 8, 8, 1, 8))


@dataclass(frozen=True)
class Tried:
    """What some updates took: with the model, or with as many layers of it as memory holds."""

    fit: Fit
    updates_s: list[float]
    operations: float  # that an update calls
    parameters: int  # of the whole model
    built_s: float  # to make it
    layers: bool = False  # by layers


def train_briefly(job: Job) -> Plan:
    """Begin a training: what it measures is in seconds."""
    settings, training = read_training(job)

    def run(unit: Unit) -> Outcome:
        be_deterministic()
        start_s, taught_s = clock_s("cpu"), 0.0
        samples = gather(job, replace(training, distillation=0.0))
        gathered_s = clock_s("cpu") - start_s
        if training.distillation:
            start_s = clock_s(samples.device)
            samples.teacher = teach(job.needs[1][0], job.only_run(0), samples)
            taught_s = clock_s(samples.device) - start_s
        before_mb = peak_mb()
        try:
            tried = updates(job, settings, training, samples, unit)
        except TooLargeError:
            tried = by_layers(job, settings, training, samples, unit)
        start_s = clock_s(samples.device)
        kept = keep(tried.fit, unit.folder)
        save_decoder(unit.folder / MODEL, job.module.__name__, tried.fit.decoder, tried.fit.weights())
        more = tried.parameters / sum(p.numel() for p in tried.fit.parameters)
        fixed_s = more * (tried.built_s + clock_s(samples.device) - start_s)
        model_mb = more * (peak_mb() - before_mb)
        unwritten_mb = 0.0 if kept else WRITTEN * state_bytes(tried.parameters) / 2**20
        t, d = samples.stored
        measured = [
            Measured("layers", "tried", int(tried.layers)),
            Measured("update", "seconds", float(np.mean(tried.updates_s)), len(tried.updates_s)),
            Measured("update", "lowest", min(tried.updates_s)),
            Measured("update", "highest", max(tried.updates_s)),
            Measured("update", "calls_s", calls_s(tried)),
            Measured("update", "operations", tried.operations),
            Measured("run", "fixed_s", fixed_s),
            Measured("samples", "gathered_s", gathered_s),
            Measured("samples", "taught_s", taught_s),
            Measured("device", "flops", product_flops(samples.device)),
            Measured("train", "samples", len(samples)),
            Measured("sample", "bytes", 4 * t * d),
            Measured("model", "parameters", tried.parameters),
            Measured("memory", "whole_mb", before_mb + max(0.0, model_mb) + unwritten_mb),
            Measured("state", "kept", int(kept)),
        ]
        if tried.layers:
            del tried  # its memory is wanted for the whole model
            keep_whole(job, settings, samples, unit.folder)
        return Outcome(measured, {}, (MODEL,))

    return Plan(run, inputs=first_runs)


def updates(job: Job, settings: Any, training: Training, samples: Samples, unit: Unit) -> Tried:
    """Some updates with a full batch, and the seconds of each."""
    start_s = clock_s(samples.device)
    fit = Fit(job.module, settings, training, samples, unit.seed, unit.folder / STATE)
    built_s = clock_s(samples.device) - start_s
    places = fit.places[torch.arange(training.batch_size) % len(fit.places)]
    updates_s = [timed(fit, places) for _ in range(1 + UPDATES)][1:]
    return Tried(fit, updates_s, operations(fit), sum(p.numel() for p in fit.parameters), built_s)


def timed(fit: Fit, places: torch.Tensor) -> float:
    weights = fit.training.weights(fit.terms, 0)
    fit.decoder.train()
    start_s = clock_s(fit.samples.device)
    fit.step(fit.samples.batch(places), weights)
    return clock_s(fit.samples.device) - start_s


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations that torch calls, forwards and backwards."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def operations(fit: Fit) -> float:
    """How many operations an update calls."""
    with Counter() as counter:
        timed(fit, fit.places[:1])
    return float(counter.calls)


def calls_s(tried: Tried) -> float:
    """At most what it takes to call the operations of an update: its calls, or an update with the smallest batch."""
    by_calls_s = tried.operations * call_s(tried.fit.samples.device)
    if tried.layers:
        return by_calls_s
    return min(by_calls_s, *(timed(tried.fit, tried.fit.places[:1]) for _ in range(2)))


def call_s(device: str) -> float:
    """What it takes to call one operation: an update of the smallest decoder, whose arithmetic is nothing."""
    settings, sizes = SMALLEST
    with torch.random.fork_rng(devices=[]):
        decoder = mlp.Decoder(settings, sizes).to(device)
    shapes = ((1, sizes.tokens, sizes.d_token), (1, sizes.d_state), (1, sizes.horizon, sizes.d_action))
    tokens, state, action = (torch.zeros(shape, device=device) for shape in shapes)
    mask, task = torch.ones(sizes.d_action, dtype=torch.bool, device=device), torch.zeros(1, dtype=torch.int64)
    batch = Batch(tokens, state, action, mask, task.to(device))
    parameters, weights = list(decoder.parameters()), {"bc": 1.0, "distillation": 0.0}

    def update() -> None:
        loss = torch.stack(list(decoder.loss_terms(batch, weights, torch.Generator(device)).values())).sum()
        torch.autograd.grad(loss, parameters, materialize_grads=True)

    with Counter() as counter:
        update()

    def taken() -> float:
        start_s = clock_s(device)
        update()
        return clock_s(device) - start_s

    return float(np.median([taken() for _ in range(50)]) / counter.calls)


def by_layers(job: Job, settings: Any, training: Training, samples: Samples, unit: Unit) -> Tried:
    """A model with one layer of each kind, and the updates of the whole one, from those with few layers."""
    whole = {name: value for name, value in asdict(settings).items() if name.endswith("layers") and value > 1}
    if not whole:
        raise GhostError(f"{job.name}: its weights are too large for this machine, and it has no layers to try alone")
    ones = replace(settings, **dict.fromkeys(whole, 1))
    twos = {}
    for name in whole:
        two = updates(job, replace(ones, **{name: 2}), training, samples, unit)
        twos[name] = (float(np.median(two.updates_s)), two.operations)
        del two  # one model in memory at a time
    base = updates(job, ones, training, samples, unit)
    one_s, more_s, more_calls = float(np.median(base.updates_s)), 0.0, 0.0
    for name, value in whole.items():
        more_s += (value - 1) * max(0.0, twos[name][0] - one_s)
        more_calls += (value - 1) * max(0.0, twos[name][1] - base.operations)
    parameters = count(partial(job.module.Decoder, settings, samples.sizes))
    updates_s = [taken_s + more_s for taken_s in base.updates_s]
    return Tried(base.fit, updates_s, base.operations + more_calls, parameters, base.built_s, layers=True)


def keep_whole(job: Job, settings: Any, samples: Samples, folder: Path) -> None:
    """The whole model as it begins, in place of that of few layers, unless memory does not hold it even alone."""
    try:
        decoder = build(job.module, settings, samples.sizes, copies=TO_SAVE)
    except TooLargeError:
        return
    save_decoder(folder / MODEL, job.module.__name__, decoder, decoder.state_dict())


def keep(fit: Fit, folder: Path) -> bool:
    """Write the state of an unfinished run and read it again; False where memory does not hold what is written."""
    if not building.fits(WRITTEN * state_bytes(sum(p.numel() for p in fit.parameters))):
        return False
    fit._save()
    fit._resume()
    (folder / STATE).unlink()
    return True


def state_bytes(parameters: int) -> int:
    return STATES * 4 * parameters  # float32


def product_flops(device: str) -> float:
    """Operations a second in a product of two large matrices."""
    a = torch.randn(MATRIX, MATRIX, device=device)

    def product() -> float:
        start_s = clock_s(device)
        _ = a @ a
        return clock_s(device) - start_s

    return float(2 * MATRIX**3 / np.median([product() for _ in range(7)][2:]))


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def clock_s(device: str) -> float:
    """The processor's time, which other work does not stretch; with a GPU the clock's, when it is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()
