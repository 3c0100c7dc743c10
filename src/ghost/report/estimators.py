"""From runs to a number: what a cell shows, over how many runs, with which interval.

An estimator takes the cell's declaration (as a dict) and the runs, and returns an `Estimate`. A comparison also takes
the runs of the experiment that the cell names as `against`. ESTIMATORS and COMPARISONS, at the end, list them by name.
Most are a statistic of the runs' values and a way to show it.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps

import numpy as np

from ghost.data.results import Measured
from ghost.errors import GhostError
from ghost.forms import SHA256, has_form
from ghost.report import rates, statistics
from ghost.report.rates import Outcomes
from ghost.report.shown import (
    NOT_RUN,
    Cell,
    Estimate,
    Show,
    bracketed,
    interval_alone,
    number,
    share,
    show_p,
    with_interval,
)
from ghost.report.statistics import Data, Estimated
from ghost.report.trials import episode_outcomes, outcomes, phase_steps, shared_outcomes
from ghost.runs.code import file_hash, module_path
from ghost.runs.records import Run

Estimator = Callable[[Cell, list[Run]], Estimate]
Comparison = Callable[[Cell, list[Run], list[Run]], Estimate]
DIGITS = 12  # of a hash that is shown


def _spread(cell: Cell, values: Data) -> str:
    return f" ± {format(float(np.std(values, ddof=1)), cell['digits'])}" if len(values) > 1 else ""


def values(cell: Cell, runs: list[Run]) -> list[float]:
    return [run.value(cell["condition"], cell["metric"]) for run in runs]


def against_values(cell: Cell, against: list[Run]) -> list[float]:
    return values(other_side(cell), against)


def measured(cell: Cell, runs: list[Run]) -> list[Measured]:
    """The cell's value in those runs that have it; a small scale leaves tasks out."""
    named = (cell["condition"], cell["metric"])
    return [m for run in runs for m in run.measured() if (m.condition, m.metric) == named]


def arrays(cell: Cell, runs: list[Run]) -> list[np.ndarray]:
    found = [run.arrays() for run in runs]
    if not all(cell["metric"] in own for own in found):
        raise GhostError(f"{cell['id']}: {cell['experiment']} has no array {cell['metric']}")
    return [own[cell["metric"]] for own in found]


def other_side(cell: Cell) -> Cell:
    """What a comparison takes from the runs of `against`, which may be of another condition or metric."""
    named = {key: cell[f"against_{key}"] or cell[key] for key in ("condition", "metric")}
    return {**cell, **named, "experiment": cell["against"]}


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
    """Mean over the episodes of all runs; a run's value is a mean over n. "none" where there is no such episode.

    The interval is over runs, each with its sum and its number of episodes.
    """
    found = measured(cell, runs)
    known = [m for m in found if not math.isnan(m.value)]
    if not known:
        return Estimate("none", None, 0) if found else NOT_RUN
    pooled = statistics.paired_ratio([m.value * m.n for m in known], [m.n for m in known])
    return number(cell, pooled._replace(n=sum(m.n for m in known)))


def ratio_where_run(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Mean over mean of two kinds of episodes, over the trainings that had both kinds; the others are listed."""
    sides = ((cell, runs), (other_side(cell), against))
    first, second = (
        {run.seed: m.value for run in of for m in measured(side, [run]) if not math.isnan(m.value)}
        for side, of in sides
    )
    both = [seed for seed in first if seed in second]
    alone = tuple(sorted(first.keys() ^ second.keys()))
    if not both:
        return replace(NOT_RUN, shown="none", unpaired=alone)
    found = statistics.paired_ratio([first[seed] for seed in both], [second[seed] for seed in both])
    return replace(with_interval(cell, found), unpaired=alone)


def phases_back(cell: Cell, runs: list[Run]) -> Estimate:
    """At how many of a hundred plans the inferred phase is an earlier one than at the plan before.

    Over the episodes that ended as the condition says; the interval is over trainings, as in `mean_where_run`.
    """
    steps = [found for run in runs if (found := phase_steps(run, ended=cell["condition"])).size]
    if not steps:
        return replace(NOT_RUN, shown="none")
    pooled = statistics.paired_ratio(
        [100 * float((found < 0).sum()) for found in steps], [found.size for found in steps]
    )
    return with_interval(cell, pooled._replace(n=sum(found.size for found in steps)))


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
    interval = statistics.student_mean([float(np.mean(own, dtype=float)) for own in found]).interval
    return number(cell, Estimated(float(pooled.mean()), len(pooled), interval), suffix=_spread(cell, pooled))


def success_share(cell: Cell, runs: list[Run]) -> Estimate:
    """The share of episodes that succeeded, as 97/100. The interval respects the runs, an array each."""
    return share(cell, rates.rate(episode_outcomes(arrays(cell, runs))))


def success_rate(cell: Cell, runs: list[Run]) -> Estimate:
    """Successes over trials of all runs, in percent, with an interval that respects trainings and trials."""
    found = outcomes(cell, runs)
    return with_interval(cell, percent(rates.rate(found))) if found else NOT_RUN


def trials(cell: Cell, runs: list[Run]) -> Estimate:
    """The number of distinct trials behind a success rate: trainings that meet the same trials add none."""
    found = outcomes(cell, runs)
    return Estimate(str(found.trials), float(found.trials), found.trials) if found else NOT_RUN


def percent(found: Estimated) -> Estimated:
    low, high = found.interval
    return Estimated(100 * found.estimate, found.n, (100 * low, 100 * high))


def setting(cell: Cell, runs: list[Run]) -> Estimate:
    """A setting that the runs had, so that not even a step size is typed into the text. For a folder from outside
    records have its hash, of which the beginning is shown."""
    settings = runs[0].record()["settings"]
    if cell["metric"] not in settings:
        raise GhostError(f"{cell['id']}: {runs[0].name} has no setting {cell['metric']!r}")
    found = settings[cell["metric"]]
    if isinstance(found, list):
        return Estimate(", ".join(format(item, cell["digits"]) for item in found), None, len(found))
    if isinstance(found, str):
        return Estimate(found[:DIGITS] if has_form(found, SHA256) else found, None, len(runs))
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


def difference(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Mean less mean, such as of two numbers of parameters; the runs need not be pairs."""
    found = float(np.mean(values(cell, runs)) - np.mean(against_values(cell, against)))
    return number(cell, Estimated(found, min(len(runs), len(against))))


def over_trials(statistic: Callable[[Outcomes, Outcomes], Estimated], show: Show = number) -> Comparison:
    """The comparison that shows a statistic of the outcomes of two policies in the trials that both met.

    The estimate lists the trials that only one of them met.
    """

    @wraps(statistic)
    def compare(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
        found = shared_outcomes(cell, runs, other_side(cell), against)
        if found is None:
            return NOT_RUN
        first, second, alone = found
        return replace(show(cell, statistic(first, second)), unpaired=alone)

    return compare


def in_points(show: Show) -> Show:
    """A difference of rates in percentage points."""
    return lambda cell, found: show(cell, percent(found))


def complexity_r(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Correlation over tasks of the difference in success with the number of nominal sub-phases."""
    return number(cell, statistics.correlation(*complexity(runs, against)))


def complexity_slope(cell: Cell, runs: list[Run], against: list[Run]) -> Estimate:
    """Percentage points of that difference per sub-phase: least squares over tasks."""
    return number(cell, statistics.slope(*complexity(runs, against)))


def complexity(runs: list[Run], against: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    """Per task: nominal sub-phases, and the difference in success in percentage points; the figure draws these."""
    phases = {m.condition: m.value for m in runs[0].measured() if m.metric == "subphases"}
    ours, theirs = ([np.mean([run.value(task, "success") for run in r]) for task in phases] for r in (runs, against))
    return np.array([*phases.values()]), 100 * np.subtract(ours, theirs)


POOLED = (mean_where_run, phases_back, over_episodes, success_share, success_rate, trials)  # over episodes or trials
ESTIMATORS: dict[str, Estimator] = {
    **{f.__name__: f for f in (setting, runs, series, module, value, mean_std, millions, *POOLED)},
    "mean": over_runs(statistics.student_mean),
    "mean_with_interval": over_runs(statistics.student_mean, with_interval),
    "mean_where_run_with_interval": bracketed(mean_where_run),
    "interval": over_runs(statistics.student_mean, interval_alone),
    "largest": over_runs(statistics.largest),  # for bounds that every run must keep
}
p_value: Show = partial(number, show=show_p)
COMPARISONS: dict[str, Comparison] = {
    **{f.__name__: f for f in (ratio, ratio_where_run, difference, complexity_r, complexity_slope)},
    "complexity_r_with_interval": bracketed(complexity_r),
    "complexity_slope_with_interval": bracketed(complexity_slope),
    "paired_p": over_pairs(statistics.paired_p, p_value),
    "holm_p": over_pairs(statistics.paired_p, p_value),
    "cohens_d": over_pairs(statistics.cohens_d),
    "paired_d": over_pairs(statistics.paired_d),
    "relative_change": over_pairs(statistics.relative_change),
    "relative_reduction": over_pairs(statistics.relative_reduction),
    "lower_share": over_pairs(statistics.lower_share, share),
    "higher_share": over_pairs(statistics.higher_share, share),
    "detectable": over_pairs(statistics.smallest_detectable_difference),
    "paired_ratio": over_pairs(statistics.paired_ratio, with_interval),
    "rate_difference": over_trials(rates.difference, in_points(with_interval)),
    "rate_p": over_trials(rates.difference_p, p_value),
    "rate_holm_p": over_trials(rates.difference_p, p_value),
    "rate_detectable": over_trials(rates.detectable_difference, in_points(number)),
}
CORRECTED = ("holm_p", "rate_holm_p")  # `summarize` corrects all such cells of a figure or table together
