"""An estimate, and the ways in which a cell shows it: a number, with its interval, as a share."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from ghost.report.statistics import Estimated, Interval
from ghost.runs.records import Run


@dataclass(frozen=True)
class Estimate:
    """`shown` is the text that the PDF prints; `value` is not rounded, and None for a result that is not a number."""

    shown: str
    value: float | None
    n: int
    interval: Interval | None = None  # 95 %
    sha256: str | None = None  # of a result that is not a number: a curve's points, a module's code
    unpaired: tuple[int, ...] | tuple[str, ...] = ()  # seeds, or trials, that only one of two compared experiments has


Cell = Mapping[str, Any]
Show = Callable[[Cell, Estimated], Estimate]
NOT_RUN = Estimate("not run", None, 0)


def number(cell: Cell, found: Estimated, *, suffix: str = "", show: Callable[[float, str], str] = format) -> Estimate:
    """A number as the cell shows it; nan (a run that never reached its goal) is "undefined"."""
    if not math.isfinite(found.estimate):
        return Estimate("undefined", None, found.n) if found.n else NOT_RUN
    interval = found.interval if all(map(math.isfinite, found.interval)) else None
    return Estimate(show(found.estimate, cell["digits"]) + suffix, found.estimate, found.n, interval)


def with_interval(cell: Cell, found: Estimated) -> Estimate:
    return number(cell, found, suffix=_bounds(" [{}, {}]", cell, found))


def interval_alone(cell: Cell, found: Estimated) -> Estimate:
    """ "one run" has none."""
    alone = "one run" if found.n == 1 else "undefined"
    return replace(number(cell, found), shown=_bounds("{} to {}", cell, found) or alone)


def share(cell: Cell, found: Estimated) -> Estimate:
    """As 97/100."""
    return replace(number(cell, found), shown=f"{round(found.estimate * found.n)}/{found.n}")


def show_p(p: float, digits: str) -> str:
    """A p value that never shows as zero: one that these digits would round to zero is shown as "< 0.001"."""
    shown = format(p, digits)
    if p < 1 and "e" not in shown and float(shown) == 0:
        shown = f"< {format(10.0 ** -len(shown.partition('.')[2]), digits)}"
    return shown


def _bounds(template: str, cell: Cell, found: Estimated) -> str:
    """The interval as text; empty where it is not known."""
    bounds = [format(bound, cell["digits"]) for bound in found.interval if math.isfinite(bound)]
    return template.format(*bounds) if len(bounds) == 2 else ""


def bracketed(estimator: Callable[..., Estimate]) -> Callable[..., Estimate]:
    """The estimator, which shows its interval too, where it has one."""

    @wraps(estimator)
    def estimate(cell: Cell, *runs: list[Run]) -> Estimate:
        found = estimator(cell, *runs)
        bounds = [format(bound, cell["digits"]) for bound in found.interval or ()]
        return replace(found, shown=f"{found.shown} [{', '.join(bounds)}]") if bounds else found

    return estimate
