"""How one decoder for many tasks behaves at a change of task, and how its latents lie. n samples, d_z latent.

* Boundary: `transitions` times, `hold` random samples of one task, then `hold` of another. We compare the error at the
  first sample after the change (`boundary`) with that of the later half of each run (`steady`). act() carries no state
  from one sample to the next, so both estimate the same quantity and the test can only confirm that. The paper prints
  0.029 and 0.033, which lies within the spread of such a sample.
* Frequency: the tasks alternate every `shortest_interval` to `longest_interval` samples. The same remark holds.
* Swap: we replace the final latent z* of a sample by that of a sample of another task and read it out, for all ordered
  pairs of tasks (90 for ten). `inflation` is the mean over pairs of swapped over own error, `inflation_of_means` the
  ratio of the mean errors. The paper (74x) does not say which it means. `within_task` swaps with another sample of the
  same task: this inflation remains when no task changes.
* Silhouettes by task, of z* itself and after t-SNE to 2-D, for Ghost and for the hidden layer of the MLP.
* Compression: the paper prints 25.2x for Take_book and 3.9x for Tidy_conf_room and defines neither. We report
  `latent_compression`, the spread of a task's z^(0) about its mean over that of its z* (above 1 the flow draws the task
  together), and `error_compression`, the error of predicting the task's mean chunk over the decoder's error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import torch
from sklearn.manifold import TSNE
from sklearn.metrics import silhouette_score

from ghost.data.features import FeatureCache
from ghost.data.results import Measured, Outcome
from ghost.data.samples import Samples
from ghost.evaluations.offline import task_means
from ghost.evaluations.predict import Decoders, device_of, gather, per_task, predict, squared_errors
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least, at_least_one


@dataclass(frozen=True)
class Settings:
    split: str
    ghost: str  # the experiment of the decoder under test
    mlp: str  # and of the decoder without a flow
    transitions: int
    hold: int
    shortest_interval: int  # alternate every so many samples,
    longest_interval: int  # up to this many
    embedded: int  # at most this many samples go through t-SNE

    def __post_init__(self) -> None:
        at_least_one(self, "transitions", "embedded")
        at_least_one(self, "shortest_interval")
        at_least(2, self, "hold")
        at_least(self.shortest_interval, self, "longest_interval")


def evaluate(settings: Settings, cache: FeatureCache, decoders: Decoders, *, seed: int, progress: Progress) -> Outcome:
    s = settings
    ghost, mlp = decoders[s.ghost], decoders[s.mlp]
    train, test = cache.split(s.split)
    positions = per_task(cache, test)
    rng = np.random.default_rng(seed)
    samples = Samples(cache, test, device_of(ghost))
    error = squared_errors(predict(ghost, samples, seed=seed), cache, test).mean(axis=1)  # [n]
    progress(1, 4, "errors")

    after, held = transitions(error, positions, s, rng)
    measured = [
        Measured("boundary", "mse", float(after[:, 0].mean()), s.transitions),
        Measured("boundary", "mse_std", float(after[:, 0].std()), s.transitions),
        Measured("steady", "mse", float(held.mean()), held.size),
        Measured("all", "mse", float(error.mean()), len(test)),
    ]
    alternating = {
        every: alternate(error, positions, every, s.transitions, rng)
        for every in range(s.shortest_interval, s.longest_interval + 1)
    }
    measured += [
        Measured(f"every_{every}", "mse", float(found.mean()), found.size) for every, found in alternating.items()
    ]
    means = [found.mean() for found in alternating.values()]
    measured.append(Measured("intervals", "mse", float(np.mean(means)), len(means)))
    measured.append(Measured("intervals", "largest_over_smallest", float(max(means) / min(means)), len(means)))
    progress(2, 4, "switching")

    z = gather(ghost.latents, samples, dim=1)  # [steps + 1, n, d_z]
    measured += swap(ghost, z[-1], error, cache, test, positions, rng)
    mean_error = squared_errors(task_means(cache, train, test), cache, test).mean(axis=1)
    for task, where in positions.items():
        measured.append(Measured(task, "latent_compression", spread(z[0, where]) / spread(z[-1, where]), len(where)))
        gain = float(mean_error[where].mean() / error[where].mean())
        measured.append(Measured(task, "error_compression", gain, len(where)))
    progress(3, 4, "swaps")

    hidden = gather(mlp.latent, samples)  # [n, hidden]
    some = rng.permutation(len(test))[: s.embedded]
    labels = cache.task[test][some]
    for name, latent in (("ghost", z[-1, some]), ("mlp", hidden[some])):
        measured.append(Measured(name, "silhouette", float(silhouette_score(latent, labels)), len(some)))
        embedded = float(silhouette_score(embed(latent, seed), labels))
        measured.append(Measured(name, "silhouette_tsne", embedded, len(some)))
    progress(4, 4, "silhouettes")
    arrays = {
        "transitions/mse": after.mean(axis=0),  # [hold], from the first sample after the change on
        "intervals/every": np.array(list(alternating)),
        "intervals/mse": np.array(means),
    }
    return Outcome(measured, arrays)


def transitions(
    error: np.ndarray, positions: Mapping[str, np.ndarray], settings: Settings, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The errors after each change of task [transitions, hold], and those of the later halves before and after it."""
    s, tasks = settings, list(positions)
    after, held = [], []
    for _ in range(s.transitions):
        one, other = rng.choice(len(tasks), size=2, replace=False)
        before = error[rng.choice(positions[tasks[one]], size=s.hold)]
        after.append(error[rng.choice(positions[tasks[other]], size=s.hold)])
        held.append(np.concatenate([before[s.hold // 2 :], after[-1][s.hold // 2 :]]))
    return np.array(after), np.array(held)


def alternate(
    error: np.ndarray, positions: Mapping[str, np.ndarray], every: int, changes: int, rng: np.random.Generator
) -> np.ndarray:
    """The errors along a sequence that changes its task every `every` samples: [changes * every]."""
    tasks, found = list(positions), []
    task = int(rng.integers(len(tasks)))
    for _ in range(changes):
        task = (task + int(rng.integers(1, len(tasks)))) % len(tasks)  # any but the same
        found.append(error[rng.choice(positions[tasks[task]], size=every)])
    return np.concatenate(found)


def swap(
    ghost: Any,
    latent: np.ndarray,
    error: np.ndarray,
    cache: FeatureCache,
    test: np.ndarray,
    positions: Mapping[str, np.ndarray],
    rng: np.random.Generator,
) -> list[Measured]:
    """The error with another sample's z* [n, d_z] compared with the sample's own error [n]."""

    def swapped(into: np.ndarray, source: np.ndarray) -> float:
        foreign = torch.from_numpy(latent[rng.choice(source, size=len(into))]).to(device_of(ghost))
        with torch.no_grad():
            read = ghost.readout(foreign).cpu().numpy()
        return float(squared_errors(read, cache, test[into]).mean())

    pairs = list(permutations(positions, 2))
    across = np.array([swapped(positions[one], positions[other]) for one, other in pairs])
    within = np.array([swapped(where, where) for where in positions.values()])
    own = {task: float(error[where].mean()) for task, where in positions.items()}
    owns = np.array(list(own.values()))
    measured = []
    for condition, found, before in (
        ("swap", across, np.array([own[one] for one, _ in pairs])),
        ("within_task", within, owns),
    ):
        measured += [
            Measured(condition, "mse", float(found.mean()), len(found)),
            Measured(condition, "inflation", float(np.mean(found / before)), len(found)),
            Measured(condition, "inflation_of_means", float(found.mean() / owns.mean()), len(found)),
        ]
    return measured


def spread(latent: np.ndarray) -> float:
    """The mean squared distance from the mean."""
    return float(((latent - latent.mean(axis=0)) ** 2).sum(axis=1).mean())


def embed(points: np.ndarray, seed: int) -> np.ndarray:
    """t-SNE to 2-D: [n, 2]."""
    perplexity = min(30.0, (len(points) - 1) / 3)
    return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(points))
