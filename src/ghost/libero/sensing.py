"""From the simulation to what a backbone reads, and from a decoder's chunk back to the simulation.

A policy must see what its training data show, and its actions must mean what they meant there. `Senses` holds all of
it, as a feature cache carries it: the convention of the data set, its cameras, its normalisation.

    raw = senses.sense(env)                             beside the simulator: arrays of numpy, without torch or a model
    senses.observations([raw], [instruction], steps)    beside the model, which needs no simulator
    senses.command(chunk)                               the normalised chunk as the simulation takes it

Demonstrations of our scripted experts go the same way, with the convention "ghost": their state is of their own, there
are the poses that the stand-in backbone reads, and nothing is normalised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ghost.backbones import Observations
from ghost.data.features import INDEX, INDEXED
from ghost.data.lerobot import RAW, STATE
from ghost.errors import GhostError
from ghost.files import read_json
from ghost.forms import require
from ghost.libero.conventions import D_ACTION, SCRIPTED, Convention, find_convention
from ghost.runs.records import Run

if TYPE_CHECKING:
    from ghost.libero.environment import Environment

Raw = dict[str, np.ndarray]  # column -> its value at one step, as the data set has it before normalisation


@dataclass(frozen=True)
class Limits:
    """The raw values [d] of -1 and 1. A dimension that never changes is 0."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        return cls(np.array(given["min"], np.float64), np.array(given["max"], np.float64))

    def apply(self, raw: np.ndarray) -> np.ndarray:
        span = np.where(self.high > self.low, self.high - self.low, 1.0)
        return np.asarray(np.where(self.high > self.low, 2 * (raw - self.low) / span - 1, 0.0), np.float32)

    def undo(self, normalised: np.ndarray) -> np.ndarray:
        return np.asarray(self.low + (np.asarray(normalised, np.float64) + 1) / 2 * (self.high - self.low))


@dataclass(frozen=True)
class Senses:
    convention: Convention
    cameras: tuple[str, ...]  # the columns that the backbone sees; none where it does not see
    d_state: int  # of the cache, padding included
    state: Limits | None = None  # None: as it is
    action: Limits | None = None

    @classmethod
    def of(cls, features: Run) -> Self:
        """Those of a feature cache: a policy that was trained on it must see and act so."""
        index, settings = read_json(features.path(INDEX), INDEXED), features.record()["settings"]
        where = f"{features.name}: {INDEX}"
        require(index.get("convention", ""), str, f"{where}: convention")
        require(index.get("cameras", []), [str], f"{where}: cameras")
        cameras: Sequence[str] = ()
        if "cameras" in settings:  # a backbone that sees has this setting; empty: all cameras, by name
            cameras = settings["cameras"] or sorted(index.get("cameras", []))
        limits: dict[str, Limits] = {}
        if given := index.get("normalisation"):
            require(given, RAW, f"{where}: normalisation")
            limits = {name: Limits.of(given[name]) for name in ("state", "action")}
        convention = find_convention(index.get("convention") or SCRIPTED)
        return cls(convention, tuple(cameras), index["sizes"]["d_state"], limits.get("state"), limits.get("action"))

    def sense(self, env: Environment) -> Raw:
        """What the data set would record now. Pictures are rendered only for a backbone that sees."""
        pictures = {column: self.convention.picture(env, column) for column in self.cameras}
        return {**self.convention.columns(env), **pictures}

    def observations(self, raw: Sequence[Raw], instructions: Sequence[str], steps: np.ndarray) -> Observations:
        """What n simulators sense, in one batch. `steps` [n, 2] int64 seeds what a backbone draws for each."""
        missing = [column for column in (STATE, *self.cameras) if any(column not in one for one in raw)]
        if missing:
            raise GhostError(f"an observation has no {missing[0]!r}")
        seen = np.stack([one[STATE] for one in raw])  # [n, d]
        if self.state is not None:
            seen = self.state.apply(seen)
        state = np.zeros((len(raw), self.d_state), np.float32)
        state[:, : seen.shape[1]] = seen
        scene = [name for name in raw[0] if name != STATE and name not in self.cameras]
        return Observations(
            instructions=tuple(instructions),
            columns={name: np.stack([one[name] for one in raw]) for name in scene},
            frames=lambda camera: np.stack([one[camera] for one in raw]),
            cameras=self.cameras,
            state=state,
            step=steps,
        )

    def command(self, chunk: np.ndarray) -> np.ndarray:
        """A chunk [H, d_a], normalised and padded as in the cache, as the simulation takes it [H, 7] float64."""
        actions = np.asarray(chunk, np.float64)[:, :D_ACTION]
        return self.convention.command(actions if self.action is None else self.action.undo(actions))
