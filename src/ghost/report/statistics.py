"""The report's statistics, as pure functions with named results. All intervals are at 95 %.

Two runs are a pair when they have the same training seed. The paper uses two conventions of Cohen's d without saying
so. tab:lightweight and tab:loss_ablation print the pooled d (`cohens_d`): the printed means and deviations give 6.3,
4.7 and 3.9 where 6.2, 4.9 and 3.8 are printed, while p = 0.003 over five pairs would mean d_z = 2.9. tab:ablation
prints d_z of the differences (`paired_d`): p = 0.046 and 0.012 over ten pairs mean 0.73 and 0.99, printed are 0.73 and
1.00.

The paper uses normal theory, and so do these functions; the bootstrap is a check on it. A result that cannot be
computed (a spread from one run) is nan, never zero.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

Interval = tuple[float, float]
Data = Sequence[float] | np.ndarray
UNKNOWN: Interval = (math.nan, math.nan)
POWER = 0.8


class Estimated(NamedTuple):
    """A number from n observations (or n pairs), with its interval."""

    estimate: float
    n: int
    interval: Interval = UNKNOWN


def paired_p(a: Data, b: Data) -> Estimated:
    """p of Student's two-sided paired test. If all pairs are equal, p = 1; if all differences are one number, p = 0."""
    difference = _differences(a, b)
    if _std(difference) == 0:
        return Estimated(0.0 if difference.any() else 1.0, len(difference))
    return Estimated(float(stats.ttest_rel(a, b).pvalue) if len(difference) > 1 else math.nan, len(difference))


def cohens_d(a: Data, b: Data) -> Estimated:
    """Mean of a - b over the pooled standard deviation sqrt((s_a² + s_b²) / 2); it ignores the pairing.

    The interval inverts the noncentral t of two independent samples, so it is too wide where the pairs correlate.
    """
    n = len(_differences(a, b))
    pooled = math.sqrt((_std(a) ** 2 + _std(b) ** 2) / 2)
    return _effect(float(np.mean(a) - np.mean(b)), pooled, n, math.sqrt(n / 2), 2 * n - 2)


def paired_d(a: Data, b: Data) -> Estimated:
    """d_z: mean of a - b over the standard deviation of a - b. The interval is exact for normal differences."""
    difference = _differences(a, b)
    n = len(difference)
    return _effect(float(difference.mean()), _std(difference), n, math.sqrt(n), n - 1)


def relative_change(a: Data, b: Data) -> Estimated:
    """How much larger the mean of a is than that of b, in percent of b.

    The interval is that of the paired differences over the mean of b; it ignores the spread of b.
    """
    difference = student_mean(_differences(a, b))
    percent = 100 / float(np.mean(b))
    low, high = sorted(bound * percent for bound in difference.interval)
    return Estimated(difference.estimate * percent, difference.n, (low, high))


def improved_share(a: Data, b: Data) -> Estimated:
    """The share of pairs in which a is lower, with Wilson's interval."""
    difference = _differences(a, b)
    return wilson(int((difference < 0).sum()), len(difference))


def smallest_detectable_difference(a: Data, b: Data) -> Estimated:
    """The mean of a - b that a two-sided paired test at 5 % finds with POWER, for pairs of this spread."""
    difference = _differences(a, b)
    n, std = len(difference), _std(difference)
    critical = float(stats.t.ppf(0.975, n - 1))
    # The shift at which t stays below its critical value with 1 - POWER; significance on the wrong side is negligible.
    return Estimated(std * float(special.nctdtrinc(n - 1, 1 - POWER, critical)) / math.sqrt(n), n)


def bootstrap_ratio(a: Data, b: Data) -> Estimated:
    """Mean of a over mean of b, with the percentile bootstrap interval over the pairs."""
    return _bootstrap(lambda x, y, axis=-1: np.mean(x, axis) / np.mean(y, axis), a, b)


def holm(p: Data) -> np.ndarray:
    """Holm's step-down correction of a family of p values, in their order. A nan stays nan and does not count."""
    values = np.asarray(p, float)
    corrected = np.full(len(values), math.nan)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]  # nan is sorted to the end
    corrected[order] = np.maximum.accumulate(np.minimum(1, np.arange(len(order), 0, -1) * values[order]))
    return corrected


def student_mean(values: Data) -> Estimated:
    """The mean with Student's interval."""
    mean, n = float(np.mean(values)), len(values)
    half = float(special.stdtrit(n - 1, 0.975)) * _std(values) / math.sqrt(n)
    return Estimated(mean, n, (mean - half, mean + half))


def largest(values: Data) -> Estimated:
    """The largest value; nan if one is nan."""
    return Estimated(float(np.max(values)), len(values))


def bootstrap_mean(values: Data) -> Estimated:
    """The mean with its percentile bootstrap interval.

    Percentile, not BCa: over five seeds BCa's acceleration is itself estimated from five values, and it is undefined
    for ties. Both are too narrow at n = 5 (there are only 126 distinct resamples): see `student_mean`.
    """
    return _bootstrap(np.mean, values)


def wilson(successes: int, n: int) -> Estimated:
    """A success rate with Wilson's score interval: never a single point, also for 0/n and n/n."""
    test = stats.binomtest(successes, n)
    interval = test.proportion_ci(method="wilson")
    return Estimated(float(test.statistic), n, (float(interval.low), float(interval.high)))


def _differences(a: Data, b: Data) -> np.ndarray:
    first, second = np.asarray(a, float), np.asarray(b, float)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(f"expected pairs, got {first.shape} and {second.shape}")
    return np.asarray(first - second)


def _std(values: Data) -> float:
    """The sample standard deviation; nan for one value."""
    return float(np.std(np.asarray(values, float), ddof=1)) if len(values) > 1 else math.nan


def _effect(mean: float, std: float, n: int, scale: float, freedom: int) -> Estimated:
    """d = mean / std, where 0 / 0 is 0: equal runs have no effect.

    The interval's ends are those d for which the observed t = d scale lies at a tail of its noncentral distribution.
    """
    d = mean / std if std else (math.copysign(math.inf, mean) if mean else 0.0)
    if not math.isfinite(d):
        return Estimated(d, n)
    low, high = (float(special.nctdtrinc(freedom, tail, d * scale)) / scale for tail in (0.975, 0.025))
    return Estimated(d, n, (low, high))


def _bootstrap(statistic: Callable[..., Any], *data: Data) -> Estimated:
    """A statistic of one sample or of pairs with its percentile interval, always from the same random resamples."""
    samples = [np.asarray(values, float) for values in data]
    estimate, n = float(statistic(*samples)), len(samples[0])
    if n == 1 or math.isnan(estimate):
        return Estimated(estimate, n)
    rng = np.random.default_rng(0)
    drawn = stats.bootstrap(samples, statistic, paired=True, vectorized=True, method="percentile", rng=rng)
    interval = drawn.confidence_interval
    return Estimated(estimate, n, (float(interval.low), float(interval.high)))
