"""Checks of the article against itself: derived numbers are recomputed from the printed ones, and its formulas are run.

A printed number stands for an interval: half a unit of its last digit either way. A derived number is consistent when
its interval meets the interval that is computed from the other numbers; so rounding alone never gives a finding.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from scipy.special import stdtr

from ghost.claims.expressions import evaluate
from ghost.claims.ledger import Claim, Derived, Ledger, Number, Relation, numbers
from ghost.errors import GhostError


def _at_ends(operation: Callable[[float, float], float]) -> Callable[[Interval, Interval | float], Interval]:
    """The operation on intervals: its least and largest result are those of some ends."""

    def combined(self: Interval, other: Interval | float) -> Interval:
        other = _interval(other)
        results = [operation(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(results), max(results))

    return combined


@dataclass(frozen=True)
class Interval:
    """Arithmetic on intervals, as far as the checks need it."""

    low: float
    high: float

    __add__ = __radd__ = _at_ends(operator.add)
    __sub__ = _at_ends(operator.sub)
    __rsub__ = _at_ends(lambda a, b: b - a)
    __mul__ = __rmul__ = _at_ends(operator.mul)

    def __neg__(self) -> Interval:
        return 0 - self

    def __truediv__(self, other: Interval | float) -> Interval:
        return self * (1 / _interval(other))

    def __rtruediv__(self, other: float) -> Interval:
        if self.low <= 0 <= self.high:
            return Interval(-math.inf, math.inf)
        return other * Interval(1 / self.high, 1 / self.low)

    def meets(self, other: Interval) -> bool:
        slack = 1e-9 * max(map(abs, (self.low, other.low, 1e-9)))
        return self.low <= other.high + slack and other.low <= self.high + slack

    def __str__(self) -> str:
        return f"{self.low:.4g}" if math.isclose(self.low, self.high) else f"{self.low:.4g} to {self.high:.4g}"


def _interval(value: Interval | float) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)


def _around(number: Number, halves: int = 1) -> Interval:
    return Interval(number.value - halves * number.half_unit, number.value + halves * number.half_unit)


@dataclass(frozen=True)
class Finding:
    """The result of one check of the article's own numbers."""

    claim: str
    consistent: bool
    rule: str  # the computation
    says: str  # the printed and the computed number


class Article:
    """The article's numbers, and the functions that a derivation may use."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def functions(self) -> dict[str, Callable[..., Any]]:
        names = ("printed", "exact", "all_printed", "least", "largest", "multiple", "pooled_d")
        more = ("p_of_pooled_d", "p_of_paired_d", "ghost_parameters", "basin", "gru_steps", "flow")
        return {name: getattr(self, name) for name in (*names, *more)}

    def printed(self, identity: str, index: int = 0) -> Interval:
        return _around(numbers(self.ledger.claim(identity).printed)[index])

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

    def ghost_parameters(self) -> int:
        hidden, context, latent, both, token, state, action, horizon = (
            round(self.exact(f"setting:{name}"))
            for name in (
                *("ghost.hidden", "ghost.d_context", "ghost.d_latent", "potential.input"),
                *("features.d_token", "features.d_state", "features.d_action", "features.horizon"),
            )
        )
        layers = (
            *((token, hidden), (hidden, context), (context, 1)),  # compressor with its attention pooling
            *((state, hidden), (hidden, latent)),  # state encoder
            *((both, hidden), (hidden, hidden), (hidden, 1)),  # potential
            *((both, hidden), (hidden, latent)),  # drift
            *((latent, hidden), (hidden, horizon * latent)),  # horizon network
            *((latent, hidden), (hidden, action)),  # decoder
        )
        return sum((inputs + 1) * outputs for inputs, outputs in layers)

    def _switch(self, name: str) -> float:
        return self.exact(f"setting:switch_speed.{name}")

    def _slope(self) -> np.poly1d:
        """The slope of the tilted double well."""
        stiffness, tilt, d = map(self._switch, ("stiffness", "tilt", "d"))
        return np.poly1d([4 * stiffness, 0, -4 * stiffness * d**2, -tilt])

    def basin(self) -> float:
        """The minimum of the tilted double well on the right."""
        return float(self._slope().roots.real.max())

    def gru_steps(self) -> int:
        """How many recurrent updates lead from basin A to basin B: each keeps the same share of the distance."""
        kept, distance = 1 - self._switch("gru_alpha"), 2 * self.basin()
        return math.ceil(math.log(self._switch("tolerance") / distance, kept))

    def flow(self, what: str) -> Interval:
        """A property of the contraction ratios, over all step sizes that give the printed counts of control steps."""
        slope, target = self._slope(), self.basin()
        depths = [round(self._switch(f"euler_steps.{k}")) for k in (1, 2, 3)]
        counts = [round(self.exact(f"fig:switch_speed/ghost_n{depth}/steps_to_converge")) for depth in depths]
        dt = np.arange(1, 400) / 1000
        z, distances = np.full_like(dt, -target), [np.full_like(dt, 2 * target)]
        for _ in range(40):
            with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long diverge
                z = z - dt * slope(z)
            distances.append(np.nan_to_num(np.abs(z - target), nan=np.inf))
        away = np.array(distances) > self._switch("tolerance")  # [41, dt]
        arrived = 1 + np.max(np.where(away, np.arange(41)[:, None], -1), axis=0)  # after the last step outside
        chosen = np.all(np.ceil(arrived / np.array(depths)[:, None]) == np.array(counts)[:, None], axis=0)
        before, after = np.array(distances)[:15, chosen], np.array(distances)[1:16, chosen]
        ratios = np.divide(after, before, out=np.full_like(before, np.inf), where=before > 1e-9)
        found = ratios[0] if what == "first_ratio" else 1.0 + np.argmin(ratios, axis=0)
        return Interval(float(found.min()), float(found.max())) if found.size else Interval(math.nan, math.nan)


def _p(d: float, pairs: float) -> float:
    return float(2 * stdtr(pairs - 1, -d * math.sqrt(pairs)))


def findings(ledger: Ledger) -> list[Finding]:
    """Every derived number recomputed, every second mention compared, every relation on the article's own numbers."""
    functions = Article(ledger).functions()
    derived = [_derive(line, ledger, functions) for line in ledger.derived]
    return [*derived, *_mentions(ledger), *(_relation(relation, ledger) for relation in ledger.relations.values())]


def _derive(line: Derived, ledger: Ledger, functions: Mapping[str, Callable[..., Any]]) -> Finding:
    claim = ledger.claim(line.claim)
    value, stated = evaluate(line.computed, functions), _stated(claim, line.number)
    if not isinstance(value, Interval | int | float):
        raise GhostError(f"claims: {line.computed!r} is no number")
    computed = _interval(value)
    return Finding(claim.id, computed.meets(stated), line.rule, f"printed {claim.printed}, computed {computed}")


def _stated(claim: Claim, index: int) -> Interval:
    """The values that a printed number allows: its rounding; beyond it for a bound; the range of counts `4 to 5`."""
    number = numbers(claim.printed)[index]
    if claim.id.endswith("min_ratio_step"):
        return Interval(number.value, numbers(claim.printed)[1].value)
    sign = claim.printed[0]
    around = _around(number, 2 if sign == "≈" else 1)
    return Interval(-math.inf if sign in "<≤" else around.low, math.inf if sign in ">≥" else around.high)


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
    return _around(replace(number, value=abs(number.value)), 3 if "≈" in printed else 1)


def _relation(relation: Relation, ledger: Ledger) -> Finding:
    """Whether a sentence of the article holds for the article's own numbers."""
    printed = {claim.id: [number.value for number in numbers(claim.printed)] for claim in ledger.claims.values()}
    holds, used = predicate(relation.holds, printed)
    return Finding(relation.id, holds, relation.says, described(used))


def predicate(holds: str, values: Mapping[str, list[float]]) -> tuple[bool, dict[str, list[float]]]:
    """Whether an expression holds for some numbers, and which of them it used.

    `mean(id)` is a number, `std(id)` its deviation; `means(id with {}, names)` are many.
    """
    used: dict[str, list[float]] = {}

    def take(identity: str, index: int) -> float:
        if identity not in values or len(values[identity]) <= index:
            raise GhostError(f"{holds!r}: there is no {'deviation of ' if index else ''}{identity}")
        used[identity] = values[identity]
        return values[identity][index]

    functions: dict[str, Callable[..., Any]] = {
        "mean": lambda identity: take(identity, 0),
        "std": lambda identity: take(identity, 1),
        "means": lambda template, names: [take(template.replace("{}", name), 0) for name in names],
        "stds": lambda template, names: [take(template.replace("{}", name), 1) for name in names],
    }
    return bool(evaluate(holds, functions)), used


def described(used: Mapping[str, list[float]]) -> str:
    """Numbers with their names, as text."""
    return ", ".join(f"{name} {' ± '.join(f'{value:.6g}' for value in found)}" for name, found in used.items())
