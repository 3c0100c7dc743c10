"""From runs to a number: what a cell shows, over how many runs, with which interval.

An estimator takes the cell's declaration (as a dict) and the runs, and returns an `Estimate`. A comparison also takes
the runs of the experiment that the cell names as `against`. ESTIMATORS and COMPARISONS, at the end, list them by name.
Most are a statistic of the runs' values and a way to show it.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np

from ghost.data.results import Measured
from ghost.errors import GhostError
from ghost.report import statistics
from ghost.report.statistics import Data, Estimated, Interval
from ghost.runs.code import file_hash, module_path
from ghost.runs.records import Run


@dataclass(frozen=True)
class Estimate:
    """`shown` is the text that the PDF prints; `value` is not rounded, and None for a result that is not a number."""

    shown: str
    value: float | None
    n: int
    interval: Interval | None = None  # 95 %
    sha256: str | None = None  # of a result that is not a number: a curve's points, a module's code
    unpaired: tuple[int, ...] = ()  # seeds that only one of two compared experiments has


Cell = Mapping[str, Any]
Show = Callable[[Cell, Estimated], Estimate]
Estimator = Callable[[Cell, list[Run]], Estimate]
Comparison = Callable[[Cell, list[Run], list[Run]], Estimate]
NOT_RUN = Estimate("not run", None, 0)


def number(cell: Cell, found: Estimated, *, suffix: str = "", show: Callable[[float, str], str] = format) -> Estimate:
    """A number as the cell shows it; nan (a run that never reached its goal) is "undefined"."""
    if not math.isfinite(found.estimate):
        return Estimate("undefined", None, found.n) if found.n else NOT_RUN
    interval = found.interval if all(map(math.isfinite, found.interval)) else None
    return Estimate(show(found.estimate, cell["digits"]) + suffix, found.estimate, found.n, interval)


def with_interval(cell: Cell, found: Estimated) -> Estimate:
    return number(cell, found, suffix=_bounds(" [{}, {}]", cell, found))


def interval_alone(cell: Cell, found: Estimated) -> Estimate:
    return replace(number(cell, found), shown=_bounds("{} to {}", cell, found) or "one run")


def share(cell: Cell, found: Estimated) -> Estimate:
    """As 97/100."""
    return replace(number(cell, found), shown=f"{round(found.estimate * found.n)}/{found.n}")


def show_p(p: float, digits: str) -> str:
    """A p value that never shows as zero: one that these digits would round to zero is shown as "< 0.001"."""
    shown = format(p, digits)
    if p < 1 and "e" not in shown and float(shown) == 0:
        shown = f"< {format(10.0 ** -len(shown.partition('.')[2]), digits)}"
    return shown


def _bounds(template: str, cell: Cell, found: Estimated) -> str:
    """The interval as text; empty where it is not known."""
    bounds = [format(bound, cell["digits"]) for bound in found.interval if math.isfinite(bound)]
    return template.format(*bounds) if len(bounds) == 2 else ""


def _spread(cell: Cell, values: Data) -> str:
    return f" ± {format(float(np.std(values, ddof=1)), cell['digits'])}" if len(values) > 1 else ""


def values(cell: Cell, runs: list[Run]) -> list[float]:
    return [run.value(cell["condition"], cell["metric"]) for run in runs]


def against_values(cell: Cell, against: list[Run]) -> list[float]:
    """The values of the other side, which may be of another condition or metric."""
    return values({key: cell[f"against_{key}"] or cell[key] for key in ("condition", "metric")}, against)


def measured(cell: Cell, runs: list[Run]) -> list[Measured]:
    """The cell's value in those runs that have it; a small scale leaves tasks out."""
    named = (cell["condition"], cell["metric"])
    return [m for run in runs for m in run.measured() if (m.condition, m.metric) == named]


def arrays(cell: Cell, runs: list[Run]) -> list[np.ndarray]:
    found = [run.arrays() for run in runs]
    if not all(cell["metric"] in own for own in found):
        raise GhostError(f"{cell['id']}: {cell['experiment']} has no array {cell['metric']}")
    return [own[cell["metric"]] for own in found]


def pooled_rate(cell: Cell, runs: list[Run]) -> Estimated:
    """Successes over trials, all runs together; nan over no trials if no run has this condition."""
    found = measured(cell, runs)
    if not found:
        return Estimated(math.nan, 0)
    if len(found) != len(runs):
        raise GhostError(f"{cell['id']}: {len(found)} of {len(runs)} runs have {cell['condition']}/{cell['metric']}")
    return statistics.wilson(round(sum(m.value * m.n for m in found)), sum(m.n for m in found))


def over_runs(statistic: Callable[[Data], Estimated], show: Show = number) -> Estimator:
    """The estimator that shows a statistic of the runs' values."""

    @wraps(statistic)
    def estimate(cell: Cell, runs: list[Run]) -> Estimate:
        return show(cell, statistic(values(cell, runs)))

    return estimate


def over_pairs(statistic: Callable[[Data, Data], Estimated], show: Show = number) -> Comparison:
    """The comparison that shows a statistic of the values of both experiments, paired by training seed.

    It pairs the seeds that both have; the estimate lists the others.
    """

    @wraps(statistic)
    def compare(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
        others = {run.seed: run for run in against}
        shared = [run for run in runs if run.seed in others]
        if not shared:
            raise GhostError(f"{cell['id']}: {cell['experiment']} and {cell['against']} have no seed in common")
        second = against_values(cell, [others[run.seed] for run in shared])
        unpaired = {run.seed for run in runs} ^ others.keys()
        return replace(show(cell, statistic(values(cell, shared), second)), unpaired=tuple(sorted(unpaired)))

    return compare


def value(cell: Cell, runs: list[Run]) -> Estimate:
    """The value of the only run: for experiments without chance."""
    if len(runs) != 1:
        raise GhostError(f"{cell['id']}: estimator value needs one run, {cell['experiment']} has {len(runs)}")
    return number(cell, Estimated(values(cell, runs)[0], 1))


def mean_where_run(cell: Cell, runs: list[Run]) -> Estimate:
    """Mean over the episodes of all runs; a run's value is a mean over n. "none" where there is no such episode."""
    found = measured(cell, runs)
    known = [m for m in found if not math.isnan(m.value)]
    n = sum(m.n for m in known)
    if not n:
        return Estimate("none", None, 0) if found else NOT_RUN
    return number(cell, Estimated(sum(m.value * m.n for m in known) / n, n))


def mean_std(cell: Cell, runs: list[Run]) -> Estimate:
    """Mean and sample standard deviation over runs, as the paper prints them; one run has no deviation."""
    found = values(cell, runs)
    return number(cell, statistics.student_mean(found), suffix=_spread(cell, found))


def over_episodes(cell: Cell, runs: list[Run]) -> Estimate:
    """Mean and sample standard deviation over the episodes of all runs (an array each), as the paper prints them.

    The interval is that of the mean over runs: episodes of one training are not independent of each other.
    """
    found = arrays(cell, runs)
    pooled = np.concatenate(found, dtype=float)
    interval = statistics.bootstrap_mean([float(np.mean(own, dtype=float)) for own in found]).interval
    return number(cell, Estimated(float(pooled.mean()), len(pooled), interval), suffix=_spread(cell, pooled))


def success_share(cell: Cell, runs: list[Run]) -> Estimate:
    """The share of episodes that succeeded, over all runs, as 97/100, with Wilson's interval."""
    found = np.concatenate(arrays(cell, runs))
    return share(cell, statistics.wilson(int(found.sum()), len(found)))


def success_rate(cell: Cell, runs: list[Run]) -> Estimate:
    """Successes over trials of all runs, in percent, shown with Wilson's 95 % interval."""
    rate = pooled_rate(cell, runs)
    low, high = rate.interval
    return with_interval(cell, Estimated(100 * rate.estimate, rate.n, (100 * low, 100 * high)))


def trials(cell: Cell, runs: list[Run]) -> Estimate:
    """The number of trials behind a success rate of these runs."""
    rate = pooled_rate(cell, runs)
    return Estimate(str(rate.n), float(rate.n), rate.n) if rate.n else NOT_RUN


def setting(cell: Cell, runs: list[Run]) -> Estimate:
    """A setting that the runs had, so that not even a step size is typed into the text."""
    settings = runs[0].record()["settings"]
    if cell["metric"] not in settings:
        raise GhostError(f"{cell['id']}: {runs[0].name} has no setting {cell['metric']!r}")
    found = settings[cell["metric"]]
    if isinstance(found, list):
        return Estimate(", ".join(format(item, cell["digits"]) for item in found), None, len(found))
    return Estimate(format(found, cell["digits"]), float(found), len(runs))


def runs(cell: Cell, runs: list[Run]) -> Estimate:
    """How many runs there are."""
    return Estimate(str(len(runs)), float(len(runs)), len(runs))


def series(cell: Cell, runs: list[Run]) -> Estimate:
    """A curve of a figure: the number of its points, and their hash."""
    found = arrays(cell, runs)
    digest = hashlib.sha256(b"".join(array.tobytes() for array in found))
    return Estimate("curve", None, sum(array.size for array in found), sha256=digest.hexdigest())


def module(cell: Cell, runs: list[Run]) -> Estimate:
    """A module that implements something, and the hash of its code; "not built" while it is missing."""
    path = module_path(cell["metric"])
    if path is None:
        return Estimate("not built", None, 0)
    name = cell["metric"].removeprefix("ghost.").replace(".", "/")
    return Estimate(f"{name}.py", None, 0, sha256=file_hash(path))


def millions(cell: Cell, runs: list[Run]) -> Estimate:
    """A count that every run shares, such as the number of parameters, in millions."""
    found = set(values(cell, runs))
    if len(found) != 1:
        raise GhostError(f"{cell['id']}: the runs of {cell['experiment']} count {sorted(found)}, expected one number")
    return number(cell, Estimated(found.pop() / 1e6, len(runs)))


def ratio(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Mean over mean; the runs need not be pairs."""
    found = float(np.mean(values(cell, runs)) / np.mean(against_values(cell, against)))
    return number(cell, Estimated(found, min(len(runs), len(against))))


def rate_difference(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Success rate minus that of `against`, in percentage points."""
    first, second = pooled_rate(cell, runs), pooled_rate(cell, against)
    return number(cell, Estimated(100 * (first.estimate - second.estimate), min(first.n, second.n)))


def complexity_r(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Correlation over tasks of the difference in success with the number of nominal sub-phases."""
    x, y = complexity(runs, against)
    known = len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0
    return number(cell, Estimated(float(np.corrcoef(x, y)[0, 1]) if known else math.nan, len(x)))


def complexity_slope(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Percentage points of that difference per sub-phase: least squares over tasks."""
    x, y = complexity(runs, against)
    known = len(x) > 2 and np.ptp(x) > 0
    return number(cell, Estimated(float(np.polyfit(x, y, 1)[0]) if known else math.nan, len(x)))


def complexity(runs: list[Run], against: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """Per task: nominal sub-phases, and the difference in success in percentage points; the figure draws these."""
    phases = {m.condition: m.value for m in runs[0].measured() if m.metric == "subphases"}
    ours, theirs = ([np.mean([run.value(task, "success") for run in r]) for task in phases] for r in (runs, against))
    return np.array([*phases.values()]), 100 * np.subtract(ours, theirs)


POOLED = (mean_where_run, over_episodes, success_share, success_rate, trials)  # over episodes or trials
ESTIMATORS: dict[str, Estimator] = {
    **{f.__name__: f for f in (setting, runs, series, module, value, mean_std, millions, *POOLED)},
    "mean": over_runs(statistics.student_mean),
    "bootstrap": over_runs(statistics.bootstrap_mean, with_interval),
    "interval": over_runs(statistics.bootstrap_mean, interval_alone),
    "largest": over_runs(statistics.largest),  # for bounds that every run must keep
}
COMPARISONS: dict[str, Comparison] = {
    **{f.__name__: f for f in (ratio, rate_difference, complexity_r, complexity_slope)},
    "paired_p": over_pairs(statistics.paired_p, partial(number, show=show_p)),
    "holm_p": over_pairs(
        statistics.paired_p, partial(number, show=show_p)
    ),  # `summarize` corrects all such cells of a table together
    "cohens_d": over_pairs(statistics.cohens_d),
    "paired_d": over_pairs(statistics.paired_d),
    "relative_change": over_pairs(statistics.relative_change),
    "improved_share": over_pairs(statistics.improved_share, share),
    "detectable": over_pairs(statistics.smallest_detectable_difference),
    "bootstrap_ratio": over_pairs(statistics.bootstrap_ratio, with_interval),
}
