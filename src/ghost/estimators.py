"""From runs to a number: what a cell shows, over how many runs, with which interval.

An estimator takes the cell (a row of the table, as a dict) and the runs, and returns an `Estimate`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from ghost.errors import GhostError
from ghost.records import Run
from ghost.sources import file_hash, module_path


@dataclass(frozen=True)
class Estimate:
    """`shown` is what the PDF prints; `value` is not rounded, and None for what is not a number."""

    shown: str
    value: float | None
    n: int
    interval: tuple[float, float] | None = None  # 95 %
    sha256: str | None = None  # of what is not a number: a curve's points, a module's code


def value(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """The value of the only run: for experiments without chance."""
    if len(runs) != 1:
        raise GhostError(f"{cell['id']}: estimator value wants one run, {cell['experiment']} has {len(runs)}")
    found = runs[0].value(cell["condition"], cell["metric"])
    return _estimate(found, cell, 1)


def mean(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """Mean over runs, with Student's 95 % interval."""
    average, _, interval = _over_runs(cell, runs)
    return _estimate(average, cell, len(runs), interval)


def mean_std(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """Mean and sample standard deviation over runs, as the paper prints them."""
    average, std, interval = _over_runs(cell, runs)
    return _estimate(average, cell, len(runs), interval, suffix=f" ± {format(std, cell['digits'])}")


def largest(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """The largest over runs: for bounds that every run must keep."""
    found = [run.value(cell["condition"], cell["metric"]) for run in runs]
    return _estimate(math.nan if any(map(math.isnan, found)) else max(found), cell, len(runs))


def setting(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """A setting as the runs had it: so that not even a step size is typed into the text."""
    found = runs[0].record()["settings"][cell["metric"]]
    if isinstance(found, list):
        return Estimate(", ".join(format(item, cell["digits"]) for item in found), None, len(found))
    return Estimate(format(found, cell["digits"]), float(found), len(runs))


def runs(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """How many runs there are."""
    return Estimate(str(len(runs)), float(len(runs)), len(runs))


def series(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """A curve of a figure: the number of its points, and their hash."""
    digest, points = hashlib.sha256(), 0
    for run in runs:
        arrays = run.arrays()
        if cell["metric"] not in arrays:
            raise GhostError(f"{cell['id']}: {cell['experiment']} has no array {cell['metric']}")
        digest.update(arrays[cell["metric"]].tobytes())
        points += arrays[cell["metric"]].size
    return Estimate("curve", None, points, sha256=digest.hexdigest())


def module(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """A module that implements something, and the hash of its code; "not built" while it is missing."""
    path = module_path(cell["metric"])
    if path is None:
        return Estimate("not built", None, 0)
    name = cell["metric"].removeprefix("ghost.").replace(".", "/")
    return Estimate(f"{name}.py", None, 0, sha256=file_hash(path))


ESTIMATORS: dict[str, Callable[[Mapping[str, Any], list[Run]], Estimate]] = {
    function.__name__: function for function in (value, mean, mean_std, largest, setting, runs, series, module)
}


def _estimate(
    value: float, cell: Mapping[str, Any], n: int, interval: tuple[float, float] | None = None, suffix: str = ""
) -> Estimate:
    """A number as its cell shows it; nan (a run that never got there) is shown as "undefined", never averaged away."""
    if math.isnan(value):
        return Estimate("undefined", None, n)
    return Estimate(format(value, cell["digits"]) + suffix, value, n, interval)


def _over_runs(cell: Mapping[str, Any], runs: list[Run]) -> tuple[float, float, tuple[float, float] | None]:
    """Mean, sample standard deviation (0 for one run) and the mean's 95 % interval (None for one run)."""
    found = [run.value(cell["condition"], cell["metric"]) for run in runs]
    average = float(np.mean(found))
    if len(found) == 1:
        return average, 0.0, None
    std = float(np.std(found, ddof=1))
    half = float(stdtrit(len(found) - 1, 0.975)) * std / math.sqrt(len(found))
    return average, std, (average - half, average + half)
