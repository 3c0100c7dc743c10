"""Cache what a backbone makes of a data set: `python -m ghost.steps.cache_features --row '{...}' --needs .../manifest.json
--out .../manifest.json`.

The need is the manifest of the demonstrations. The row's module is a backbone (the contract stands in
`ghost.backbones`); its settings stand in the row beside those of the drawing below. What comes out is told in
`ghost.data.features`. A step that was killed goes on behind the last finished shard; where jobs have cached parts of
it (`ghost.steps.cache_shards`), nothing is left but to list them. In memory are a batch's pictures and a shard's tokens.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from ghost.backbones import Backbone, Observations
from ghost.data.features import Encoded, Sizes, write_shards
from ghost.data.lerobot import LeRobotDataset
from ghost.errors import GhostError, exit_on_error
from ghost.files import sha256
from ghost.runs.code import code_hash
from ghost.runs.progress import Progress
from ghost.runs.records import open_runs, record_runs
from ghost.runs.results import Measured, Outcome
from ghost.runs.settings import at_least_one, read_row, read_settings


@dataclass(frozen=True)
class Draw:
    """Which samples, and how they are padded."""

    train_per_task: tuple[int, ...]  # the sample split, in the order of the data set's tasks
    test_per_task: tuple[int, ...]
    train_episodes: int  # the episode split: the first so many train
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
    """Every `stride`-th time step of all episodes; the last `test_episodes` of each task are to test."""

    stride: int
    test_episodes: int
    horizon: int
    d_state: int
    d_action: int
    samples_per_shard: int

    def __post_init__(self) -> None:
        at_least_one(self, "stride", "test_episodes", "horizon", "samples_per_shard")


def cache_features(row: str, out: Path, needs: list[Path]) -> None:
    """Draw samples and cache their features, for every seed of a row.

    Args:
        row: a line of the table, as JSON.
        out: the manifest to write; the shards go beside it.
        needs: the manifest of the demonstrations, then what the backbone needs.
    """
    work = Work.prepare(read_row(row), needs)

    def run(seed: int, folder: Path) -> Outcome:
        samples = work.draw_samples(seed)
        return samples.outcome(work.write(samples, folder), work.record_facts())

    record_runs(work.line, work.modules, out, run, inputs=needs, stand_ins=work.stand_ins, lock=work.backbone.lock)


@dataclass(frozen=True)
class Drawn:
    """The samples of one seed, without their tokens."""

    episode: np.ndarray  # [N], rising
    timestep: np.ndarray  # [N]
    splits: Mapping[str, tuple[np.ndarray, np.ndarray]]
    small: Mapping[str, np.ndarray]  # the small arrays of the cache
    columns: Mapping[str, np.ndarray]  # what the backbone may see
    seed: int

    def outcome(self, files: tuple[str, ...], facts: Mapping[str, Any]) -> Outcome:
        measured = [Measured("all", "samples", len(self.episode))]
        arrays = dict(self.small)
        for name, (train, test) in self.splits.items():
            measured += [Measured(f"{name}_split", "train", len(train)), Measured(f"{name}_split", "test", len(test))]
            arrays |= {f"split/{name}/train": train, f"split/{name}/test": test}
        return Outcome(measured, arrays, files, facts=facts)


@dataclass(frozen=True)
class Work:
    """A row, ready: the data set is open and verified, the backbone started, the settings read."""

    line: Mapping[str, Any]
    draw: Draw | WholeEpisodes
    sizes: Sizes
    backbone: Backbone
    dataset: LeRobotDataset
    demos_sha256: str
    stand_ins: tuple[str, ...]

    @classmethod
    def prepare(cls, line: Mapping[str, Any], needs: list[Path]) -> Work:
        if not needs:
            raise GhostError(f"{line['name']}: needs one manifest of demonstrations, got 0")
        module = importlib.import_module(line["module"])
        own = {entry.name for entry in dataclasses.fields(module.Settings)}
        settings = read_settings(_only(line, lambda key: key in own), module.Settings)
        drawn = _only(line, lambda key: key not in own)
        whole = "stride" in line["settings"]
        draw = read_settings(drawn, WholeEpisodes) if whole else read_settings(drawn, Draw)
        dataset = open_demos(needs[0])
        sizes = Sizes(settings.tokens, settings.d_token, draw.d_state, draw.horizon, draw.d_action)
        backbone = module.start(settings, sizes, needs[1:])
        if backbone.facts:
            dataset.limits_file()  # now, and not when all is encoded
        inherited = {name for path in needs for name in open_runs(path)[0].record()["stand_ins"]}
        stand_ins = tuple(sorted(inherited | {module.STAND_IN} - {""}))
        return cls(line, draw, sizes, backbone, dataset, sha256(needs[0]), stand_ins)

    @property
    def modules(self) -> tuple[str, str]:
        return (f"ghost.steps.{self.line['step']}", self.line["module"])

    def draw_samples(self, seed: int) -> Drawn:
        if isinstance(self.draw, WholeEpisodes):
            episode, timestep, splits = whole_episodes(self.draw, self.dataset)
        else:
            episode, timestep, splits = draw_samples(self.draw, self.dataset, seed)
        small, columns = gather(self.draw, self.dataset, episode, timestep)
        return Drawn(episode, timestep, splits, small, columns, seed)

    def record_facts(self) -> dict[str, Any]:
        """What the record says beside the settings: nothing, where they say it all."""
        if not self.backbone.facts:
            return {}
        limits = sha256(self.dataset.limits_file())
        return {**self.backbone.facts, "demos_sha256": self.demos_sha256, "normalisation_sha256": limits}

    def write(self, samples: Drawn, folder: Path, part: int = 1, parts: int = 1) -> tuple[str, ...]:
        """Write the shards of a part of the samples, and name their files."""
        made_from = {
            "settings": self.line["settings"],
            "seed": samples.seed,
            "demos_sha256": self.demos_sha256,
            "code_sha256": code_hash(*self.modules, science=True),
            **self.backbone.facts,
        }
        facts = {
            "sizes": dataclasses.asdict(self.sizes),
            "task_names": [self.dataset.tasks[index] for index in sorted(self.dataset.tasks)],
            "samples_per_shard": self.draw.samples_per_shard,
            "made_from": made_from,
        }
        progress, start_s = Progress("samples"), time.monotonic()

        def tell(done: int, left: int) -> None:
            progress(done, left, f"{done / (time.monotonic() - start_s):.1f} samples/s")

        def encode(shard: slice) -> Encoded:
            size = self.backbone.batch_size or self.draw.samples_per_shard
            starts = range(shard.start, shard.stop, size)
            return joined([self.encode(samples, slice(k, min(k + size, shard.stop))) for k in starts])

        n, per_shard = len(samples.episode), self.draw.samples_per_shard
        return write_shards(folder, n, per_shard, encode, facts, tell, part=part, parts=parts)

    def encode(self, samples: Drawn, part: slice) -> Encoded:
        episode, timestep = samples.episode[part], samples.timestep[part]
        seen = Observations(
            instructions=tuple(self.dataset.tasks[int(index)] for index in samples.small["task"][part]),
            columns={name: value[part] for name, value in samples.columns.items()},
            frames=lambda camera: frames(self.dataset, camera, episode, timestep),
            cameras=self.dataset.cameras,
            state=samples.small["state"][part],
            step=np.stack([episode, timestep], axis=1),
        )
        return self.backbone.encode(seen)


def joined(batches: list[Encoded]) -> Encoded:
    actions = [batch.actions for batch in batches if batch.actions is not None]
    return Encoded(np.concatenate([batch.tokens for batch in batches]), np.concatenate(actions) if actions else None)


def _only(line: Mapping[str, Any], wanted: Callable[[str], bool]) -> dict[str, Any]:
    return {**line, "settings": {key: value for key, value in line["settings"].items() if wanted(key)}}


def open_demos(manifest: Path) -> LeRobotDataset:
    """The data set that a manifest of demonstrations lists, each of its files verified."""
    runs = open_runs(manifest)
    if len(runs) != 1:
        raise GhostError(f"{manifest}: one data set expected, it lists {len(runs)}")
    top = f"seed{runs[0].seed}/"
    for name in runs[0].files:
        runs[0].path(name.removeprefix(top))
    return LeRobotDataset.open(manifest.parent / top / "dataset")


def whole_episodes(
    draw: WholeEpisodes, dataset: LeRobotDataset
) -> tuple[np.ndarray, np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """As `draw_samples`, with one split, by episode."""
    parts = [np.arange(0, length, draw.stride) for length in dataset.lengths()]
    episode = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    of_task: dict[str, list[int]] = {}
    for index, meta in enumerate(dataset.episodes):
        of_task.setdefault(meta["tasks"][0], []).append(index)
    for name, indices in of_task.items():
        if len(indices) <= draw.test_episodes:
            raise GhostError(
                f"{dataset.folder}: {name!r} has {len(indices)} episodes, {draw.test_episodes} are to test"
            )
    test = np.isin(episode, [index for indices in of_task.values() for index in indices[-draw.test_episodes :]])
    return episode, np.concatenate(parts), {"episode": (np.flatnonzero(~test), np.flatnonzero(test))}


def draw_samples(
    draw: Draw, dataset: LeRobotDataset, seed: int
) -> tuple[np.ndarray, np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Episode [N] and timestep [N] of the samples, in the order of the data set, and the splits as indices of samples.

    Both splits draw time steps uniformly and none of them twice; a time step may serve both, as two samples.
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
    task = np.array([number[meta["tasks"][0]] for meta in dataset.episodes])

    def pick(steps: np.ndarray, count: int, what: str) -> np.ndarray:
        if count > len(steps):
            raise GhostError(f"{dataset.folder}: {what} has {len(steps)} steps, {count} samples are wanted")
        return rng.choice(steps, count, replace=False)

    groups: dict[str, list[np.ndarray]] = {"sample/train": [], "sample/test": []}
    for index, (train, test) in enumerate(zip(draw.train_per_task, draw.test_per_task, strict=True)):
        picked = pick(np.flatnonzero(task[of_step] == index), train + test, f"task {dataset.tasks[index]}")
        groups["sample/train"].append(picked[:train])
        groups["sample/test"].append(picked[train:])
    seen = of_step < draw.train_episodes
    groups["episode/train"] = [pick(np.flatnonzero(seen), draw.train_timesteps, "the training episodes")]
    groups["episode/test"] = [pick(np.flatnonzero(~seen), draw.test_timesteps, "the test episodes")]

    steps = np.concatenate([step for group in groups.values() for step in group])  # [N]
    names = np.repeat(list(groups), [sum(map(len, group)) for group in groups.values()])
    order = np.argsort(steps, kind="stable")
    steps, names = steps[order], names[order]
    indices = {name: np.flatnonzero(names == name) for name in groups}
    splits = {name: (indices[f"{name}/train"], indices[f"{name}/test"]) for name in ("episode", "sample")}
    return of_step[steps], steps - first[of_step[steps]], splits


def gather(
    draw: Draw | WholeEpisodes, dataset: LeRobotDataset, episode: np.ndarray, timestep: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The small arrays of the samples, and the observation columns that the backbone may see; one pass over the data.

    `episode` must rise, so that every file is read once.
    """
    n = len(episode)
    state = np.zeros((n, draw.d_state), np.float32)
    action = np.zeros((n, draw.horizon, draw.d_action), np.float32)
    task, phase = np.empty(n, np.int64), np.full(n, -1)
    columns: dict[str, list[np.ndarray]] = {}
    real = 0
    for index in np.unique(episode):
        here = np.flatnonzero(episode == index)
        steps, data = timestep[here], dataset.episode(int(index))
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
            phase[here] = data.columns["phase"][steps]
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
    return small, {name: np.concatenate(parts) for name, parts in columns.items()}


def frames(dataset: LeRobotDataset, camera: str, episode: np.ndarray, timestep: np.ndarray) -> np.ndarray:
    """A camera's images of samples [n, height, width, 3], whose episodes rise."""
    parts = [dataset.frames(int(index), camera, timestep[episode == index].tolist()) for index in np.unique(episode)]
    return np.concatenate(parts)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(cache_features))
