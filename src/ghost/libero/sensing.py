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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from ghost.backbones import Observations
from ghost.data.features import INDEX, INDEXED
from ghost.data.lerobot import STATE
from ghost.data.normalisation import Normalisation, Scale
from ghost.errors import GhostError
from ghost.files import read_json
from ghost.forms import require
from ghost.libero.conventions import D_ACTION, FOREIGN, SCRIPTED, Convention, find_convention
from ghost.runs.records import Run

if TYPE_CHECKING:
    from ghost.libero.environment import Environment

Raw = dict[str, np.ndarray]  # column -> its value at one step, as the data set has it before normalisation


@dataclass(frozen=True)
class Senses:
    convention: Convention
    cameras: tuple[str, ...]  # the columns that the backbone sees; none where it does not see
    d_state: int  # of the cache, padding included
    state: Scale | None = None  # None: as it is
    action: Scale | None = None

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
        name, d_state = index.get("convention"), index["sizes"]["d_state"]
        if index["normalisation"] is None:
            return cls(find_convention(name or SCRIPTED), tuple(cameras), d_state)
        scales = Normalisation.of(index["normalisation"], f"{where}: normalisation")
        convention = find_convention(name) if name else FOREIGN  # recordings of LIBERO name theirs
        return cls(convention, tuple(cameras), d_state, scales.state, scales.action)

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
        if self.state is not None and seen.shape[1:] != self.state.low.shape:
            raise GhostError(f"an observation: {STATE} must have {len(self.state.low)} values, not {seen.shape[1:]}")
        for camera in self.cameras:
            for picture in (one[camera] for one in raw):
                if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
                    raise GhostError(f"an observation: {camera} must be a picture [height, width, 3] uint8")
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
        """A chunk [H, d_a], normalised and padded as in the cache, as the simulation takes it [H, 7] float64.

        A lab's own robot gets it as the lab recorded it [H, d].
        """
        if self.action is not None:
            return self.convention.command(self.action.undo(chunk))
        return self.convention.command(np.asarray(chunk, np.float64)[:, :D_ACTION])
