"""Cells that follow from other cells of the same figure or table: the least of some rates, the range of some errors.

Such a cell names the others in `metric`, separated by commas. Those without a value (a task that was not run) are left
out; n is the number of those that are left. Behind it are the runs of all of them, with what is to be said against
them. It has no interval: the least of ten numbers is not one of them drawn at random.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ghost.errors import GhostError, did_you_mean

SEPARATOR = ","
Cell = Mapping[str, Any]


def least_of(values: list[float]) -> tuple[float, ...]:
    """The least of them."""
    return (min(values),)


def mean_of(values: list[float]) -> tuple[float, ...]:
    """Their mean."""
    return (sum(values) / len(values),)


def range_of(values: list[float]) -> tuple[float, ...]:
    """The least and the largest, shown as 0.005 to 0.038; the value is the least."""
    return min(values), max(values)


def ratio_of(values: list[float]) -> tuple[float, ...]:
    """The first over the second; none where one of them is missing, or the second is zero."""
    return (values[0] / values[1],) if len(values) == 2 and values[1] else ()


def at_most(values: list[float]) -> tuple[float, ...]:
    """Whether the first meets the goal that the second sets: shown as met or missed."""
    return (float(values[0] <= values[1]),) if len(values) == 2 else ()


def at_least(values: list[float]) -> tuple[float, ...]:
    """The same, where more is better."""
    return (float(values[0] >= values[1]),) if len(values) == 2 else ()


WORDS = {"at_most": ("missed", "met"), "at_least": ("missed", "met")}  # for 0 and 1
OVER_CELLS: dict[str, Callable[[list[float]], tuple[float, ...]]] = {
    function.__name__: function for function in (least_of, mean_of, range_of, ratio_of, at_most, at_least)
}


def parts_of(cell: Cell) -> list[str]:
    """The ids of the cells that a cell follows from."""
    artefact = cell["id"].partition("/")[0]
    return [f"{artefact}/{name}" for name in cell["metric"].split(SEPARATOR)]


def over_cells(declared: Iterable[dict[str, Any]], made: Iterable[Cell]) -> list[dict[str, Any]]:
    """The cells of a figure or table that follow from others, which are made already."""
    known = {cell["id"]: cell for cell in made}
    return [_over(cell, known) for cell in declared if cell["estimator"] in OVER_CELLS]


def _over(cell: dict[str, Any], known: Mapping[str, Cell]) -> dict[str, Any]:
    names = parts_of(cell)
    missing = [name for name in names if name not in known]
    if missing:
        raise GhostError(f"{cell['id']} follows from {missing[0]}, which is missing{did_you_mean(missing[0], known)}")
    parts = [known[name] for name in names]
    values = [part["value"] for part in parts if part["value"] is not None]
    found = OVER_CELLS[cell["estimator"]](values) if values else ()
    none = "undefined" if any(part["n"] for part in parts) else "not run"
    return {
        **{key: value for key, value in cell.items() if key not in ("name", "digits")},
        "shown": " to ".join(_shown(cell, value) for value in found) or none,
        "value": found[0] if found else None,
        "interval": None,
        "n": len(values),
        "unpaired": [],
        "sha256": None,
        "runs": list(dict.fromkeys(run for part in parts for run in part["runs"])),
        "reduced": any(part["reduced"] for part in parts),
        "stand_ins": sorted({name for part in parts for name in part["stand_ins"]}),
    }


def _shown(cell: Cell, value: float) -> str:
    words = WORDS.get(cell["estimator"])
    return words[int(value)] if words else format(value, cell["digits"])
