"""The beginning of a training at full size: a few updates at full width and batch, a state and a checkpoint.

`ghost rehearse` does this before anybody pays for the rest. A model that memory does not hold with its gradient and
moments is tried by layers: one of each kind, then two of one kind at a time. The time of the whole follows.
"""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ghost.data.results import Measured, Outcome
from ghost.data.samples import Samples
from ghost.errors import GhostError
from ghost.runs.driver import Job, Plan, Unit
from ghost.steps.train import first_runs, gather
from ghost.training.building import TooLargeError
from ghost.training.checkpoint import MODEL, save_decoder
from ghost.training.loop import STATE, Fit, Training, be_deterministic, read_training

UPDATES = 3  # timed ones, after one that is not
MATRIX = 1024  # of the product that tells how fast this device is


def train_briefly(job: Job) -> Plan:
    """Begin a training: what it measures is in seconds."""
    settings, training = read_training(job)

    def run(unit: Unit) -> Outcome:
        be_deterministic()
        samples = gather(job, training)
        try:
            fit, updates_s = updates(job, settings, training, samples, unit)
            measured = [Measured("layers", "tried", 0)]
        except TooLargeError:
            fit, updates_s, tried = by_layers(job, settings, training, samples, unit)
            measured = [Measured("layers", "tried", tried)]
        keep(fit, unit.folder)
        save_decoder(unit.folder / MODEL, job.module.__name__, fit.decoder, fit.weights())
        t, d = samples.stored
        measured += [
            Measured("update", "seconds", float(np.mean(updates_s)), len(updates_s)),
            Measured("update", "lowest", min(updates_s)),
            Measured("update", "highest", max(updates_s)),
            Measured("update", "of_one_sample", one_sample_s(fit)),
            Measured("device", "flops", product_flops(samples.device)),
            Measured("train", "samples", len(samples)),
            Measured("sample", "bytes", 4 * t * d),
            Measured("model", "parameters", sum(p.numel() for p in fit.parameters)),
        ]
        return Outcome(measured, {}, (MODEL,))

    return Plan(run, inputs=first_runs)


def updates(job: Job, settings: Any, training: Training, samples: Samples, unit: Unit) -> tuple[Fit, list[float]]:
    """Some updates with a full batch, and the seconds of each."""
    fit = Fit(job.module, settings, training, samples, unit.seed, unit.folder / STATE)
    places = fit.places[torch.arange(training.batch_size) % len(fit.places)]
    return fit, [timed(fit, places) for _ in range(1 + UPDATES)][1:]


def timed(fit: Fit, places: torch.Tensor) -> float:
    weights = fit.training.weights(fit.terms, 0)
    fit.decoder.train()
    start_s = clock_s(fit.samples.device)
    fit.step(fit.samples.batch(places), weights)
    return clock_s(fit.samples.device) - start_s


def one_sample_s(fit: Fit) -> float:
    """Of an update with the smallest batch: little arithmetic, so what it costs to call all operations, at most."""
    return min(timed(fit, fit.places[:1]) for _ in range(2))


def by_layers(
    job: Job, settings: Any, training: Training, samples: Samples, unit: Unit
) -> tuple[Fit, list[float], int]:
    """A model with one layer of each kind, the updates of the whole model (from those with few layers), and 1."""
    whole = {name: value for name, value in asdict(settings).items() if name.endswith("layers") and value > 1}
    if not whole:
        raise GhostError(f"{job.name}: its weights are too large for this machine, and it has no layers to try alone")
    ones = replace(settings, **dict.fromkeys(whole, 1))
    fit, base_s = updates(job, ones, training, samples, unit)
    more_s = 0.0
    for name, value in whole.items():
        _, two_s = updates(job, replace(ones, **{name: 2}), training, samples, unit)
        more_s += (value - 1) * max(0.0, float(np.median(two_s) - np.median(base_s)))
    return fit, [seconds + more_s for seconds in base_s], 1


def keep(fit: Fit, folder: Path) -> None:
    """Write the state of an unfinished run and read it again."""
    fit._save()
    fit._resume()
    (folder / STATE).unlink()


def product_flops(device: str) -> float:
    """Operations a second in a product of two large matrices."""
    a = torch.randn(MATRIX, MATRIX, device=device)

    def product() -> float:
        start_s = clock_s(device)
        _ = a @ a
        return clock_s(device) - start_s

    return float(2 * MATRIX**3 / np.median([product() for _ in range(7)][2:]))


def clock_s(device: str) -> float:
    """The processor's time, which other work does not stretch; with a GPU the clock's, when it is done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()
