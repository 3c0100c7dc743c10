"""The article against itself: what is found, what is not, and the arithmetic behind it."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from ghost.claims.consistency import Article, Interval, described, findings, predicate
from ghost.claims.expressions import evaluate
from ghost.claims.ledger import LEDGER, read_ledger
from ghost.errors import GhostError
from ghost.report import statistics

INCONSISTENT = {
    "tab:multi_task/aggregate_params_ratio",
    "tab:groot_distill/Ghost/time_left_ms",
    "tab:multi_task/boundary/mse",
    "tab:multi_task/steady/mse",
    "tab:multi_task/intervals/mse",
    "tab:lightweight/Diffusion/lower",
    "tab:lightweight/Ghost/test_mse",
    "tab:lightweight/CVAE/p",
    "tab:loss_ablation/bc/d",
    "tab:ablation/Move_parts/arm_mse/single",
    "fig:switch_speed/gru_a0.30/ratio",
    "fig:switch_speed/gru_a0.30/steps_to_converge",
    "fig:switch_speed/ghost/first_ratio",
    "fig:switch_speed/ghost/first_ratio_step",
    "fig:switch_speed/ghost/min_ratio_step",
    "lightweight/smallest_spread",
    "multi_task/boundary_is_noise",
    "diagnostic/escape_follows_dwell",
    "libero/matched_budget",
    "libero/replaced_subset",
    "attractor_tradeoff/lowest_val_mse",
    "attractor_tradeoff/quartic_helps_nothing",
}


@pytest.fixture(scope="module")
def ledger(request):
    return read_ledger(request.config.rootpath / LEDGER)


@pytest.fixture(scope="module")
def found(ledger):
    return findings(ledger)


def said(found, claim):
    return "; ".join(finding.says for finding in found if finding.claim == claim and not finding.consistent)


def test_these_and_only_these_contradict_each_other(found):
    assert {finding.claim for finding in found if not finding.consistent} == INCONSISTENT
    assert len(found) > 140


def test_by_how_much_is_said(found):
    assert "printed > 20, computed 10" in said(found, "fig:switch_speed/gru_a0.30/steps_to_converge")
    assert "computed 22.27 to 23.06" in said(found, "tab:lightweight/Diffusion/lower")
    assert "printed 9.7, computed 9.585 to 9.595" in said(found, "tab:groot_distill/Ghost/time_left_ms")
    assert "computed 4615 to 4616" in said(found, "tab:multi_task/aggregate_params_ratio")


def test_a_corrected_number_is_no_longer_a_finding(ledger):
    claims = dict(ledger.claims)
    for identity, printed in (
        ("tab:groot_distill/Ghost/time_left_ms", "9.6"),
        ("tab:multi_task/aggregate_params_ratio", "4,615"),
        ("tab:lightweight/Diffusion/lower", "22.7"),
        ("fig:switch_speed/gru_a0.30/steps_to_converge", "10"),
    ):
        claims[identity] = dataclasses.replace(claims[identity], printed=printed, at={"1.1": printed})
    left = {f.claim for f in findings(dataclasses.replace(ledger, claims=claims)) if not f.consistent}
    assert left == INCONSISTENT - {
        "tab:groot_distill/Ghost/time_left_ms",
        "tab:multi_task/aggregate_params_ratio",
        "tab:lightweight/Diffusion/lower",
        "fig:switch_speed/gru_a0.30/steps_to_converge",
    }


def test_the_published_parameter_count_is_that_of_the_text(ledger):
    assert Article(ledger).functions()["ghost_parameters"]() == 2315746


def test_the_basin_is_a_minimum_of_the_published_potential(ledger):
    basin = Article(ledger).functions()["basin"]()
    slope = 4 * 0.3 * basin * (basin**2 - 1.5**2) - 3
    assert slope == pytest.approx(0, abs=1e-9)
    assert basin == pytest.approx(1.8902, abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_p_and_pooled_d_of_real_pairs_never_break_the_bound(ledger, seed):
    """Any five pairs, also anticorrelated ones, have a p below the bound that their own pooled d gives."""
    random = np.random.default_rng(seed)
    a = random.normal(1.0, 0.1, 5)
    b = -random.uniform(0, 1) * (a - 1) + random.normal(0.8, 0.05, 5)
    d, p = statistics.cohens_d(a, b).estimate, stats.ttest_rel(a, b).pvalue
    text = f"{d:.12f}"
    claims = {"d": dataclasses.replace(ledger.claims["tab:lightweight/CVAE/d"], id="d", printed=text, at={})}
    bound = Article(dataclasses.replace(ledger, claims=claims)).p_of_pooled_d("d", 5)
    assert p <= bound.high * (1 + 1e-6)


def test_intervals_contain_every_value_of_their_parts():
    a, b = Interval(2, 3), Interval(4, 5)
    assert a + b == Interval(6, 8)
    assert b - a == Interval(1, 3)
    assert a * b == Interval(8, 15)
    assert (a / b).low == pytest.approx(0.4)
    assert (1 / a).high == pytest.approx(0.5)
    assert (1 - a) == Interval(-2, -1)
    assert -a == Interval(-3, -2)
    assert a / Interval(-1, 1) == Interval(-math.inf, math.inf)
    assert a.meets(Interval(3, 9))
    assert not a.meets(Interval(3.01, 9))


def test_a_predicate_names_its_numbers_and_what_is_missing():
    values = {"tab:x/a/mse": [1.0, 0.1], "tab:x/b/mse": [2.0, 0.2]}
    assert predicate("mean('tab:x/a/mse') < min(means('tab:x/{}/mse', ['b']))", values)[0]
    holds, used = predicate("std('tab:x/a/mse') > std('tab:x/b/mse')", values)
    assert not holds
    assert described(used) == "tab:x/a/mse 1 ± 0.1, tab:x/b/mse 2 ± 0.2"
    with pytest.raises(GhostError, match="there is no tab:x/c/mse"):
        predicate("mean('tab:x/c/mse') > 0", values)


@pytest.mark.parametrize(
    "text", ["__import__('os')", "(1).__class__", "[x for x in [1]]", "open('x')", "1 if 2 else 3", "lambda: 1", "1 +"]
)
def test_an_expression_can_do_arithmetic_and_nothing_else(text):
    with pytest.raises(GhostError):
        evaluate(text, {})


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "'a' * 3000000000",
        "[0] * 10",
        "'a' + 'b'",
        "9 ** 9 ** 9",
        "1 << 10000000000",
        "-" * 1900 + "1",
        "(" * 900 + "1" + ")" * 900,
        "1 + " * 600 + "1",
        "9" * 1500 + " * 1.0",
        "9" * 4500,
        "max([])",
        "[1][5]",
        "'a' < 1",
        "len(1)",
        "mean(1)",
        "means('{}', 3)",
        "sum(['a'])",
        "a\0b",
        "",
    ],
)
def test_an_expression_that_fails_is_one_line(text):
    with pytest.raises(GhostError) as error:
        predicate(text, {"a": [1.0]})
    assert len(str(error.value)) < 5000


def test_a_derivation_must_be_a_number(ledger):
    line = dataclasses.replace(ledger.derived[0], computed="'a'")
    with pytest.raises(GhostError, match="is no number"):
        findings(dataclasses.replace(ledger, derived=(line,)))


def test_expressions_compute():
    assert evaluate("100 * (1 - 3 / 4) >= 25 and not 1 > 2", {})
    assert evaluate("f('a')[1] + max([1, 2])", {"f": lambda name: [0, 5]}) == 7
    assert evaluate("ghost.epochs", {}, lambda name: {"ghost.epochs": 300}[name]) == 300


def test_another_article_has_no_formulas_of_ours(ledger):
    other = dataclasses.replace(ledger, formulas="")
    assert "printed" in Article(other).functions()
    assert "basin" not in Article(other).functions()
    with pytest.raises(GhostError, match="no formulas 'ghost_attractors'; did you mean ghost_attractor_networks"):
        Article(dataclasses.replace(ledger, formulas="ghost_attractors")).functions()
