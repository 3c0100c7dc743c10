import math

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from ghost.report import statistics

A = np.array([0.0174, 0.0171, 0.0176, 0.0175, 0.0173])
B = np.array([0.0186, 0.0189, 0.0184, 0.0190, 0.0186])


def test_p_is_students_of_the_differences():
    """The sleep data of Student's own paper: hours gained with two drugs by ten patients, p = 0.00283."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = statistics.paired_p(first, second)
    assert (found.estimate, found.n) == (pytest.approx(0.00283, abs=5e-6), 10)


def test_p_at_the_edges():
    assert statistics.paired_p([1, 2], [1, 2]).estimate == 1
    assert statistics.paired_p([2, 3], [1, 2]).estimate == 0
    assert math.isnan(statistics.paired_p([1], [2]).estimate)
    for a, b in (([1, 2], [1]), ([], [])):
        with pytest.raises(ValueError, match="expected pairs"):
            statistics.paired_p(a, b)


def test_both_conventions_of_cohens_d():
    pooled = statistics.cohens_d(B, A)
    assert pooled.estimate == pytest.approx((B.mean() - A.mean()) / math.sqrt((A.var(ddof=1) + B.var(ddof=1)) / 2))
    t = scipy.stats.ttest_rel(B, A).statistic
    paired = statistics.paired_d(B, A)
    assert paired.estimate == pytest.approx(t / math.sqrt(5))
    for found in (pooled, paired):
        assert found.interval[0] < found.estimate < found.interval[1]
        assert found.interval[0] > 0
    assert statistics.cohens_d([1, 2], [1, 2]).estimate == 0
    assert statistics.paired_d([1, 2], [1, 2]).estimate == 0
    assert statistics.paired_d([2, 3], [1, 2]).estimate == math.inf
    assert math.isnan(statistics.cohens_d([1], [2]).estimate)
    assert math.isnan(statistics.paired_d([1], [2]).estimate)


def test_the_interval_of_d_covers_and_its_ends_are_the_tails():
    found = statistics.paired_d(B, A)
    t = found.estimate * math.sqrt(5)
    low, high = (scipy.stats.nct.cdf(t, 4, bound * math.sqrt(5)) for bound in found.interval)
    assert (low, high) == pytest.approx((0.975, 0.025), abs=1e-6)
    rng = np.random.default_rng(0)
    covered = [
        low <= 0.5 <= high
        for low, high in (statistics.paired_d(rng.normal(0.5, 1, 8), np.zeros(8)).interval for _ in range(300))
    ]
    assert 0.91 <= np.mean(covered) <= 0.985


@pytest.mark.parametrize(
    ("mean", "std", "printed"),
    [(184, 1, 6.2), (186, 3, 4.9), (189, 5, 3.8), (207, 4, 10.2), (225, 15, 4.7)],
)
def test_the_pooled_d_is_the_one_of_tab_lightweight(mean, std, printed):
    """In units of 1e-4, Ghost has 174 ± 2. What rounding leaves open is the tolerance."""
    bounds = [
        (mean - 174 + shift) / math.hypot(std + s, 2 + g) * math.sqrt(2)
        for shift in (-1, 1)
        for s in (-0.5, 0.5)
        for g in (-0.5, 0.5)
    ]
    assert min(bounds) <= printed <= max(bounds)


@pytest.mark.parametrize(("p", "printed"), [(0.046, 0.73), (0.012, 1.00)])
def test_the_paired_d_is_the_one_of_tab_ablation(p, printed):
    assert scipy.stats.t.isf(p / 2, 9) / math.sqrt(10) == pytest.approx(printed, abs=0.015)


def test_relative_change_is_in_percent_of_the_second():
    found = statistics.relative_change([110, 110], [100, 100])
    assert found.estimate == pytest.approx(10)
    assert found.interval == pytest.approx((10, 10))
    assert math.isnan(statistics.relative_change([1], [2]).interval[0])


def test_a_reduction_is_the_change_downwards_with_its_interval_turned():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.9, 0.02, 6), rng.normal(1.0, 0.02, 6)
    change, reduction = statistics.relative_change(a, b), statistics.relative_reduction(a, b)
    assert reduction.estimate == pytest.approx(100 * (b.mean() - a.mean()) / b.mean())
    assert reduction.interval == pytest.approx((-change.interval[1], -change.interval[0]))
    assert reduction.interval[0] < reduction.estimate < reduction.interval[1]


def test_relative_change_of_negative_numbers_and_of_zero():
    """-1 is larger than -2, by half of it; nothing is a percentage of zero."""
    larger = statistics.relative_change([-1.0, -1.1], [-2.0, -2.0])
    assert larger.estimate == pytest.approx(47.5)
    assert larger.interval[0] < larger.estimate < larger.interval[1]
    assert math.isnan(statistics.relative_change([1, 2], [1, -1]).estimate)
    assert math.isnan(statistics.paired_ratio([1, 2], [0, 0]).estimate)


def test_the_interval_of_a_ratio_is_fiellers():
    """Its ends are the ratios r at which a - r b is just significant in Student's test of one sample."""
    for found in (statistics.paired_ratio(A, B), statistics.paired_ratio(B, A)):
        a, b = (A, B) if found.estimate < 1 else (B, A)
        for bound in found.interval:
            assert scipy.stats.ttest_1samp(a - bound * b, 0).pvalue == pytest.approx(0.05)
    low, high = (100 * (bound - 1) for bound in statistics.paired_ratio(A, B).interval)
    assert statistics.relative_change(A, B).interval == pytest.approx((low, high))
    could_be_zero = statistics.paired_ratio([1.0, 2.0, 1.5], [1.0, -1.0, 0.5])
    assert math.isnan(could_be_zero.interval[0])


def test_student_mean_agrees_with_scipy():
    found = statistics.student_mean(A)
    assert found.interval == pytest.approx(scipy.stats.t.interval(0.95, 4, A.mean(), scipy.stats.sem(A)))
    assert math.isnan(statistics.student_mean([2]).interval[0])


def test_the_largest_value_is_nan_if_one_is():
    assert statistics.largest([1, 3, 2]).estimate == 3
    assert math.isnan(statistics.largest([1, math.nan]).estimate)


def test_holm_agrees_with_statsmodels():
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 12) * 5:
        p = np.round(rng.uniform(size=n) ** 3, 2)  # many small ones, and ties
        assert statistics.holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_holm_with_ties_and_what_could_not_be_tested():
    assert statistics.holm([0.01, 0.01, 0.2]) == pytest.approx([0.03, 0.03, 0.2])
    assert statistics.holm([math.nan, 0.01]) == pytest.approx([math.nan, 0.01], nan_ok=True)
    assert len(statistics.holm([])) == 0


def test_correlation_and_slope_agree_with_scipy():
    x, y = np.arange(10.0), np.array([1, 3, 2, 5, 4, 6, 9, 7, 8, 9.5])
    found = statistics.correlation(x, y)
    z, half = math.atanh(np.corrcoef(x, y)[0, 1]), 1.959964 / math.sqrt(7)
    assert found.estimate == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert found.interval == pytest.approx((math.tanh(z - half), math.tanh(z + half)), rel=1e-6)
    line = statistics.slope(x, y)
    fit = sm.OLS(y, sm.add_constant(x)).fit()
    assert line.estimate == pytest.approx(fit.params[1])
    assert line.interval == pytest.approx(tuple(fit.conf_int()[1]))
    assert math.isnan(statistics.correlation([1, 1, 1], [1, 2, 3]).estimate)
    assert math.isnan(statistics.correlation([1, 2, 3], [1, 2, 4]).interval[0])
    assert math.isnan(statistics.slope([1, 1, 1], [1, 2, 3]).estimate)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 10), (10, 10), (7, 10), (163, 200)])
def test_wilson_agrees_with_statsmodels(successes, n):
    found = statistics.wilson(successes, n)
    assert found.interval == pytest.approx(proportion_confint(successes, n, method="wilson"))
    assert found.estimate == successes / n
    assert 0 <= found.interval[0] < found.interval[1] <= 1


def test_shares_count_the_lower_or_the_higher_ones():
    lower = statistics.lower_share([1, 2, 3, 4], [2, 2, 4, 5])
    assert (lower.estimate, lower.n) == (0.75, 4)
    assert lower.interval == statistics.wilson(3, 4).interval
    assert statistics.higher_share([1, 2, 3, 4], [2, 2, 4, 5]).estimate == 0


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40])
def test_smallest_detectable_difference_agrees_with_statsmodels(n):
    expected = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8, alternative="two-sided")
    a = np.random.default_rng(n).normal(size=n)
    found = statistics.smallest_detectable_difference(a, np.zeros(n)).estimate
    assert found == pytest.approx(a.std(ddof=1) * expected, rel=1e-3)


def test_smallest_detectable_difference_at_the_edges():
    assert math.isnan(statistics.smallest_detectable_difference([1], [2]).estimate)
    assert statistics.smallest_detectable_difference([1, 2], [2, 3]).estimate == 0
