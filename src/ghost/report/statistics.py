"""Statistics of the report, as pure functions: data positional, options keyword-only, named results.

Two runs are a pair when they share a training seed. The paper uses two conventions of Cohen's d without saying so:
tab:lightweight and tab:loss_ablation print the pooled d (`cohens_d`; the printed means and deviations give 6.3, 4.7
and 3.9 where 6.2, 4.9 and 3.8 are printed, while p = 0.003 over five pairs would mean d_z = 2.9), tab:ablation prints
d_z of the differences (`paired_d`; p = 0.046 and 0.012 over ten pairs mean 0.73 and 0.99, printed are 0.73 and 1.00).

Normal theory where the paper has it; the bootstrap is there to disagree with it. What cannot be computed (a spread from
one run) is nan, never zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special, stats

Interval = tuple[float, float]
Data = Sequence[float] | np.ndarray
UNKNOWN: Interval = (math.nan, math.nan)


class Estimated(NamedTuple):
    """A number with its interval, from n observations (or n pairs)."""

    estimate: float
    interval: Interval
    n: int


class PairedTest(NamedTuple):
    """Student's paired test; `estimate` is the mean of a - b."""

    estimate: float
    interval: Interval
    n: int
    t: float
    p: float


class Variances(NamedTuple):
    """Standard deviation of one rollout around its training run, and of the runs' true means around each other."""

    retraining_std: float
    rollout_std: float
    retraining_share: float  # of the variance of a single rollout; the intraclass correlation
    n: int  # rollouts


# ------------------------------------------------------------------------------------------------ two sets of runs


def paired_t_test(a: Data, b: Data, *, confidence: float = 0.95) -> PairedTest:
    """Two-sided. Equal pairs throughout: p = 1; one and the same difference throughout: p = 0; one pair: nan."""
    difference = _differences(a, b)
    n, mean = len(difference), float(difference.mean())
    if n == 1:
        return PairedTest(mean, UNKNOWN, n, math.nan, math.nan)
    error = _std(difference) / math.sqrt(n)
    if error == 0:
        return PairedTest(mean, (mean, mean), n, math.copysign(math.inf, mean) if mean else 0.0, 0.0 if mean else 1.0)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    t = mean / error
    return PairedTest(mean, (mean - half, mean + half), n, t, float(2 * stats.t.sf(abs(t), n - 1)))


def cohens_d(a: Data, b: Data, *, confidence: float = 0.95) -> Estimated:
    """Mean of a - b over the pooled standard deviation sqrt((s_a² + s_b²) / 2), the pairing ignored.

    The interval inverts the noncentral t of two independent samples, so it is too wide where the pairs correlate.
    """
    n = len(_differences(a, b))
    if n == 1:
        return Estimated(math.nan, UNKNOWN, n)
    pooled = math.sqrt((_std(a) ** 2 + _std(b) ** 2) / 2)
    d = _ratio(float(np.mean(a) - np.mean(b)), pooled)
    return Estimated(d, _noncentral(d, math.sqrt(n / 2), 2 * n - 2, confidence), n)


def paired_d(a: Data, b: Data, *, confidence: float = 0.95) -> Estimated:
    """d_z: mean of a - b over the standard deviation of a - b. The interval is exact for normal differences."""
    difference = _differences(a, b)
    n = len(difference)
    if n == 1:
        return Estimated(math.nan, UNKNOWN, n)
    d = _ratio(float(difference.mean()), _std(difference))
    return Estimated(d, _noncentral(d, math.sqrt(n), n - 1, confidence), n)


def relative_change(a: Data, b: Data, *, confidence: float = 0.95) -> Estimated:
    """How much larger the mean of a is than that of b, in percent of b.

    The interval is that of the paired differences, over the mean of b: b's own spread is taken as known.
    """
    test = paired_t_test(a, b, confidence=confidence)
    percent = 100 / float(np.mean(b))
    low, high = sorted(bound * percent for bound in test.interval)
    return Estimated(test.estimate * percent, (low, high), test.n)


def smallest_detectable_difference(std: float, n: int, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """The mean difference that a two-sided paired test over n pairs finds with `power`; `std` is of the differences."""
    if n < 2:
        return math.inf
    if std == 0:
        return 0.0
    critical = float(stats.t.ppf(1 - alpha / 2, n - 1))
    # The shift at which t stays below its critical value with 1 - power; significance on the wrong side is negligible.
    return std * float(special.nctdtrinc(n - 1, 1 - power, critical)) / math.sqrt(n)


def holm(p: Data) -> np.ndarray:
    """Holm's step-down correction of a family of p values, in their order; nan stays, and counts for nobody."""
    values = np.asarray(p, float)
    corrected = np.full(len(values), math.nan)
    order = [index for index in np.argsort(values, kind="stable") if not math.isnan(values[index])]
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * float(values[index])))
        corrected[index] = highest
    return corrected


# -------------------------------------------------------------------------------------------------- one set of runs


def bootstrap_mean(values: Data, *, seed: int = 0, resamples: int = 9999, confidence: float = 0.95) -> Estimated:
    """The mean with its percentile bootstrap interval.

    Percentile, not BCa: over five seeds BCa's acceleration is itself estimated from five values, and it is undefined
    for ties. Both are too narrow at n = 5 (there are only 126 distinct resamples), so Student's interval stands beside.
    """
    data = np.asarray(values, float)
    mean = float(data.mean())
    if len(data) == 1:
        return Estimated(mean, UNKNOWN, 1)
    drawn = np.random.default_rng(seed).integers(len(data), size=(resamples, len(data)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(data[drawn].mean(axis=1), (tail, 1 - tail))
    return Estimated(mean, (float(low), float(high)), len(data))


def bootstrap_ratio(a: Data, b: Data, *, seed: int = 0, resamples: int = 9999, confidence: float = 0.95) -> Estimated:
    """Mean of a over mean of b, pairs drawn together, with its percentile bootstrap interval."""
    first, second = np.asarray(a, float), np.asarray(b, float)
    n = len(_differences(a, b))
    ratio = float(first.mean() / second.mean())
    if n == 1:
        return Estimated(ratio, UNKNOWN, n)
    drawn = np.random.default_rng(seed).integers(n, size=(resamples, n))
    tail = (1 - confidence) / 2
    low, high = np.quantile(first[drawn].mean(axis=1) / second[drawn].mean(axis=1), (tail, 1 - tail))
    return Estimated(ratio, (float(low), float(high)), n)


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> Estimated:
    """A success rate with Wilson's score interval: never a single point, also for 0/n and n/n."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"expected 0 <= successes <= n and n >= 1, got {successes} of {n}")
    z = float(stats.norm.ppf((1 + confidence) / 2))
    rate = successes / n
    centre = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    return Estimated(rate, (max(0.0, centre - half), min(1.0, centre + half)), n)


def variance_components(groups: Sequence[Data]) -> Variances:
    """Retraining noise against rollout noise: a group holds the rollouts of one training run.

    One-way analysis of variance with random effects, by moments, also for groups of unequal size. A negative estimate
    of the retraining variance is shown as zero: the runs differ no more than their rollouts explain.
    """
    data = [np.asarray(group, float) for group in groups]
    sizes = np.array([len(group) for group in data])
    n, k = int(sizes.sum()), len(data)
    if k < 2 or n == k:
        return Variances(math.nan, math.nan, math.nan, n)
    grand = float(np.concatenate(data).mean())
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in data) / (n - k)
    between = sum(len(group) * float(group.mean() - grand) ** 2 for group in data) / (k - 1)
    typical_size = (n - float((sizes**2).sum()) / n) / (k - 1)  # the common size, where there is one
    retraining = max(0.0, (between - within) / typical_size)
    total = retraining + within
    return Variances(math.sqrt(retraining), math.sqrt(within), retraining / total if total else math.nan, n)


# ---------------------------------------------------------------------------------------------------------- private


def _differences(a: Data, b: Data) -> np.ndarray:
    first, second = np.asarray(a, float), np.asarray(b, float)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(f"expected pairs, got {first.shape} and {second.shape}")
    return np.asarray(first - second)


def _std(values: Data) -> float:
    return float(np.std(np.asarray(values, float), ddof=1))


def _ratio(mean: float, std: float) -> float:
    """mean / std, with 0 / 0 = 0: equal runs have no effect."""
    if std > 0:
        return mean / std
    return math.copysign(math.inf, mean) if mean else 0.0


def _noncentral(d: float, scale: float, freedom: int, confidence: float) -> Interval:
    """The d whose t = d scale has the observed one at either tail of its noncentral distribution."""
    if not math.isfinite(d):
        return UNKNOWN
    t, tail = d * scale, (1 - confidence) / 2
    low, high = (float(special.nctdtrinc(freedom, probability, t)) for probability in (1 - tail, tail))
    return low / scale, high / scale
