"""The feature cache: what a frozen backbone made of samples of a data set, so that decoders train without it.

N samples, T tokens, D token width, H horizon. A sample is one time step of one episode: the tokens and the state that
the robot has then, and the H actions from then on (the last one repeated past the episode's end). Samples stand in the
order of the data set (episode, timestep). Two splits, as the paper uses them:

    episode   timesteps of the first episodes to train, of the remaining, unseen ones to test (1,800 / 396 episodes,
              800 / 200 timesteps): the drop-in replacement
    sample    per task, samples drawn over all episodes, then divided (300 to 600 / 80 to 150 per task, 5,600 / 1,430
              in total): the ten-task study. Neighbouring time steps of one demonstration can stand on both sides, so
              this split measures interpolation. So does the paper's, as far as it tells.

Files of the run's folder, written by the step `cache_features`:

    tokens/<shard>.npy    [samples_per_shard, t, d] float16; the last may be shorter. Where a backbone fills t <= T
                          tokens and d <= D dims and leaves the rest zero, the zeros are not stored
    actions/<shard>.npy   [samples_per_shard, H, d_a] float32: what the backbone's own action head predicts, where it
                          has one, in the normalisation of the recorded actions
    shards.json           the list of shards with the sizes of a sample, the starts of the episodes, and how states and
                          actions were normalised (null if they are as recorded)
    arrays.safetensors    the small arrays

A shard is verified when it is first read, so opening a cache takes the same time at any size.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tokenize import TokenError

import numpy as np

from ghost.data.normalisation import Normalisation
from ghost.errors import GhostError, did_you_mean
from ghost.files import atomic, confined, read_json
from ghost.forms import NAME
from ghost.runs.records import Run, open_runs

INDEX = "shards.json"
TOKENS, ACTIONS = "tokens", "actions"  # folders of the shards
LARGEST = range(1, 10**6)
SIZES = ("tokens", "d_token", "d_state", "horizon", "d_action")
INDEXED = {
    "sizes": dict.fromkeys(SIZES, LARGEST),
    "task_names": [str],
    "samples_per_shard": LARGEST,
    "shards": [NAME],
    "starts": [str],
    "normalisation": (dict, None),
}
SMALL = ("state", "action", "action_mask", "task", "phase", "episode", "timestep")


@dataclass(frozen=True)
class Sizes:
    """Of one sample: what a decoder must be built for. The paper's own are 64 x 2048, 64, 17 x 32."""

    tokens: int  # T
    d_token: int  # D
    d_state: int  # d_s, the real dimensions first, then zeros
    horizon: int  # H
    d_action: int  # d_a, likewise; `FeatureCache.action_mask` has the real ones


@dataclass(frozen=True)
class Encoded:
    """What a backbone makes of n observations."""

    tokens: np.ndarray  # [n, T, D] float16
    actions: np.ndarray | None = None  # [n, H, d_a] float32: its own head's prediction, normalised as the recorded ones


@dataclass(frozen=True)
class FeatureCache:
    """A finished cache. Arrays are whole and small, except the tokens, which are gathered when asked for."""

    state: np.ndarray  # [N, 64] float32
    action: np.ndarray  # [N, H, 32] float32
    action_mask: np.ndarray  # [32] bool: the real action dimensions
    task: np.ndarray  # [N] int64, into task_names
    phase: np.ndarray  # [N] int64: sub-phase of the demonstration at this step
    episode: np.ndarray  # [N] int64
    timestep: np.ndarray  # [N] int64
    task_names: tuple[str, ...]
    sizes: Sizes
    splits: Mapping[str, tuple[np.ndarray, np.ndarray]]
    shards: Shards | tuple[np.ndarray, ...]  # each [samples_per_shard, t <= T, d <= D] float16
    samples_per_shard: int
    action_shards: Shards | tuple[np.ndarray, ...] = ()  # each [samples_per_shard, H, d_a] float32; none without a head
    starts: tuple[str, ...] = ()  # digests of the scenes in which the episodes start, where the data set has them
    normalisation: Normalisation | None = None  # of states and actions; None: they are as recorded

    @classmethod
    def open(cls, manifest: Path) -> FeatureCache:
        runs = open_runs(manifest)
        if len(runs) != 1:
            raise GhostError(f"{manifest}: a feature cache has one run, this has {len(runs)}")
        return cls.of(runs[0])

    @classmethod
    def of(cls, run: Run) -> FeatureCache:
        """The cache of a run. A missing shard is an error here; another fault is one when the shard is read."""
        index = read_json(run.path(INDEX), INDEXED)
        arrays, sizes = run.arrays(), Sizes(**{name: index["sizes"][name] for name in SIZES})
        names = {name.split("/")[1] for name in arrays if name.startswith("split/")}
        parts = [f"split/{name}/{part}" for name in names for part in ("train", "test")]
        _check(arrays, parts, sizes, len(index["task_names"]), f"{run.folder}/seed{run.seed}")
        small = {name: arrays[name] for name in SMALL}
        small["action_mask"] = small["action_mask"].astype(bool)
        splits = {name: (arrays[f"split/{name}/train"], arrays[f"split/{name}/test"]) for name in names}
        listed, per_shard, task_names = index["shards"], index["samples_per_shard"], index["task_names"]

        def shards(kind: str, shape: tuple[int, int], dtype: type) -> Shards:
            names = [name for name in listed if name.startswith(f"{kind}/")]
            return Shards(run, names, len(small["state"]), per_shard, shape, dtype)

        scales = index["normalisation"]
        normalisation = Normalisation.of(scales, run.path(INDEX)) if scales is not None else None
        has_head = any(name.startswith(f"{ACTIONS}/") for name in listed)
        return cls(
            **small,
            task_names=tuple(task_names),
            sizes=sizes,
            splits=splits,
            shards=shards(TOKENS, (sizes.tokens, sizes.d_token), np.float16),
            samples_per_shard=per_shard,
            action_shards=shards(ACTIONS, (sizes.horizon, sizes.d_action), np.float32) if has_head else (),
            starts=tuple(index["starts"]),
            normalisation=normalisation,
        )

    def __len__(self) -> int:
        return len(self.state)

    def tokens(self, indices: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The tokens of these samples [n, T, D] float16, in the order asked for; into `out`, if one is given.

        An `out` of [n, t, d] that has room for what is stored (`stored`) saves the zeros.
        """
        if out is None:
            out = np.empty((len(indices), self.sizes.tokens, self.sizes.d_token), np.float16)
        return self._gather(self.shards, indices, out)

    def stored(self) -> tuple[int, int]:
        """How many tokens and dims the shards hold at most (t, d); all else is zero."""
        shapes = self.shards.stored() if isinstance(self.shards, Shards) else [shard.shape[1:] for shard in self.shards]
        return max((t for t, _ in shapes), default=1), max((d for _, d in shapes), default=1)

    def predicted_action(self, indices: np.ndarray) -> np.ndarray:
        """What the backbone's own head predicts for these samples [n, H, d_a] float32, comparable with `action`."""
        if not self.action_shards:
            raise GhostError("the feature cache has no predicted actions: its backbone has no action head")
        out = np.empty((len(indices), self.sizes.horizon, self.sizes.d_action), np.float32)
        return self._gather(self.action_shards, indices, out)

    def _gather(self, shards: Shards | tuple[np.ndarray, ...], indices: np.ndarray, out: np.ndarray) -> np.ndarray:
        indices = np.asarray(indices, dtype=np.int64)
        if len(indices) and not (indices.min() >= 0 and indices.max() < len(self)):
            raise IndexError(f"samples are 0 to {len(self) - 1}, got {indices.min()} to {indices.max()}")
        shard, row = np.divmod(indices, self.samples_per_shard)
        breaks = np.flatnonzero((np.diff(indices) != 1) | (np.diff(shard) != 0)) + 1
        for start, stop in pairwise([0, *breaks.tolist(), len(indices)]):  # neighbours in one piece
            if stop > start:
                found = shards[int(shard[start])][row[start] : row[start] + stop - start]
                t, d = found.shape[1:]
                out[start:stop, :t, :d] = found
                out[start:stop, t:] = 0
                out[start:stop, :t, d:] = 0
        return out

    def split(self, name: str, tasks: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
        """Sample indices (train, test) of the split "episode" or "sample", of these tasks or of all."""
        for kind, asked, known in (("split", (name,), self.splits), ("task", tasks, self.task_names)):
            for wrong in set(asked) - set(known):
                raise GhostError(f"the feature cache has no {kind} {wrong!r}{did_you_mean(wrong, known)}")
        train, test = self.splits[name]
        if tasks:
            of_tasks = np.isin(self.task, [self.task_names.index(task) for task in tasks])
            train, test = train[of_tasks[train]], test[of_tasks[test]]
        return train, test


def _check(arrays: Mapping[str, np.ndarray], splits: list[str], sizes: Sizes, tasks: int, where: str) -> None:
    """Refuse arrays that are not those of a cache: absent, of another shape or kind, not finite, or out of range."""
    n = len(arrays["state"]) if "state" in arrays and arrays["state"].ndim else 0
    shapes: dict[str, tuple[int, ...]] = {"state": (n, sizes.d_state), "action": (n, sizes.horizon, sizes.d_action)}
    shapes |= {"action_mask": (sizes.d_action,)} | dict.fromkeys(("task", "phase", "episode", "timestep"), (n,))
    shapes |= {name: (arrays[name].size if name in arrays else 0,) for name in splits}
    highest = {"task": tasks} | dict.fromkeys(splits, n)
    for name, shape in shapes.items():
        found, kinds = arrays.get(name), "f" if name in ("state", "action") else "iub"
        if found is None or found.shape != shape or found.dtype.kind not in kinds:
            raise GhostError(f"{where} is not a feature cache: {name} is {_described(found)}, expected {shape}")
        outside = found.size and name in highest and not (found.min() >= 0 and found.max() < highest[name])
        if outside or (kinds == "f" and not np.isfinite(found).all()):
            raise GhostError(f"{where} is not a feature cache: {name} is out of range")


def _described(array: np.ndarray | None) -> str:
    return "missing" if array is None else f"{array.dtype} {array.shape}"


class Shards:
    """The shards of one kind, memory-mapped. One that is truncated, altered or mixed up is named when first read."""

    def __init__(
        self, run: Run, names: list[str], samples: int, per_shard: int, shape: tuple[int, int], dtype: type
    ) -> None:
        self.run, self.names, self.shape, self.dtype = run, names, shape, dtype
        self.lengths = shard_lengths(samples, per_shard)
        self.opened: dict[int, np.ndarray] = {}
        if len(names) != len(self.lengths):
            raise GhostError(
                f"{run.folder}: {samples} samples need {len(self.lengths)} shards, {INDEX} lists {len(names)}"
            )
        for name in names:
            if not confined(run.folder, f"seed{run.seed}/{name}").is_file():
                raise GhostError(f"{run.folder}/seed{run.seed}/{name} is missing; run the step again")

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> np.ndarray:
        """Shard `number` [length, *shape], of tokens [length, t, d], verified."""
        if number not in self.opened:
            self.opened[number] = self._mapped(number, self.run.path(self.names[number]))
        return self.opened[number]

    def stored(self) -> list[tuple[int, ...]]:
        """The shape of a sample in each shard, from its first bytes; the rest is not read, so not verified yet."""
        paths = (confined(self.run.folder, f"seed{self.run.seed}/{name}") for name in self.names)
        return [self._mapped(number, path).shape[1:] for number, path in enumerate(paths)]

    def _mapped(self, number: int, path: Path) -> np.ndarray:
        try:
            shard = np.lib.format.open_memmap(path, mode="r")
        except (ValueError, EOFError, TypeError, OverflowError, SyntaxError, TokenError) as error:  # as headers fail
            raise GhostError(f"{path} is not an array: {error}") from None
        is_of_samples = shard.ndim == 3 and len(shard) == self.lengths[number] and shard.dtype == self.dtype
        fits = is_of_samples and all(1 <= n <= most for n, most in zip(shard.shape[1:], self.shape, strict=True))
        if not fits or (self.dtype != np.float16 and shard.shape[1:] != self.shape):  # tokens alone may be smaller
            raise GhostError(f"{path} is {shard.dtype} {shard.shape}, not as {INDEX} says")
        return shard


def shard_lengths(samples: int, per_shard: int) -> list[int]:
    return [min(per_shard, samples - start) for start in range(0, samples, per_shard)]


def without_padding(tokens: np.ndarray) -> np.ndarray:
    """Tokens [n, T, D] without the last tokens and the last dims that are zero in all n samples: [n, t, d]."""
    t, d = (1 + int(max(np.flatnonzero(tokens.any(axis=axes)), default=0)) for axes in ((0, 2), (0, 1)))
    return tokens[:, :t, :d]


def write_shard(folder: Path, encoded: Encoded) -> tuple[str, ...]:
    """Write tokens.npy, and actions.npy where the backbone has a head; returns their names."""
    arrays = {TOKENS: without_padding(encoded.tokens)}
    arrays |= {} if encoded.actions is None else {ACTIONS: encoded.actions}
    for kind, values in arrays.items():
        content = io.BytesIO()
        np.save(content, values, allow_pickle=False)  # into memory: on a full disk np.save does not say what failed
        with atomic(folder / f"{kind}.npy") as temporary:
            temporary.write_bytes(content.getbuffer())
    return tuple(f"{kind}.npy" for kind in arrays)
