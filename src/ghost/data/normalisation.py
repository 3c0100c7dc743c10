"""How raw states and actions become the numbers that decoders see, and how actions go back to a robot.

Every dimension is shifted and scaled alone. A mode says which raw values become -1 and 1:

    limits      the smallest and the largest recorded value, as GR00T N1.5 has them
    quantiles   the 1 % and the 99 % quantile, so that a few outliers do not squeeze the rest; outliers lie beyond 1
    mean_std    the mean minus and plus one standard deviation

A dimension that never changes is 0, and its constant comes back. Where the quantiles coincide and the values do not, as
for a gripper that hardly moves, the limits take their place. Nothing is clipped, so `undo` is the inverse of `apply`.

A data set with normalised values has them in meta/normalisation.json, and a feature cache in its index:

    {"mode": "limits", "state": {"names": [...], "low": [...], "high": [...], "groups": {"arm": [0, 1, ...]}},
     "action": {likewise}}

Groups of dimensions, such as arm and gripper, have names by which errors are reported and robots are wired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from ghost.errors import GhostError, did_you_mean
from ghost.files import read_json
from ghost.forms import require

FILE = "meta/normalisation.json"  # of a data set
MODES = ("limits", "quantiles", "mean_std")
QUANTILES = (0.01, 0.99)
SCALE = {"names": [str], "low": [float], "high": [float]}  # and `groups`, where there are some
FORM = {"mode": str, "state": SCALE, "action": SCALE}


@dataclass(frozen=True)
class Scale:
    """Of the d dimensions of a vector: names, and the raw values of -1 and 1."""

    names: tuple[str, ...]
    low: np.ndarray  # [d] float64
    high: np.ndarray  # [d] float64
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # dimensions by the name of their group

    @property
    def constant(self) -> np.ndarray:
        """[d] bool: the dimensions that never change."""
        return np.asarray(self.low == self.high)

    def apply(self, raw: np.ndarray) -> np.ndarray:
        """raw [..., d] -> normalised [..., d] float32."""
        span = np.where(self.constant, 1.0, self.high - self.low)
        scaled = 2 * (np.asarray(raw, np.float64) - self.low) / span - 1
        return np.asarray(np.where(self.constant, 0.0, scaled), dtype=np.float32)

    def undo(self, normalised: np.ndarray) -> np.ndarray:
        """normalised [..., d or more] -> raw [..., d] float64; dimensions after the d-th are padding."""
        own = np.asarray(normalised, np.float64)[..., : len(self.low)]
        return np.asarray(self.low + (own + 1) / 2 * (self.high - self.low))

    @classmethod
    def measured(
        cls, mode: str, raw: np.ndarray, names: Sequence[str], groups: Mapping[str, tuple[int, ...]] | None = None
    ) -> Self:
        """The scale of these values [n, d]."""
        check_mode(mode)
        raw = np.asarray(raw, np.float64)
        low, high = raw.min(axis=0), raw.max(axis=0)
        if mode == "quantiles":
            inner = np.quantile(raw, QUANTILES, axis=0)
            low, high = np.where(inner[0] < inner[1], inner, (low, high))
        if mode == "mean_std":
            middle = np.where(low == high, low, raw.mean(axis=0))  # rounding moves the mean of equal values
            spread = np.where(low == high, 0.0, raw.std(axis=0))
            low, high = middle - spread, middle + spread
        return cls(tuple(names), low, high, groups or {})

    def plain(self) -> dict[str, Any]:
        groups = {name: list(dimensions) for name, dimensions in self.groups.items()}
        return {"names": list(self.names), "low": self.low.tolist(), "high": self.high.tolist(), "groups": groups}


@dataclass(frozen=True)
class Normalisation:
    """Of a data set's states and actions."""

    mode: str
    state: Scale
    action: Scale

    @classmethod
    def of(cls, value: Any, where: object) -> Self:
        """From a value of a file, checked. `where` names the file."""
        require(value, FORM, where)
        check_mode(value["mode"], where)
        return cls(value["mode"], *(_scale(value[kind], f"{where}: {kind}") for kind in ("state", "action")))

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.of(read_json(path), path)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"mode": self.mode, "state": self.state.plain(), "action": self.action.plain()}


def check_mode(mode: str, where: object = "normalisation") -> None:
    if mode not in MODES:
        raise GhostError(f"{where}: no mode {mode!r}{did_you_mean(mode, MODES)}")


def _scale(value: dict[str, Any], where: str) -> Scale:
    low, high = (np.array(value[end], np.float64) for end in ("low", "high"))
    if not (len(value["names"]) == len(low) == len(high) > 0):
        raise GhostError(f"{where}: names, low and high must be of one length, at least 1")
    if not (low <= high).all():
        raise GhostError(f"{where}: low must not lie above high, as for {value['names'][int(np.argmax(low > high))]}")
    groups = value.get("groups", {})
    if groups:
        require(groups, {str: [range(len(low))]}, f"{where}.groups")
    return Scale(tuple(value["names"]), low, high, {name: tuple(own) for name, own in groups.items()})


def numbered(kind: str, width: int) -> tuple[str, ...]:
    """Names of dimensions where a data set gives none: action_0, action_1, ..."""
    return tuple(f"{kind}_{number}" for number in range(width))
