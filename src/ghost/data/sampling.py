"""Which time steps of a data set become samples of a feature cache, and what is gathered for each.

Letters: N samples, H horizon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ghost.data.lerobot import LeRobotDataset
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one
from ghost.runs.units import Hashes

Splits = Mapping[str, tuple[np.ndarray, np.ndarray]]  # name: the samples to train on and to test on

FIRST_EPISODE = 0  # of the training episodes; LeRobot counts from 0


@dataclass(frozen=True)
class Draw:
    """Which samples, and how they are padded."""

    train_per_task: tuple[int, ...]  # the sample split, in the order of the data set's tasks
    test_per_task: tuple[int, ...]
    train_episodes: int  # the episode split: so many episodes, from the first on, are for training
    train_timesteps: int
    test_timesteps: int
    horizon: int  # H
    d_state: int
    d_action: int
    samples_per_shard: int

    def __post_init__(self) -> None:
        if len(self.train_per_task) != len(self.test_per_task):
            raise ValueError(
                f"train_per_task and test_per_task must name the same tasks, got {len(self.train_per_task)} and"
                f" {len(self.test_per_task)} counts"
            )
        if min(*self.train_per_task, *self.test_per_task) < 1:
            raise ValueError("train_per_task and test_per_task must be at least 1 for every task")
        at_least_one(self, "train_episodes", "train_timesteps", "test_timesteps", "horizon", "samples_per_shard")


@dataclass(frozen=True)
class WholeEpisodes:
    """Every `stride`-th time step of all episodes. The last `test_episodes` of each task are for testing."""

    stride: int
    test_episodes: int
    horizon: int
    d_state: int
    d_action: int
    samples_per_shard: int

    def __post_init__(self) -> None:
        at_least_one(self, "stride", "test_episodes", "horizon", "samples_per_shard")


@dataclass(frozen=True)
class Shares:
    """Of each task a share of the episodes, the last ones, is for testing; time steps are drawn, `samples` at most.

    `split_by: sample` divides the drawn time steps instead, as the article does: neighbours of one demonstration can
    then stand on both sides, so it measures interpolation.
    """

    split_by: str  # episode or sample: also the name of the split
    test_share: float
    samples: int  # at most; of a larger data set so many time steps are drawn, of each task its share
    horizon: int
    d_state: int
    d_action: int
    samples_per_shard: int

    def __post_init__(self) -> None:
        if self.split_by not in ("episode", "sample"):
            raise ValueError(f"split_by must be episode or sample, got {self.split_by!r}")
        if not 0 < self.test_share < 1:
            raise ValueError(f"test_share must lie between 0 and 1, got {self.test_share}")
        at_least_one(self, "samples", "horizon", "samples_per_shard")


Sampling = Draw | WholeEpisodes | Shares


@dataclass(frozen=True)
class Drawn:
    """The samples of one seed, without their tokens."""

    episode: np.ndarray  # [N], rising
    timestep: np.ndarray  # [N]
    splits: Splits
    small: Mapping[str, np.ndarray]  # the small arrays of the cache
    columns: Mapping[str, np.ndarray]  # what the backbone may see

    def __len__(self) -> int:
        return len(self.episode)

    def outcome(self, files: tuple[str, ...], hashes: Hashes) -> Outcome:
        measured = [Measured("all", "samples", len(self.episode))]
        arrays = dict(self.small)
        for name, (train, test) in self.splits.items():
            measured += [Measured(f"{name}_split", "train", len(train)), Measured(f"{name}_split", "test", len(test))]
            arrays |= {f"split/{name}/train": train, f"split/{name}/test": test}
        return Outcome(measured, arrays, files, hashes)


def open_demos(run: Run) -> LeRobotDataset:
    """The data set of a run, each of its files verified."""
    return LeRobotDataset.open(run.verified() / "dataset")


def draw(settings: Sampling, dataset: LeRobotDataset, seed: int) -> Drawn:
    """The samples of a data set that a feature cache holds."""
    if isinstance(settings, WholeEpisodes):
        return gather(settings, dataset, *whole_episodes(settings, dataset))
    if isinstance(settings, Shares):
        return gather(settings, dataset, *draw_shares(settings, dataset, seed))
    return gather(settings, dataset, *draw_samples(settings, dataset, seed))


def whole_episodes(draw: WholeEpisodes, dataset: LeRobotDataset) -> tuple[np.ndarray, np.ndarray, Splits]:
    """Like `draw_samples`, with one split, by episode."""
    parts = [np.arange(0, length, draw.stride) for length in dataset.lengths()]
    episode = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    last = held_back(dataset, draw.test_episodes)
    _refuse_leak(dataset, last)
    test = np.isin(episode, last)
    return episode, np.concatenate(parts), {"episode": (np.flatnonzero(~test), np.flatnonzero(test))}


def held_back(
    dataset: LeRobotDataset, test_episodes: int = 0, test_share: float = 0.0, among: Sequence[int] | None = None
) -> list[int]:
    """The episodes to test on: the last so many of each task, or the last share, at least one."""
    last = []
    for name, indices in by_task(dataset, among).items():
        number = test_episodes or max(1, round(test_share * len(indices)))
        if len(indices) <= number:
            raise GhostError(
                f"{dataset.folder}: task {name!r} has {len(indices)} episodes, {number} are to test and none would be"
                " left to train; record more, leave the task out (tasks: [...]), or hold back fewer"
            )
        last += indices[-number:]
    return last


def by_task(dataset: LeRobotDataset, among: Sequence[int] | None = None) -> dict[str, list[int]]:
    """The episodes of each instruction, among these or all."""
    found: dict[str, list[int]] = {}
    for index in range(len(dataset)) if among is None else among:
        found.setdefault(dataset.instruction(index), []).append(index)
    return found


def _refuse_leak(dataset: LeRobotDataset, held_back: list[int]) -> None:
    """An episode to test on must not start like one to train on, where the data set says how its episodes start."""
    first: dict[str, int] = {}
    for index, start in enumerate(dataset.starts()):
        other = first.setdefault(start, index)
        if (other in held_back) != (index in held_back):
            raise GhostError(
                f"{dataset.folder}: episodes {other} and {index} start alike (start {start}), one is to train on and"
                " one to test"
            )


def draw_samples(draw: Draw, dataset: LeRobotDataset, seed: int) -> tuple[np.ndarray, np.ndarray, Splits]:
    """Episode [N] and timestep [N] of the samples, in the order of the data set, and the splits as indices of samples.

    Both splits draw time steps uniformly, without replacement. A time step that both draw becomes two samples.
    """
    rng = np.random.default_rng(seed)
    lengths = dataset.lengths()
    of_step = np.repeat(np.arange(len(lengths)), lengths)  # [all steps]: its episode
    first = np.concatenate([[0], lengths.cumsum()])
    if len(dataset.tasks) != len(draw.train_per_task):
        raise GhostError(
            f"{dataset.folder} has {len(dataset.tasks)} tasks, train_per_task has {len(draw.train_per_task)}"
        )
    if not draw.train_episodes < len(dataset):
        raise GhostError(f"train_episodes must leave some of the {len(dataset)} to test, got {draw.train_episodes}")
    number = {name: index for index, name in dataset.tasks.items()}
    task = np.array([number[dataset.instruction(index)] for index in range(len(dataset))])

    def pick(steps: np.ndarray, count: int, what: str) -> np.ndarray:
        if count > len(steps):
            raise GhostError(f"{dataset.folder}: {what} has {len(steps)} steps, {count} samples are wanted")
        return rng.choice(steps, count, replace=False)

    groups: dict[str, list[np.ndarray]] = {"sample/train": [], "sample/test": []}
    for index, (train, test) in enumerate(zip(draw.train_per_task, draw.test_per_task, strict=True)):
        picked = pick(np.flatnonzero(task[of_step] == index), train + test, f"task {dataset.tasks[index]}")
        groups["sample/train"].append(picked[:train])
        groups["sample/test"].append(picked[train:])
    seen = (of_step >= FIRST_EPISODE) & (of_step < FIRST_EPISODE + draw.train_episodes)
    groups["episode/train"] = [pick(np.flatnonzero(seen), draw.train_timesteps, "the training episodes")]
    groups["episode/test"] = [pick(np.flatnonzero(~seen), draw.test_timesteps, "the test episodes")]

    steps = np.concatenate([step for group in groups.values() for step in group])  # [N]
    names = np.repeat(list(groups), [sum(map(len, group)) for group in groups.values()])
    order = np.argsort(steps, kind="stable")
    steps, names = steps[order], names[order]
    indices = {name: np.flatnonzero(names == name) for name in groups}
    splits = {name: (indices[f"{name}/train"], indices[f"{name}/test"]) for name in ("episode", "sample")}
    return of_step[steps], steps - first[of_step[steps]], splits


def draw_shares(draw: Shares, dataset: LeRobotDataset, seed: int) -> tuple[np.ndarray, np.ndarray, Splits]:
    """Like `draw_samples`, with one split, by episode or by sample."""
    rng = np.random.default_rng(seed)
    lengths = dataset.lengths()
    if draw.horizon > lengths.max():
        raise GhostError(
            f"{dataset.folder}: horizon {draw.horizon} is longer than every episode; the longest has {lengths.max()}"
            f" steps, so horizon must be at most {lengths.max()}"
        )
    last = held_back(dataset, test_share=draw.test_share) if draw.split_by == "episode" else []
    if last:
        _refuse_leak(dataset, last)
    share = min(1.0, draw.samples / lengths.sum())  # of the time steps
    picked = []  # of each task: episode, timestep, whether it is to test, [3, n]
    for indices in by_task(dataset).values():
        episode = np.repeat(indices, lengths[indices])
        step = np.concatenate([np.arange(lengths[index]) for index in indices])
        chosen = rng.permutation(len(step))[: max(2, round(share * len(step)))]
        test = np.arange(len(chosen)) < max(1, round(draw.test_share * len(chosen)))
        if draw.split_by == "episode":
            test = np.isin(episode[chosen], last)
        picked.append(np.stack([episode[chosen], step[chosen], test]))
    every = np.concatenate(picked, axis=1)
    found = every[:, np.lexsort((every[1], every[0]))].T  # [N, 3], in the order of the data set
    is_test = found[:, 2] == 1
    for part, what in ((~is_test, "train on"), (is_test, "test on")):
        if not part.any():
            raise GhostError(f"{dataset.folder}: {draw.samples} samples leave none to {what}; raise samples")
    return found[:, 0], found[:, 1], {draw.split_by: (np.flatnonzero(~is_test), np.flatnonzero(is_test))}


def gather(
    draw: Draw | WholeEpisodes | Shares,
    dataset: LeRobotDataset,
    episode: np.ndarray,
    timestep: np.ndarray,
    splits: Splits,
) -> Drawn:
    """The samples with their arrays. `episode` must rise: then each file is read once."""
    n = len(episode)
    state = np.zeros((n, draw.d_state), np.float32)
    action = np.zeros((n, draw.horizon, draw.d_action), np.float32)
    task, phase = np.empty(n, np.int64), np.full(n, -1)
    columns: dict[str, list[np.ndarray]] = {}
    real = 0
    for index in np.unique(episode):
        here = np.flatnonzero(episode == index)
        steps, data = timestep[here], dataset.episode(int(index))
        if real not in (0, data.action.shape[1]):
            raise GhostError(f"{dataset.folder}: actions of {real} and of {data.action.shape[1]} dimensions")
        real = data.action.shape[1]
        if data.state.shape[1] > draw.d_state or real > draw.d_action:
            raise GhostError(
                f"{dataset.folder}: state {data.state.shape[1]} and action {real} do not fit into {draw.d_state} and"
                f" {draw.d_action}"
            )
        state[here, : data.state.shape[1]] = data.state[steps]
        ahead = np.minimum(steps[:, None] + np.arange(draw.horizon), len(data) - 1)  # [samples here, H]
        action[here, :, :real] = data.action[ahead]
        task[here] = data.task[steps]
        if "phase" in data.columns:
            recorded = data.columns["phase"]
            if recorded.ndim != 1 or recorded.dtype.kind not in "iu":
                raise GhostError(f"{dataset.folder}: the phase of a step must be a whole number")
            phase[here] = recorded[steps]
        for name, value in data.columns.items():
            if name.startswith("observation."):
                columns.setdefault(name, []).append(value[steps])
    small: dict[str, np.ndarray] = {
        "state": state,
        "action": action,
        "action_mask": (np.arange(draw.d_action) < real).astype(np.uint8),
        "task": task,
        "phase": phase,
        "episode": episode,
        "timestep": timestep,
    }
    try:
        together = {name: np.concatenate(parts) for name, parts in columns.items()}
    except ValueError as error:
        raise GhostError(f"{dataset.folder}: a column is not as wide in every episode: {error}") from None
    return Drawn(episode, timestep, splits, small, together)


def frames(dataset: LeRobotDataset, camera: str, episode: np.ndarray, timestep: np.ndarray) -> np.ndarray:
    """The images of a camera [n, height, width, 3] for samples whose episodes rise."""
    parts = [dataset.frames(int(index), camera, timestep[episode == index].tolist()) for index in np.unique(episode)]
    return np.concatenate(parts)
