"""From runs to a number: what a cell shows, over how many runs, with which interval.

An estimator takes the cell (a row of the table, as a dict) and the runs, and returns an `Estimate`. One of COMPARISONS
also takes the runs of the experiment that the cell names as `against`; those of tests are paired by training seed.
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
from ghost.report import statistics
from ghost.runs.code import file_hash, module_path
from ghost.runs.records import Run

NOT_RUN = "not run"


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


def mean_where_run(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """Mean over the episodes of all runs, whose rows hold a mean over n each; "none" where there is no such episode."""
    named = (cell["condition"], cell["metric"])
    rows = [m for run in runs for m in run.measured() if (m.condition, m.metric) == named]
    known = [row for row in rows if not math.isnan(row.value)]
    n = sum(row.n for row in known)
    if not n:
        return Estimate("none" if rows else NOT_RUN, None, 0)
    return _estimate(sum(row.value * row.n for row in known) / n, cell, n)


def mean_std(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """Mean and sample standard deviation over runs, as the paper prints them; one run has no deviation."""
    average, std, interval = _over_runs(cell, runs)
    spread = f" ± {format(std, cell['digits'])}" if len(runs) > 1 else ""
    return _estimate(average, cell, len(runs), interval, suffix=spread)


def bootstrap(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """Mean over runs, shown with its percentile bootstrap 95 % interval."""
    found = [run.value(cell["condition"], cell["metric"]) for run in runs]
    estimate = statistics.bootstrap_mean(found)
    interval = _known(estimate.interval)
    suffix = " [{}, {}]".format(*(format(bound, cell["digits"]) for bound in interval)) if interval else ""
    return _estimate(estimate.estimate, cell, len(runs), interval, suffix)


def over_episodes(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """Mean and sample standard deviation over the episodes of all runs (an array each), as the paper prints them.

    The interval is that of the mean over runs: episodes of one training are not independent of each other.
    """
    found = [np.asarray(run.arrays()[cell["metric"]], float) for run in runs]
    pooled = np.concatenate(found)
    std = f" ± {format(float(pooled.std(ddof=1)), cell['digits'])}" if len(pooled) > 1 else ""
    interval = _known(statistics.bootstrap_mean([float(values.mean()) for values in found]).interval)
    return _estimate(float(pooled.mean()), cell, len(pooled), interval, suffix=std)


def success_share(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """The share of episodes that succeeded, over all runs, as 97/100, with Wilson's interval."""
    found = np.concatenate([np.asarray(run.arrays()[cell["metric"]], float) for run in runs])
    rate = statistics.wilson(int(found.sum()), len(found))
    return Estimate(f"{int(found.sum())}/{len(found)}", rate.estimate, len(found), rate.interval)


def interval(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """The percentile bootstrap 95 % interval of the mean over runs, alone."""
    estimate = statistics.bootstrap_mean([run.value(cell["condition"], cell["metric"]) for run in runs])
    bounds = _known(estimate.interval)
    shown = "{} to {}".format(*(format(bound, cell["digits"]) for bound in bounds)) if bounds else "one run"
    return Estimate(shown, estimate.estimate, len(runs), bounds)


def largest(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """The largest over runs: for bounds that every run must keep."""
    found = [run.value(cell["condition"], cell["metric"]) for run in runs]
    return _estimate(math.nan if any(map(math.isnan, found)) else max(found), cell, len(runs))


def success_rate(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """Successes over trials of all runs, in percent, shown with Wilson's 95 % interval."""
    rate = _pooled_rate(cell, runs)
    if rate is None:
        return Estimate(NOT_RUN, None, 0)
    low, high = (100 * bound for bound in rate.interval)
    suffix = f" [{format(low, cell['digits'])}, {format(high, cell['digits'])}]"
    return _estimate(100 * rate.estimate, cell, rate.n, (low, high), suffix)


def trials(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """How many trials a success rate of these runs rests on."""
    rate = _pooled_rate(cell, runs)
    return Estimate(NOT_RUN, None, 0) if rate is None else Estimate(str(rate.n), float(rate.n), rate.n)


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


def millions(cell: Mapping[str, Any], runs: list[Run]) -> Estimate:
    """A count that every run shares, such as the number of parameters, in millions."""
    found = {run.value(cell["condition"], cell["metric"]) for run in runs}
    if len(found) != 1:
        raise GhostError(f"{cell['id']}: the runs of {cell['experiment']} count {sorted(found)}, expected one number")
    return _estimate(found.pop() / 1e6, cell, len(runs))


# ------------------------------------------------------------------------------------------ two experiments' runs


def paired_p(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """p of the two-sided paired t-test."""
    test = statistics.paired_t_test(*_pairs(cell, runs, against))
    return _estimate(test.p, cell, test.n, shown=show_p(test.p, cell["digits"]))


def holm_p(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """The same, for a cell that `summarize` corrects after Holm: its family is every such cell of the table."""
    return paired_p(cell, runs, against)


def cohens_d(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """Cohen's d with the pooled deviation: the paper's in tab:lightweight and tab:loss_ablation."""
    d = statistics.cohens_d(*_pairs(cell, runs, against))
    return _estimate(d.estimate, cell, d.n, _known(d.interval))


def paired_d(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """Cohen's d_z, of the differences: the paper's in tab:ablation."""
    d = statistics.paired_d(*_pairs(cell, runs, against))
    return _estimate(d.estimate, cell, d.n, _known(d.interval))


def relative_change(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """How much larger the mean is than that of `against`, in percent of the latter."""
    change = statistics.relative_change(*_pairs(cell, runs, against))
    return _estimate(change.estimate, cell, change.n, _known(change.interval))


def improved_share(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """In how many pairs the first is lower, as 8/10."""
    first, second = _pairs(cell, runs, against)
    lower = sum(a < b for a, b in zip(first, second, strict=True))
    rate = statistics.wilson(lower, len(first))
    return Estimate(f"{lower}/{len(first)}", rate.estimate, len(first), rate.interval)


def detectable(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """The smallest mean difference that so many pairs, of this spread, show with 80 % power."""
    first, second = _pairs(cell, runs, against)
    if len(first) == 1:
        return _estimate(math.nan, cell, 1)
    std = float(np.std(np.subtract(first, second), ddof=1))
    return _estimate(statistics.smallest_detectable_difference(std, len(first)), cell, len(first))


def ratio(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """Mean over mean; the runs need not be pairs."""
    first = [run.value(cell["condition"], cell["metric"]) for run in runs]
    second = _against(cell, against)
    return _estimate(float(np.mean(first) / np.mean(second)), cell, min(len(first), len(second)))


def bootstrap_ratio(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """Mean over mean of pairs, shown with its percentile bootstrap 95 % interval over the pairs."""
    found = statistics.bootstrap_ratio(*_pairs(cell, runs, against))
    interval = _known(found.interval)
    suffix = " [{}, {}]".format(*(format(bound, cell["digits"]) for bound in interval)) if interval else ""
    return _estimate(found.estimate, cell, found.n, interval, suffix)


def rate_difference(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """Success rate minus that of `against`, in percentage points."""
    first, second = _pooled_rate(cell, runs), _pooled_rate(cell, against)
    if first is None or second is None:
        return Estimate(NOT_RUN, None, 0)
    return _estimate(100 * (first.estimate - second.estimate), cell, min(first.n, second.n))


def complexity_r(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """Correlation over tasks of the difference in success with the number of demonstrated sub-phases."""
    x, y = complexity(runs, against)
    known = len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0
    return _estimate(float(np.corrcoef(x, y)[0, 1]) if known else math.nan, cell, len(x))


def complexity_slope(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> Estimate:
    """Percentage points of that difference per sub-phase: least squares over tasks."""
    x, y = complexity(runs, against)
    return _estimate(float(np.polyfit(x, y, 1)[0]) if len(x) > 2 and np.ptp(x) > 0 else math.nan, cell, len(x))


def complexity(runs: list[Run], against: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """Per task: demonstrated sub-phases, and the difference in success in percentage points; the figure draws these."""
    tasks = [m.condition for m in runs[0].measured() if m.metric == "demonstrated_phases"]
    x = [runs[0].value(task, "demonstrated_phases") for task in tasks]
    y = [
        100
        * (np.mean([run.value(task, "success") for run in runs]) - np.mean([r.value(task, "success") for r in against]))
        for task in tasks
    ]
    return np.array(x), np.array(y)


ESTIMATORS: dict[str, Callable[[Mapping[str, Any], list[Run]], Estimate]] = {
    function.__name__: function
    for function in (
        value,
        mean,
        mean_where_run,
        mean_std,
        bootstrap,
        interval,
        over_episodes,
        success_share,
        largest,
        millions,
        success_rate,
        trials,
        setting,
        runs,
        series,
        module,
    )
}
COMPARISONS: dict[str, Callable[[Mapping[str, Any], list[Run], list[Run]], Estimate]] = {
    function.__name__: function
    for function in (
        paired_p,
        holm_p,
        cohens_d,
        paired_d,
        relative_change,
        improved_share,
        detectable,
        ratio,
        bootstrap_ratio,
        rate_difference,
        complexity_r,
        complexity_slope,
    )
}


def show_p(p: float, digits: str) -> str:
    """A p value that never shows as zero: below what the digits can tell it is "< 0.001"."""
    shown = format(p, digits)
    if p < 1 and "e" not in shown and float(shown) == 0:
        shown = f"< {format(10.0 ** -len(shown.partition('.')[2]), digits)}"
    return shown


def _pairs(cell: Mapping[str, Any], runs: list[Run], against: list[Run]) -> tuple[list[float], list[float]]:
    """The values of both experiments, paired by seed; a seed that only one of them has is an error, not left out."""
    seeds, others = [run.seed for run in runs], {run.seed: run for run in against}
    if sorted(seeds) != sorted(others):
        raise GhostError(
            f"{cell['id']}: {cell['experiment']} has seeds {sorted(seeds)}, {cell['against']} has {sorted(others)}"
        )
    first = [run.value(cell["condition"], cell["metric"]) for run in runs]
    return first, _against(cell, [others[seed] for seed in seeds])


def _against(cell: Mapping[str, Any], against: list[Run]) -> list[float]:
    condition = cell["against_condition"] or cell["condition"]
    metric = cell["against_metric"] or cell["metric"]
    return [run.value(condition, metric) for run in against]


def _pooled_rate(cell: Mapping[str, Any], runs: list[Run]) -> statistics.Estimated | None:
    """Successes over trials, all runs together; a row of theirs holds a rate and its number of trials.

    None where no run has this condition: a task that a small scale leaves out.
    """
    rows = [m for run in runs for m in run.measured() if (m.condition, m.metric) == (cell["condition"], cell["metric"])]
    if not rows:
        return None
    if len(rows) != len(runs):
        raise GhostError(f"{cell['id']}: {len(rows)} of {len(runs)} runs have {cell['condition']}/{cell['metric']}")
    return statistics.wilson(round(sum(row.value * row.n for row in rows)), sum(row.n for row in rows))


def _known(interval: tuple[float, float]) -> tuple[float, float] | None:
    return interval if all(map(math.isfinite, interval)) else None


def _estimate(
    value: float,
    cell: Mapping[str, Any],
    n: int,
    interval: tuple[float, float] | None = None,
    suffix: str = "",
    shown: str = "",
) -> Estimate:
    """A number as its cell shows it; nan (a run that never got there) is shown as "undefined", never averaged away."""
    if not math.isfinite(value):
        return Estimate("undefined", None, n)
    return Estimate((shown or format(value, cell["digits"])) + suffix, value, n, interval)


def _over_runs(cell: Mapping[str, Any], runs: list[Run]) -> tuple[float, float, tuple[float, float] | None]:
    """Mean, sample standard deviation (0 for one run) and the mean's 95 % interval (None for one run)."""
    found = [run.value(cell["condition"], cell["metric"]) for run in runs]
    average = float(np.mean(found))
    if len(found) == 1:
        return average, 0.0, None
    std = float(np.std(found, ddof=1))
    half = float(stdtrit(len(found) - 1, 0.975)) * std / math.sqrt(len(found))
    return average, std, (average - half, average + half)
