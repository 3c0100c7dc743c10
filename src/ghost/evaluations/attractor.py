"""Does a trained Ghost contract toward minima of its own potential? On held-out samples; n steps, d_z latent.

We follow these along the flow z^(0..n) of each sample:

* |∇U(z^(k); e)|, its mean and standard deviation over samples (fig:attractor_emergence); by how much its mean falls
  (`contraction_percent`); in which share of the samples it falls at every step (`monotone_share`).
* |∇U| / |b| at the start and at the end, as a ratio of means. It says which of the two drives the flow.
* |z^(k) - z*| per task (fig:attractor_basins). It ends at zero by definition, so this test cannot fail.
* So there is one test that can fail: the flow goes on for `continued_steps`. `continued_distance` is how far it moves
  away from z*, relative to the way before, |z^(n + more) - z^(n)| / |z^(n) - z^(0)|. It is 0 at an attractor.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ghost.data.features import FeatureCache
from ghost.data.results import Measured, Outcome
from ghost.data.samples import Samples
from ghost.decoders.contract import Batch
from ghost.dynamics.integrators import rollout
from ghost.evaluations.predict import Decoders, device_of, gather, only, per_task
from ghost.evaluations.switching import embed
from ghost.runs.progress import Progress
from ghost.runs.settings import not_negative


@dataclass(frozen=True)
class Settings:
    split: str
    continued_steps: int
    embedded_per_task: int  # samples in the t-SNE; 0: none

    def __post_init__(self) -> None:
        not_negative(self, "continued_steps", "embedded_per_task")


def evaluate(settings: Settings, cache: FeatureCache, decoders: Decoders, *, seed: int, progress: Progress) -> Outcome:
    s, ghost = settings, only(decoders)
    _, test = cache.split(s.split)
    samples = Samples(cache, test, device_of(ghost))
    gradient = gather(ghost.gradient_norms, samples, dim=1)  # [n + 1, samples]
    drift = gather(ghost.drift_norms, samples, dim=1)
    z = gather(ghost.latents, samples, dim=1)  # [n + 1, samples, d_z]
    last = gather(lambda batch: continued(ghost, batch, s.continued_steps), samples)  # [samples, d_z]
    progress(1, 2, f"{len(test)} flows")
    distance = np.linalg.norm(z - z[-1], axis=-1)  # [n + 1, samples]
    moved = np.linalg.norm(last - z[-1], axis=-1)  # [samples]
    mean, std, n = gradient.mean(axis=1), gradient.std(axis=1), len(test)
    measured = [
        *(Measured(f"step_{k}", "gradient_norm", float(value), n) for k, value in enumerate(mean)),
        *(Measured(f"step_{k}", "gradient_norm_std", float(value), n) for k, value in enumerate(std)),
        Measured("start", "gradient_norm", float(mean[0]), n),
        Measured("end", "gradient_norm", float(mean[-1]), n),
        Measured("start", "gradient_to_drift", float(mean[0] / drift[0].mean()), n),
        Measured("end", "gradient_to_drift", float(mean[-1] / drift[-1].mean()), n),
        Measured("flow", "contraction_percent", float(100 * (1 - mean[-1] / mean[0])), n),
        Measured("flow", "monotone_share", float((np.diff(gradient, axis=0) < 0).all(axis=0).mean()), n),
        Measured("flow", "distance_monotone_share", float((np.diff(distance, axis=0) < 0).all(axis=0).mean()), n),
        Measured("flow", "continued_distance", float(moved.mean() / distance[0].mean()), n),
    ]
    positions = per_task(cache, test)
    curves = {task: distance[:, where].mean(axis=1) for task, where in positions.items()}
    starts = [curve[0] for curve in curves.values()]
    for task, start in zip(curves, starts, strict=True):
        measured.append(Measured(task, "initial_distance", float(start), len(positions[task])))
    falling = [bool((np.diff(curve) < 0).all()) for curve in curves.values()]
    measured += [
        Measured("tasks", "smallest_initial_distance", float(min(starts)), len(starts)),
        Measured("tasks", "largest_initial_distance", float(max(starts)), len(starts)),
        Measured("tasks", "largest_final_distance", float(max(c[-1] for c in curves.values())), len(curves)),
        Measured("tasks", "falling", float(sum(falling)), len(falling)),
    ]
    arrays = {
        "gradient/mean": mean,
        "gradient/std": std,
        "distance/mean": np.array(list(curves.values())),  # [tasks, n + 1]
        "distance/task": np.array([cache.task_names.index(task) for task in curves]),
    }
    if s.embedded_per_task:
        some = np.concatenate([where[: s.embedded_per_task] for where in positions.values()])
        flat = z[:, some].reshape(-1, z.shape[-1])  # all steps in one embedding
        arrays["flow/embedding"] = embed(flat, seed).reshape(len(z), len(some), 2)
        arrays["flow/task"] = cache.task[test][some]
    progress(2, 2, "embedding")
    return Outcome(measured, arrays)


def continued(ghost: Any, batch: Batch, steps: int) -> Tensor:
    """z* after this many more steps of Phase I: [B, d_z]."""
    e = ghost.context(batch)
    return torch.as_tensor(rollout(ghost.field(e), ghost.flow(batch.state, e)[-1], ghost.settings.dt, steps)[-1])
