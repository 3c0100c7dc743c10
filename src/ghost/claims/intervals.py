"""Arithmetic on intervals: a printed number stands for half a unit of its last digit either way."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

from ghost.claims.ledger import Number


def _at_ends(operation: Callable[[float, float], float]) -> Callable[[Interval, Interval | float], Interval]:
    """The operation on intervals: its least and largest result are those of some ends."""

    def combined(self: Interval, other: Interval | float) -> Interval:
        other = as_interval(other)
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
        return self * (1 / as_interval(other))

    def __rtruediv__(self, other: float) -> Interval:
        if self.low <= 0 <= self.high:
            return Interval(-math.inf, math.inf)
        return other * Interval(1 / self.high, 1 / self.low)

    def meets(self, other: Interval) -> bool:
        slack = 1e-9 * max(map(abs, (self.low, other.low, 1e-9)))
        return self.low <= other.high + slack and other.low <= self.high + slack

    def __str__(self) -> str:
        return f"{self.low:.4g}" if math.isclose(self.low, self.high) else f"{self.low:.4g} to {self.high:.4g}"


def as_interval(value: Interval | float) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)


def around(number: Number, halves: int = 1) -> Interval:
    return Interval(number.value - halves * number.half_unit, number.value + halves * number.half_unit)
