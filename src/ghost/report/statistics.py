"""The report's statistics, as pure functions with named results. All intervals are at 95 %.

Two runs are a pair when they have the same training seed. The paper uses two conventions of Cohen's d without saying
so. tab:lightweight and tab:loss_ablation print the pooled d (`cohens_d`): the printed means and deviations give 6.3,
4.7 and 3.9 where 6.2, 4.9 and 3.8 are printed, while p = 0.003 over five pairs would mean d_z = 2.9. tab:ablation
prints d_z of the differences (`paired_d`): p = 0.046 and 0.012 over ten pairs mean 0.73 and 0.99, printed are 0.73 and
1.00.

The paper uses normal theory, and so do these functions. There is no bootstrap: over three to five trainings its
intervals cover 80 to 88 % where they claim 95 (tests/report/test_coverage.py). A result that cannot be computed (a
spread from one run) is nan, never zero. Success rates have a module of their own, `ghost.report.rates`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

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
    """How much larger the mean of a is than that of b, in percent of the size of b; undefined where b is zero."""
    n, base = len(_differences(a, b)), abs(float(np.mean(b)))
    low, high = _ratio_bounds(a, b)
    sign = math.copysign(1, float(np.mean(b)))
    found = [100 * sign * (ratio - 1) for ratio in (_ratio(a, b), low, high)] if base else [math.nan] * 3
    return Estimated(found[0], n, (min(found[1:]), max(found[1:])))


def relative_reduction(a: Data, b: Data) -> Estimated:
    """How much lower the mean of a is than that of b, in percent of the size of b."""
    change = relative_change(a, b)
    return Estimated(-change.estimate, change.n, (-change.interval[1], -change.interval[0]))


def paired_ratio(a: Data, b: Data) -> Estimated:
    """Mean of a over mean of b."""
    return Estimated(_ratio(a, b), len(_differences(a, b)), _ratio_bounds(a, b))


def lower_share(a: Data, b: Data) -> Estimated:
    """The share of pairs in which a is lower, with Wilson's interval."""
    difference = _differences(a, b)
    return wilson(int((difference < 0).sum()), len(difference))


def higher_share(a: Data, b: Data) -> Estimated:
    """The share of pairs in which a is higher."""
    return lower_share(b, a)


def smallest_detectable_difference(a: Data, b: Data) -> Estimated:
    """The mean of a - b that a two-sided paired test at 5 % finds with POWER, for pairs of this spread."""
    difference = _differences(a, b)
    n, std = len(difference), _std(difference)
    critical = float(stats.t.ppf(0.975, n - 1))
    # The shift at which t stays below its critical value with 1 - POWER; significance on the wrong side is negligible.
    return Estimated(std * float(special.nctdtrinc(n - 1, 1 - POWER, critical)) / math.sqrt(n), n)


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


def correlation(x: Data, y: Data) -> Estimated:
    """Pearson's r with Fisher's interval, which needs four points; nan where x or y does not vary."""
    if len(x) < 3 or not (np.ptp(x) > 0 and np.ptp(y) > 0):
        return Estimated(math.nan, len(x))
    found = stats.pearsonr(x, y)
    low, high = found.confidence_interval() if len(x) > 3 else UNKNOWN
    return Estimated(float(found.statistic), len(x), (float(low), float(high)))


def slope(x: Data, y: Data) -> Estimated:
    """The slope of least squares with Student's interval."""
    if len(x) < 3 or not np.ptp(x) > 0:
        return Estimated(math.nan, len(x))
    found = stats.linregress(x, y)
    half = float(special.stdtrit(len(x) - 2, 0.975)) * found.stderr
    return Estimated(float(found.slope), len(x), (float(found.slope - half), float(found.slope + half)))


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


def _ratio(a: Data, b: Data) -> float:
    return float(np.mean(a)) / float(np.mean(b)) if np.mean(b) else math.nan


def _ratio_bounds(a: Data, b: Data) -> Interval:
    """Fieller's interval of a ratio of means over pairs: the ratios r for which the mean of a - r b could be zero.

    It is unknown where the mean of b itself could be zero, or of one pair.
    """
    x, y = np.asarray(a, float), np.asarray(b, float)
    if len(x) < 2 or not np.isfinite([x, y]).all():
        return UNKNOWN
    ((var_x, cov), (_, var_y)) = np.cov(x, y) * float(special.stdtrit(len(x) - 1, 0.975)) ** 2 / len(x)
    # roots of (x̄ - r ȳ)² = var_x - 2 r cov + r² var_y
    square, linear = y.mean() ** 2 - var_y, x.mean() * y.mean() - cov
    if not square > 0:
        return UNKNOWN
    half = math.sqrt(max(0.0, linear**2 - square * (x.mean() ** 2 - var_x)))
    return (linear - half) / square, (linear + half) / square
