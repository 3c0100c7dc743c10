"""Success rates over trainings and trials: their intervals, and their differences where two policies met one trial.

Five trainings that meet the same 200 trials are not 1,000 independent trials: a trial that is hard for one training is
hard for the next one, and a training that came out badly fails in many trials. So the variance of a rate is estimated
from both (two-way analysis of variance, trials within tasks, which are fixed):

    trials      the spread over trials of the mean over trainings
    trainings   the spread over trainings of the mean over trials, less what the trials explain of it; where nothing is
                left, the trainings add nothing

Wilson's score interval takes this variance in place of the binomial one, with Student's quantile at Satterthwaite's
degrees of freedom. So it stays within 0 and 1. Of one training it is Wilson's own interval over its trials: it says
nothing about a training that was not done. So it is for 0/n and n/n, where no spread is left to estimate from, with the
number of distinct trials as n.

The interval of a difference joins those of the two rates by Newcombe's method for pairs (square and add, with their
correlation); of two single trainings it is Newcombe's method 10. McNemar's exact test compares two single trainings.
Otherwise p is the level at which the interval leaves out zero. The trainings of two policies are not paired: the same
seed in two architectures means nothing.

tests/report/test_coverage.py has the coverage of each interval and the size of each test, by simulation.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from ghost.report.statistics import POWER, Estimated, Interval

SMALLEST_P = 1e-12  # no test says more


class Parts(NamedTuple):
    """Of the variance of a mean over trainings and trials."""

    by_trials: float
    freedom: float  # of by_trials
    by_trainings: float
    explained: float  # what by_trainings would be if trainings were alike


@dataclass(frozen=True)
class Outcomes:
    """What the trainings of a policy did in their trials."""

    success: np.ndarray  # [trainings, trials], 1 or 0; a mean where a training met a trial twice
    tasks: np.ndarray  # [trials]: the trials of a task vary around its mean
    shared: bool = True  # all trainings met the same trials; else trial k of two trainings are two trials

    @property
    def trainings(self) -> int:
        return int(self.success.shape[0])

    @property
    def trials(self) -> int:
        """How many distinct ones there are."""
        return int(self.success.shape[1] if self.shared else self.success.size)

    @property
    def trials_each(self) -> int:
        """How many each training met."""
        return int(self.success.shape[1])

    @property
    def mean(self) -> float:
        return float(self.success.mean())

    @cached_property
    def strata(self) -> np.ndarray:
        """[trials, tasks]: 1 where a trial is of a task; one stratum where some task has a single trial."""
        found = (self.tasks[:, None] == np.unique(self.tasks)).astype(float)
        return found if found.sum(axis=0).min() > 1 else np.ones((len(self.tasks), 1))

    @cached_property
    def parts(self) -> Parts:
        """The parts of the variance of the mean; nan where there is one trial."""
        trainings, trials = self.success.shape
        freedom = trials - self.strata.shape[1]
        by_trainings = float(self.success.mean(axis=1).var(ddof=1)) / trainings if trainings > 1 else 0.0
        if not freedom:
            return Parts(math.nan, 0, by_trainings, math.nan)
        if self.shared:
            rest = self.residual(self.success - self.success.mean(axis=0))  # neither trials nor trainings explain it
            explained = float((rest**2).sum()) / max(1, (trainings - 1) * freedom) / self.success.size
            return Parts(covariance(self, self), freedom, by_trainings, explained)
        freedom *= trainings
        by_trials = float((self.residual(self.success) ** 2).sum()) / freedom / self.success.size
        return Parts(by_trials, freedom, by_trainings, by_trials)

    @property
    def variance(self) -> float:
        """Of the mean."""
        by_trials, _, by_trainings, explained = self.parts
        return by_trials + max(0.0, by_trainings - explained)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance; those of the trials where the trainings add nothing."""
        return self.cautious_freedom if self.parts.by_trainings > self.parts.explained else self.parts.freedom

    @property
    def cautious_freedom(self) -> float:
        """Satterthwaite's, whether the trainings add something in this sample or not: in the next one they may."""
        if self.trainings == 1 or not self.variance > 0:
            return self.parts.freedom
        by_trainings = min(max(self.parts.by_trainings, self.parts.explained), self.variance)
        loss = self.parts.by_trials**2 / self.parts.freedom + by_trainings**2 / (self.trainings - 1)
        return self.variance**2 / loss

    def residual(self, values: np.ndarray) -> np.ndarray:
        """Values [..., trials] less the mean of their task."""
        means = values @ self.strata / self.strata.sum(axis=0)
        return np.asarray(values - means @ self.strata.T)

    def bounds(self, level: float = 0.05) -> Interval:
        """The interval of the rate at confidence 1 - level."""
        known = self.trainings > 1 and self.variance > 0
        n = self.mean * (1 - self.mean) / self.variance if known else self.trials
        z = -float(special.stdtrit(self.freedom, level / 2) if known else special.ndtri(level / 2))
        return score_interval(self.mean, n, z)


def score_interval(p: float, n: float, z: float) -> Interval:
    """Wilson's interval: the rates from which p is at most z standard errors away."""
    centre, half = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return max(0.0, (centre - half) / (1 + z**2 / n)), min(1.0, (centre + half) / (1 + z**2 / n))


def rate(outcomes: Outcomes) -> Estimated:
    """A success rate; n is the number of distinct trials."""
    return Estimated(outcomes.mean, outcomes.trials, outcomes.bounds())


def difference(a: Outcomes, b: Outcomes) -> Estimated:
    """The rate of a minus that of b, over the trials that both met."""
    return Estimated(a.mean - b.mean, a.trials, difference_bounds(a, b, 0.05))


def difference_p(a: Outcomes, b: Outcomes) -> Estimated:
    """p of no difference: McNemar's exact test of two single trainings, else the interval's level that reaches zero."""
    found = a.mean - b.mean
    if _single(a, b):
        only_a, only_b = _discordant(a, b)
        return Estimated(float(stats.binomtest(only_a, only_a + only_b).pvalue) if found else 1.0, a.trials)
    if not found:
        return Estimated(1.0, a.trials)
    side = 0 if found > 0 else 1

    def nearer(log_level: float) -> float:
        return difference_bounds(a, b, math.exp(log_level))[side] * math.copysign(1, found)

    lowest = math.log(SMALLEST_P)
    if nearer(lowest) > 0:
        return Estimated(SMALLEST_P, a.trials)
    return Estimated(math.exp(optimize.brentq(nearer, lowest, 0.0, xtol=1e-9)), a.trials)


def detectable_difference(a: Outcomes, b: Outcomes) -> Estimated:
    """The difference that the test at 5 % finds with POWER, for outcomes that spread and correlate as these do.

    It is undefined where no difference of rates is large enough.
    """
    if _single(a, b):
        return Estimated(_mcnemar_detectable(sum(_discordant(a, b)) / a.trials, a.trials), a.trials)
    variance = a.variance + b.variance - 2 * covariance(a, b)
    if not (a.variance > 0 and b.variance > 0 and variance > 0):
        return Estimated(math.nan, a.trials)
    of_a, of_b = (float(special.stdtrit(x.cautious_freedom, 0.975)) * math.sqrt(x.variance) for x in (a, b))
    half = math.sqrt(of_a**2 + of_b**2 - 2 * _correlation(a, b) * of_a * of_b)  # of the interval, by square and add
    shift = half + float(special.ndtri(POWER)) * math.sqrt(variance)
    return Estimated(shift if shift <= 1 else math.nan, a.trials)


def difference_bounds(a: Outcomes, b: Outcomes, level: float) -> Interval:
    """Newcombe (1998), method 10, of the two intervals and their correlation."""
    (low_a, high_a), (low_b, high_b) = a.bounds(level), b.bounds(level)
    found, correlation = a.mean - b.mean, _correlation(a, b)

    def joined(x: float, y: float) -> float:
        return math.sqrt(max(0.0, x**2 - 2 * correlation * x * y + y**2))

    low, high = joined(a.mean - low_a, high_b - b.mean), joined(high_a - a.mean, b.mean - low_b)
    return max(-1.0, found - low), min(1.0, found + high)


def _correlation(a: Outcomes, b: Outcomes) -> float:
    """Of the two rates. Of two single trainings it is Newcombe's phi, which is corrected for continuity if positive."""
    if not _single(a, b):
        product = a.variance * b.variance
        return max(-1.0, min(1.0, covariance(a, b) / math.sqrt(product))) if product > 0 else 0.0
    x, y, n = a.success[0], b.success[0], a.trials
    margins = float(x.sum() * (n - x.sum()) * y.sum() * (n - y.sum()))
    cross = n * float(x @ y) - float(x.sum() * y.sum())  # both succeeded times neither did, less the other two
    corrected = max(0.0, cross - n / 2) if cross > 0 else cross
    return float(corrected / math.sqrt(margins)) if margins else 0.0


def covariance(a: Outcomes, b: Outcomes) -> float:
    """Of the two rates, through the trials that both met: between the means over trainings, within tasks."""
    x, y = (outcomes.residual(outcomes.success.mean(axis=0)) for outcomes in (a, b))
    sizes = a.strata.sum(axis=0)
    summed = float((sizes * ((x * y) @ a.strata) / np.maximum(1, sizes - 1)).sum())
    return summed / a.trials_each**2


def _single(a: Outcomes, b: Outcomes) -> bool:
    both = a.success.size == b.success.size == a.trials and a.trainings == b.trainings == 1
    return both and bool(np.isin(a.success, (0, 1)).all() and np.isin(b.success, (0, 1)).all())


def _discordant(a: Outcomes, b: Outcomes) -> tuple[int, int]:
    """Trials in which only a succeeded, and those in which only b did."""
    return int((a.success > b.success).sum()), int((a.success < b.success).sum())


def _mcnemar_detectable(discordant: float, n: int) -> float:
    """The difference that McNemar's exact test finds with POWER, if this share of n trials is discordant, or more."""

    def power(shift: float) -> float:
        share = max(discordant, shift)
        pairs = np.arange(n + 1)
        critical = stats.binom.ppf(0.025, pairs, 0.5)  # the fewest successes of the other side that are too many
        critical -= stats.binom.cdf(critical, pairs, 0.5) > 0.025
        found = stats.binom.cdf(critical, pairs, (1 - shift / share) / 2)
        return float((stats.binom.pmf(pairs, n, share) * found).sum())

    if power(1.0) < POWER:
        return math.nan
    return float(optimize.brentq(lambda shift: power(shift) - POWER, 1e-6, 1.0, xtol=1e-6))
