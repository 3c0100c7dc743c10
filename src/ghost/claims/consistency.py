"""Checks of the article against itself: derived numbers are recomputed from the printed ones, and its formulas are run.

A printed number stands for an interval: half a unit of its last digit either way. A derived number is consistent when
its interval meets the interval that is computed from the other numbers; so rounding alone never gives a finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from scipy.special import stdtr

from ghost.claims.expressions import evaluate
from ghost.claims.formulas import FORMULAS
from ghost.claims.intervals import Interval, around, as_interval
from ghost.claims.ledger import Claim, Derived, Ledger, Relation, numbers
from ghost.errors import GhostError, did_you_mean


@dataclass(frozen=True)
class Finding:
    """The result of one check of the article's own numbers."""

    claim: str
    consistent: bool
    rule: str  # the computation
    says: str  # the printed and the computed number


class NoValueError(GhostError):
    """A cell that is declared and has no value, or no deviation: a task that was not run, a single run."""


class Article:
    """The article's numbers, and the functions that a derivation may use."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def functions(self) -> dict[str, Callable[..., Any]]:
        names = ("printed", "exact", "all_printed", "least", "largest", "multiple", "pooled_d")
        general = {name: getattr(self, name) for name in (*names, "p_of_pooled_d", "p_of_paired_d")}
        chosen = self.ledger.formulas
        if chosen and chosen not in FORMULAS:
            raise GhostError(f"claims: no formulas {chosen!r}{did_you_mean(chosen, FORMULAS)}")
        return {**general, **(FORMULAS[chosen](self.exact).functions() if chosen else {})}

    def printed(self, identity: str, index: int = 0) -> Interval:
        return around(numbers(self.ledger.claim(identity).printed)[index])

    def exact(self, identity: str, index: int = 0) -> float:
        return numbers(self.ledger.claim(identity).printed)[index].value

    def all_printed(self, pattern: str) -> list[Interval]:
        return [self.printed(identity) for identity in self.ledger.claims if fnmatchcase(identity, pattern)]

    @staticmethod
    def least(intervals: list[Interval]) -> Interval:
        return min(intervals, key=lambda interval: interval.low)

    @staticmethod
    def largest(intervals: list[Interval]) -> Interval:
        return max(intervals, key=lambda interval: interval.high)

    def multiple(self, identity: str, unit: float) -> float:
        """The multiple of a unit that is nearest to a printed number."""
        return round(self.exact(identity) / unit) * unit

    def pooled_d(self, first: str, second: str) -> Interval:
        """Difference of means over the pooled deviation."""
        spreads = self.printed(first, 1), self.printed(second, 1)
        low, high = (math.sqrt(sum(getattr(spread, end) ** 2 for spread in spreads) / 2) for end in ("low", "high"))
        return (self.printed(first) - self.printed(second)) / Interval(low, high)

    def p_of_pooled_d(self, identity: str, pairs: float) -> Interval:
        """The p values of a paired test that a pooled d allows.

        The deviation of a difference is at most s_a + s_b, which is at most twice the pooled deviation. So d_z is at
        least d / 2, and p at most that of t = d / 2 sqrt(n). There is no lower bound: pairs may correlate perfectly.
        """
        d = self.printed(identity)
        return Interval(0.0, _p(min(abs(d.low), abs(d.high)) / 2, pairs))

    def p_of_paired_d(self, identity: str, pairs: float) -> Interval:
        d = self.printed(identity)
        return Interval(*sorted(_p(abs(end), pairs) for end in (d.low, d.high)))


def _p(d: float, pairs: float) -> float:
    return float(2 * stdtr(pairs - 1, -d * math.sqrt(pairs)))


def findings(ledger: Ledger) -> list[Finding]:
    """Every derived number recomputed, every second mention compared, every relation on the article's own numbers."""
    functions = Article(ledger).functions()
    derived = [_derive(line, ledger, functions) for line in ledger.derived]
    relations = [relation for relation in ledger.relations.values() if relation.of == "claims"]
    return [*derived, *_mentions(ledger), *(_relation(relation, ledger) for relation in relations)]


def _derive(line: Derived, ledger: Ledger, functions: Mapping[str, Callable[..., Any]]) -> Finding:
    claim = ledger.claim(line.claim)
    value, stated = evaluate(line.computed, functions), _stated(claim, line.number)
    if not isinstance(value, Interval | int | float):
        raise GhostError(f"claims: {line.computed!r} is no number")
    computed = as_interval(value)
    return Finding(claim.id, computed.meets(stated), line.rule, f"printed {claim.printed}, computed {computed}")


def _stated(claim: Claim, index: int) -> Interval:
    """The values that a printed number allows: its rounding; beyond it for a bound; the range of counts `4 to 5`."""
    number = numbers(claim.printed)[index]
    if index < 0:
        return Interval(numbers(claim.printed)[0].value, number.value)
    sign = claim.printed[0]
    near = around(number, 2 if sign == "≈" else 1)
    return Interval(-math.inf if sign in "<≤" else near.low, math.inf if sign in ">≥" else near.high)


def _mentions(ledger: Ledger) -> list[Finding]:
    """A number that is printed in several places, with several roundings, is one number."""
    found = []
    for claim in ledger.claims.values():
        for at, printed in claim.at.items():
            if printed != claim.printed:
                rule, says = (
                    f"line {at.rpartition('.')[0]} prints the same number",
                    f"printed {claim.printed} and {printed}",
                )
                found.append(Finding(claim.id, _rough(printed).meets(_rough(claim.printed)), rule, says))
    return found


def _rough(printed: str) -> Interval:
    """A number with its rounding; an approximate one may be off by a unit of its last digit, a power by half."""
    number = numbers(printed)[0]
    if "e" in printed and "≈" in printed:
        return abs(number.value) * Interval(1 / math.sqrt(10), math.sqrt(10))
    return around(replace(number, value=abs(number.value)), 3 if "≈" in printed else 1)


def _relation(relation: Relation, ledger: Ledger) -> Finding:
    """Whether a sentence of the article holds for the article's own numbers."""
    printed = {claim.id: [number.value for number in numbers(claim.printed)] for claim in ledger.claims.values()}
    holds, used = predicate(relation.holds, printed)
    return Finding(relation.id, holds, relation.says, described(used))


def predicate(
    holds: str, values: Mapping[str, list[float]], bounds: Mapping[str, Sequence[float]] | None = None
) -> tuple[bool, dict[str, list[float]]]:
    """Whether an expression holds for some numbers, and which of them it used.

    `mean(id)` is a number, `std(id)` its deviation; `means(id with {}, names)` are many. `low(id)` and `high(id)` are
    the ends of its interval, where these are known.
    """
    used: dict[str, list[float]] = {}

    def take(identity: str, index: int) -> float:
        if identity not in values or len(values[identity]) <= index:
            raise GhostError(f"{holds!r}: there is no {'deviation of ' if index else ''}{identity}")
        if math.isnan(values[identity][index]):
            raise NoValueError(f"{identity} has no {'deviation' if index else 'value'} yet")
        used[identity] = values[identity]
        return values[identity][index]

    def end(identity: str, index: int) -> float:
        take(identity, 0)
        if identity not in (bounds or {}):
            raise NoValueError(f"{identity} has no interval")
        return (bounds or {})[identity][index]

    functions: dict[str, Callable[..., Any]] = {
        "low": lambda identity: end(identity, 0),
        "high": lambda identity: end(identity, 1),
        "mean": lambda identity: take(identity, 0),
        "std": lambda identity: take(identity, 1),
        "means": lambda template, names: [take(template.replace("{}", name), 0) for name in names],
        "stds": lambda template, names: [take(template.replace("{}", name), 1) for name in names],
    }
    return bool(evaluate(holds, functions)), used


def described(used: Mapping[str, list[float]]) -> str:
    """Numbers with their names, as text."""
    return ", ".join(f"{name} {' ± '.join(f'{value:.6g}' for value in found)}" for name, found in used.items())
