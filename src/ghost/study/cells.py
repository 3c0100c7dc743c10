"""Short ways to declare the cells that many figures and tables have."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ghost.report.over_cells import SEPARATOR
from ghost.study.declarations import Cell
from ghost.study.tables import Column, Text


def settings(experiment: str, names: Iterable[str], prefix: str = "") -> tuple[Cell, ...]:
    """Settings of an experiment as cells: not even a step size is typed into the text."""
    return tuple(Cell(f"{prefix}setting/{name}", experiment, name, estimator="setting", digits="g") for name in names)


def curves(experiment: str, *arrays: str, prefix: str = "") -> tuple[Cell, ...]:
    """Arrays that a figure draws."""
    return tuple(Cell(f"{prefix}curve/{array}", experiment, array, estimator="series") for array in arrays)


def values(
    experiment: str,
    conditions: str | tuple[str, ...],
    digits: str,
    *metrics: str,
    estimator: str = "value",
    unit: str = "",
    prefix: str = "",
) -> tuple[Cell, ...]:
    """Measured values of an experiment: <condition>/<metric>. Without chance there is one run."""
    return tuple(
        Cell(f"{prefix}{condition}/{metric}", experiment, metric, condition, estimator, digits, unit)
        for condition in ((conditions,) if isinstance(conditions, str) else conditions)
        for metric in metrics
    )


def runs(experiment: str, name: str = "runs") -> Cell:
    """How many runs an experiment has."""
    return Cell(name, experiment, "", estimator="runs")


def over(estimator: str, parts: Iterable[Cell | str], digits: str = ".2f", unit: str = "", name: str = "") -> Cell:
    """A cell that follows from other cells of the same figure or table (`ghost.report.over_cells`)."""
    names = (part if isinstance(part, str) else part.name for part in parts)
    return Cell(name, "", SEPARATOR.join(names), "", estimator, digits, unit)


def mean(
    experiment: str, metric: str, condition: str = "all", digits: str = ".3f", unit: str = "", name: str = ""
) -> Cell:
    return Cell(name, experiment, metric, condition, "mean", digits, unit)


def spread(experiment: str, metric: str, digits: str) -> Cell:
    """Mean and standard deviation over runs."""
    return Cell("", experiment, metric, "all", "mean_std", digits)


def largest(experiment: str, metric: str, condition: str) -> Cell:
    return Cell("", experiment, metric, condition, "largest", ".2f")


def parameters(experiment: str, condition: str = "model", digits: str = ".2f", name: str = "") -> Cell:
    return Cell(name, experiment, "parameters", condition, "millions", digits, "M")


def comparison(
    experiment: str,
    against: str,
    metric: str = "mse",
    *,
    d: str = "cohens_d",
    p_digits: str = ".3f",
    d_digits: str = "+z.1f",
    holm: bool = True,
    name: str = "",
) -> dict[str, Cell]:
    """Everything a comparison of two experiments has: change, p, holm_p, d, improved, detectable.

    `holm`: it belongs to the family of comparisons over which p is corrected, all `holm_p` of the same table.
    An error is improved where it is lower, a cosine where it is higher.
    """
    made = {
        "change": ("relative_change", "+z.1f", "%"),
        "p": ("paired_p", p_digits, ""),
        **({"holm_p": ("holm_p", p_digits, "")} if holm else {}),
        "d": (d, d_digits, ""),
        "improved": ("higher_share" if metric == "cosine" else "lower_share", "", ""),
        "detectable": ("detectable", ".5f", ""),
    }
    return {
        short: Cell(f"{name}/{short}" if name else "", experiment, metric, "all", estimator, digits, unit, against)
        for short, (estimator, digits, unit) in made.items()
    }


def rate_comparison(experiment: str, against: str, gain: str = "gain") -> dict[str, Cell]:
    """The same for success rates in shared trials: p, holm_p, detectable, and the difference, called `gain`."""
    made = {
        gain: ("rate_difference", "+z.0f", "pp"),
        "p": ("rate_p", ".3f", ""),
        "holm_p": ("rate_holm_p", ".3f", ""),
        "detectable": ("rate_detectable", ".0f", "pp"),
    }
    return {
        short: Cell("", experiment, "success", "all", estimator, digits, unit, against)
        for short, (estimator, digits, unit) in made.items()
    }


def compared(
    compare: Callable[[Any], Mapping[str, Cell]],
    heads: Mapping[str, Text],
    shorts: tuple[str, ...] = ("change", "p", "holm_p", "d", "improved", "detectable"),
) -> tuple[Column, ...]:
    """The columns of a comparison, of which those with a head are printed."""

    def column(short: str) -> Column:
        return Column(short, heads.get(short), lambda of: compare(of).get(short))

    return tuple(map(column, shorts))
