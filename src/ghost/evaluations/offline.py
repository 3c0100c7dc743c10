"""The error of a decoder on held-out samples: overall, by group of action dimensions, by task. H horizon.

The squared error of a sample is the mean over the H positions of the chunk and the real action dimensions. `all` weighs
every sample alike, `mean_of_tasks` weighs every task alike (the last line of tab:multi_task). The cosine compares the
two whole chunks, flattened. The paper says neither how it treats the horizon nor which vectors its cosine compares.

`predict_the_mean_mse` is the error of a decoder that has learnt only the task's mean chunk over the training samples.
An error is small or large only compared with it. `share_of_task_mean` is the decoder's error divided by it, on the task
where this is largest. `share_of_training_mean` is the same for the one mean chunk of all training samples.

GR00T's own head is tested on the predictions that the feature cache has of it.

The figure shows the held-out chunk whose recorded actions move most. This choice does not look at any prediction.
`offset` is the mean distance of the predicted from the recorded actions along this chunk, by dimension.
"""

from dataclasses import dataclass

import numpy as np

from ghost.data.features import FeatureCache
from ghost.data.results import Measured, Outcome
from ghost.data.samples import Samples
from ghost.evaluations.predict import (
    Decoders,
    device_of,
    only,
    parameters_of,
    per_task,
    predict,
    squared_errors,
)
from ghost.runs.progress import Progress
from ghost.training.head import FineTunedHead


@dataclass(frozen=True)
class Settings:
    split: str  # sample or episode
    tasks: tuple[str, ...] = ()  # all when empty


def evaluate(settings: Settings, cache: FeatureCache, decoders: Decoders, *, seed: int, progress: Progress) -> Outcome:
    decoder = only(decoders)
    train, test = cache.split(settings.split, settings.tasks)
    if isinstance(decoder, FineTunedHead):
        predicted = decoder.predict_unseen(cache, test)  # [n, H, d_a]
    else:
        predicted = predict(decoder, Samples(cache, test, device_of(decoder)), seed=seed)
    progress(1, 1, f"{len(test)} samples")
    truth = cache.action[test]
    one_mean = np.broadcast_to(cache.action[train].mean(axis=0), truth.shape)
    samples = {
        "mse": squared_errors(predicted, cache, test),  # [n, 17]
        "predict_the_mean_mse": squared_errors(task_means(cache, train, test), cache, test),
        "predict_one_mean_mse": squared_errors(one_mean, cache, test),
    }
    groups = cache.normalisation.action.groups if cache.normalisation else {}
    samples |= {f"{name}_mse": samples["mse"][:, list(dimensions)] for name, dimensions in groups.items()}
    means = {name: errors.mean(axis=1) for name, errors in samples.items()}  # [n] each
    means["cosine"] = cosines(predicted[..., cache.action_mask], truth[..., cache.action_mask])

    positions = per_task(cache, test)
    measured = [parameters_of(decoder)]
    compared = {"share_of_task_mean": "predict_the_mean_mse", "share_of_training_mean": "predict_one_mean_mse"}
    for metric, mean in compared.items():
        shares = [means["mse"][where].mean() / means[mean][where].mean() for where in positions.values()]
        measured.append(Measured("worst_task", metric, float(max(shares)), len(test)))
    for metric, found in means.items():
        by_task = {task: float(found[where].mean()) for task, where in positions.items()}
        measured.append(Measured("all", metric, float(found.mean()), len(test)))
        measured.append(Measured("mean_of_tasks", metric, float(np.mean(list(by_task.values()))), len(test)))
        measured += [Measured(task, metric, value, len(positions[task])) for task, value in by_task.items()]

    moving = int(truth[..., cache.action_mask].std(axis=1).mean(axis=1).argmax())
    recorded, shown = (chunks[moving][:, cache.action_mask] for chunks in (truth, predicted))  # [H, 17]
    offsets = np.abs(shown - recorded).mean(axis=0, dtype=np.float64)
    measured += [Measured(f"dimension_{d}", "offset", float(value), len(shown)) for d, value in enumerate(offsets)]
    arrays = {
        "chunk/recorded": recorded,
        "chunk/predicted": shown,
        "samples/mse": means["mse"],
    }
    return Outcome(measured, arrays)


def task_means(cache: FeatureCache, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """For every test sample the mean training chunk of its task: [n, H, d_a]."""
    means = np.zeros((len(cache.task_names), *cache.action.shape[1:]))
    for number in np.unique(cache.task[train]):
        means[number] = cache.action[train[cache.task[train] == number]].mean(axis=0)
    return np.asarray(means[cache.task[test]])


def cosines(predicted: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The cosines [n] of whole chunks [n, H, d]; 0 where a chunk is all zeros."""
    a, b = (x.reshape(len(x), -1).astype(np.float64) for x in (predicted, truth))
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.divide((a * b).sum(axis=1), norms, out=np.zeros(len(a)), where=norms > 0))
