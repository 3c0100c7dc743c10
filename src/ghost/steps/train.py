"""Train a decoder, once per seed.

The experiment's module is a decoder (`ghost.decoders.contract` describes the contract). Its settings are the decoder's
`Settings` and `ghost.training.loop.Training` in one flat list. It needs the feature cache and, for distillation, the
teacher, whose first run acts on the training samples once, before the training. GR00T's head has acted on them already.
"""

from collections.abc import Sequence
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from ghost.data.features import FeatureCache
from ghost.data.samples import Samples
from ghost.errors import GhostError
from ghost.runs.driver import Job, Plan, main
from ghost.runs.records import Run
from ghost.training.checkpoint import load_decoder
from ghost.training.head import FineTunedHead
from ghost.training.loop import Training, be_deterministic, fit, read_training


def train(job: Job) -> Plan:
    """Train a decoder on cached features."""
    settings, training = read_training(job)
    if len(job.needs) != 1 + (training.distillation > 0):
        raise GhostError(f"{job.name}: needs a feature cache, and a teacher for distillation; got {len(job.needs)}")

    samples = cache(partial(gather, job, training))
    return Plan(lambda unit: fit(job, settings, training, samples(), unit), inputs=first_runs)


def gather(job: Job, training: Training) -> Samples:
    """The training samples of a job, with what the teacher does on them where one is distilled."""
    be_deterministic()
    cached = FeatureCache.of(job.only_run(0))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = Samples(cached, choose(cached, training, job.name), device, window=training.window, gap=training.gap)
    if (training.phase or training.pull) and not chosen.has_phases:
        raise GhostError(f"{job.name}: a term of the phase has a weight, but the data set has no phases")
    if training.distillation:
        chosen.teacher = teach(job.needs[1][0], job.only_run(0), chosen)
    return chosen


def first_runs(seed: int, needs: Sequence[list[Run]]) -> list[Run]:
    """All seeds share one feature cache and one teacher."""
    return [runs[0] for runs in needs]


def choose(cache: FeatureCache, training: Training, name: str) -> np.ndarray:
    """The training samples of an experiment, as indices into the cache."""
    indices, _ = cache.split(training.split, training.tasks)
    if 0 < training.samples < len(indices):
        indices = indices[np.linspace(0, len(indices) - 1, training.samples).round().astype(int)]
    if len(indices) == 0:
        raise GhostError(f"{name}: no training samples are left after split, tasks and samples")
    return indices


def teach(run: Run, features: Run, samples: Samples) -> Tensor:
    """What the teacher's first run does on the samples: [n, H, d_a]."""
    if FineTunedHead.made(run):
        predicted = FineTunedHead.of(run, features).predict(samples.cache, samples.indices)
        return torch.from_numpy(predicted).to(samples.device)
    teacher = load_decoder(run, samples.device)
    if teacher.sizes != samples.sizes:
        raise GhostError(f"{run.name}: the teacher was trained for {teacher.sizes}, the samples have {samples.sizes}")
    generator = torch.Generator(samples.device).manual_seed(0)  # one teacher for all seeds
    with torch.no_grad():
        return torch.cat([teacher.act(batch, generator) for batch in samples.chunks(samples.places())])


if __name__ == "__main__":
    main(train)
