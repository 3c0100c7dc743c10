"""Success rates by hand, and against published values; `test_coverage` has the simulations."""

import math

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from ghost.report import rates
from ghost.report.rates import Outcomes


def outcomes(*trainings, tasks=None, shared=True) -> Outcomes:
    success = np.array(trainings, float)
    return Outcomes(success, np.zeros(success.shape[1]) if tasks is None else np.array(tasks), shared)


def pair(both: int, first: int, second: int, neither: int) -> tuple[Outcomes, Outcomes]:
    """Two single trainings with this table of trials."""
    a, b = [1] * (both + first) + [0] * (second + neither), [1] * both + [0] * first + [1] * second + [0] * neither
    return outcomes(a), outcomes(b)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 20), (20, 20), (7, 10), (163, 200)])
def test_of_one_training_it_is_wilsons(successes, n):
    found = rates.rate(outcomes([1] * successes + [0] * (n - successes)))
    assert (found.estimate, found.n) == (successes / n, n)
    assert found.interval == pytest.approx(proportion_confint(successes, n, method="wilson"))


@pytest.mark.parametrize("outcome", [0, 1])
def test_nothing_but_failures_or_successes_is_as_sure_as_the_distinct_trials(outcome):
    found = rates.rate(outcomes(*[[outcome] * 20] * 5))
    assert found.n == 20
    assert found.interval == pytest.approx(proportion_confint(20 * outcome, 20, method="wilson"))


def test_trainings_that_do_the_same_in_every_trial_add_nothing():
    trial = [1, 0, 1, 1, 0, 1, 1, 0, 1, 1] * 10
    five, pooled = rates.rate(outcomes(*[trial] * 5)), proportion_confint(350, 500, method="wilson")
    one = rates.rate(outcomes(trial))
    assert five.interval == pytest.approx(one.interval, abs=0.005)
    assert five.interval[1] - five.interval[0] > 2 * (pooled[1] - pooled[0])


def test_trainings_that_differ_widen_the_interval():
    rng = np.random.default_rng(0)
    alike = rng.random((5, 200)) < 0.7
    unlike = rng.random((5, 200)) < np.array([0.5, 0.6, 0.7, 0.8, 0.9])[:, None]
    narrow, wide = (np.ptp(rates.rate(outcomes(*each)).interval) for each in (alike, unlike))
    assert wide > 3 * narrow
    nested = rates.rate(outcomes(*unlike, shared=False))
    assert nested.n == 1000
    assert np.ptp(nested.interval) == pytest.approx(wide, rel=0.1)  # the trainings are what matters


def test_the_variance_is_that_of_a_two_way_analysis():
    """By hand: 3 trainings, 4 trials, of which the trainings explain more than chance."""
    success = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [0, 0, 0, 1.0]])
    ms_trainings = 4 * success.mean(axis=1).var(ddof=1)
    ms_trials = 3 * success.mean(axis=0).var(ddof=1)
    rest = success - success.mean(axis=0) - success.mean(axis=1)[:, None] + success.mean()
    ms_rest = (rest**2).sum() / 6
    variance, freedom = outcomes(*success).variance, outcomes(*success).freedom
    assert ms_trainings > ms_rest
    assert variance == pytest.approx((ms_trainings + ms_trials - ms_rest) / 12)
    assert freedom == pytest.approx((12 * variance) ** 2 / (ms_trials**2 / 3 + ms_trainings**2 / 2))


def test_differences_between_tasks_are_not_chance():
    """Tasks are fixed: one that always succeeds and one that always fails leave nothing to chance."""
    success, tasks = [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]], [0, 0, 0, 1, 1, 1]
    assert outcomes(*success, tasks=tasks).variance < outcomes(*success).variance / 2


# both, only first, only second, neither; published by Fagerland, Lydersen and Laake (2017), chapter 8
PUBLISHED = [((1, 1, 7, 12), (-0.507, -0.026)), ((59, 6, 16, 80), (-0.1186, -0.0046))]


@pytest.mark.parametrize(("table", "interval"), PUBLISHED)
def test_newcombes_published_intervals(table, interval):
    found = rates.difference(*pair(*table))
    assert found.interval == pytest.approx(interval, abs=5e-4)
    assert found.estimate == pytest.approx((table[1] - table[2]) / sum(table))
    low, high = rates.difference(*reversed(pair(*table))).interval
    assert (-high, -low) == pytest.approx(found.interval)


@pytest.mark.parametrize("table", [(20, 0, 0, 0), (0, 0, 0, 20), (10, 0, 0, 10), (0, 20, 0, 0), (0, 1, 0, 0)])
def test_a_difference_at_the_edges(table):
    found = rates.difference(*pair(*table))
    assert -1 <= found.interval[0] < found.interval[1] <= 1
    assert found.interval[0] <= found.estimate <= found.interval[1]


@pytest.mark.parametrize("table", [(59, 6, 16, 80), (1, 1, 7, 12), (5, 0, 9, 1), (5, 3, 3, 1), (7, 0, 0, 3)])
def test_two_single_trainings_are_compared_by_mcnemars_exact_test(table):
    both, first, second, neither = table
    expected = mcnemar([[both, first], [second, neither]], exact=True).pvalue
    assert rates.difference_p(*pair(*table)).estimate == pytest.approx(expected)


def test_p_is_the_level_at_which_the_interval_reaches_zero():
    rng = np.random.default_rng(1)
    a, b = outcomes(*(rng.random((5, 60)) < 0.75)), outcomes(*(rng.random((3, 60)) < 0.6))
    p = rates.difference_p(a, b).estimate
    assert min(map(abs, rates.difference_bounds(a, b, p))) == pytest.approx(0, abs=1e-6)
    assert rates.difference_p(b, a).estimate == pytest.approx(p)
    assert (p < 0.05) == (rates.difference(a, b).interval[0] > 0)
    assert rates.difference_p(a, a).estimate == 1
    certain = rates.difference_p(outcomes(*[[1] * 300] * 3), outcomes(*[[0] * 300] * 3))
    assert 0 < certain.estimate < 1e-6


def test_sharing_trials_narrows_the_interval_of_a_difference():
    rng = np.random.default_rng(2)
    hard = rng.random(200) < 0.5  # trials that everybody fails
    a, b = (np.where(hard, 0, rng.random((3, 200)) < rate) for rate in (0.9, 0.8))
    shared = rates.difference(outcomes(*a), outcomes(*b))
    mixed = rates.difference(outcomes(*a), outcomes(*b[:, rng.permutation(200)]))
    assert shared.estimate == pytest.approx(mixed.estimate)
    assert np.ptp(shared.interval) < 0.8 * np.ptp(mixed.interval)


@pytest.mark.parametrize(("table", "n"), [((120, 30, 20, 30), 200), ((12, 2, 2, 4), 20)])
def test_the_smallest_difference_that_mcnemars_test_finds_in_four_of_five(table, n):
    """By simulation of tables with this share of discordant trials, or with as few as the difference needs."""
    found = rates.detectable_difference(*pair(*table)).estimate
    discordant = max((table[1] + table[2]) / n, found)
    rng, hits = np.random.default_rng(3), []
    for _ in range(2000):
        pairs = rng.binomial(n, discordant)
        first = rng.binomial(pairs, (1 + found / discordant) / 2)
        hits.append(mcnemar([[0, first], [pairs - first, 0]], exact=True).pvalue < 0.05 if pairs else False)
    assert np.mean(hits) == pytest.approx(0.8, abs=0.03)


def test_the_smallest_difference_of_several_trainings():
    rng = np.random.default_rng(4)

    def policy(rate, n):
        return outcomes(*(rng.random((n, 100)) < rate))

    found = np.median([rates.detectable_difference(policy(0.5, 3), policy(0.5, 3)).estimate for _ in range(50)])
    hits = [rates.difference_p(policy(0.5 + found, 3), policy(0.5, 3)).estimate < 0.05 for _ in range(200)]
    assert 0.65 < np.mean(hits) < 0.95
    assert math.isnan(rates.detectable_difference(outcomes([1]), outcomes([0])).estimate)
    assert math.isnan(rates.detectable_difference(outcomes([1], [1]), outcomes([0], [0])).estimate)
