"""Offline tests of a LIBERO policy, on demonstrations that it was not trained on. n samples, d_z latent.

* `mse` of the action chunks, as in training. Stateful decoders run through a window of chunks up to the sample.
* `phase_accuracy`: how often the inferred sub-phase is the demonstrator's.

For Ghosts only:

* `per_step_contraction_percent`: 100 (1 - r), where r is the geometric mean over samples and Euler steps of the ratio
  |z^(k+1) - z^(k)| / |z^(k) - z^(k-1)|, in the dimensions on which the potential acts. At 0 the flow keeps its speed.
  The paper names a per-step contraction and gives no formula.
* `silhouette` of z* by task.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import silhouette_score

from ghost.data.features import FeatureCache
from ghost.data.results import Measured, Outcome
from ghost.data.samples import Samples
from ghost.evaluations.predict import Decoders, device_of, gather, only, parameters_of, predict, squared_errors
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one


@dataclass(frozen=True)
class Settings:
    samples: int  # at most this many of the held-out ones, evenly spaced
    window: int
    gap: int

    def __post_init__(self) -> None:
        at_least_one(self, "samples", "window", "gap")


def evaluate(settings: Settings, cache: FeatureCache, decoders: Decoders, *, seed: int, progress: Progress) -> Outcome:
    decoder = only(decoders)
    _, test = cache.split("episode")
    samples = Samples(cache, test, device_of(decoder), window=settings.window, gap=settings.gap)
    some = np.unique(np.linspace(0, len(test) - 1, min(settings.samples, len(test))).round().astype(int))
    errors = squared_errors(predict(decoder, samples, seed=seed), cache, test).mean(axis=1)[some]
    n = len(some)
    measured = [parameters_of(decoder), Measured("all", "mse", float(errors.mean()), n)]
    if hasattr(decoder, "plan"):
        logits = gather(lambda batch: decoder.plan(batch, None).phase_logits, samples)[some]
        right = logits.argmax(axis=1) == cache.phase[test][some]
        measured.append(Measured("all", "phase_accuracy", float(right.mean()), n))
    if hasattr(decoder, "latents") and hasattr(decoder, "drift"):
        z = gather(decoder.latents, samples, dim=1)[:, some]  # [steps + 1, n, d_z]
        basin = getattr(decoder.settings, "basin_dims", 0) or decoder.settings.d_latent  # where the potential acts
        tasks = cache.task[test][some]
        silhouette = silhouette_score(z[-1], tasks) if len(set(tasks)) > 1 else np.nan
        measured += [
            Measured("flow", "per_step_contraction_percent", contraction_percent(z, basin), n),
            Measured("flow", "silhouette", float(silhouette), n),
        ]
    progress(1, 1, f"{n} samples")
    return Outcome(measured)


def contraction_percent(z: np.ndarray, dims: int) -> float:
    """The per-step contraction of flows [steps + 1, n, d_z]."""
    lengths = np.linalg.norm(np.diff(z[..., :dims], axis=0), axis=-1)  # [steps, n]
    ratios = lengths[1:] / np.maximum(lengths[:-1], 1e-12)
    return float(100 * (1 - np.exp(np.log(np.maximum(ratios, 1e-12)).mean())))
