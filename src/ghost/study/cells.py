"""Short ways to declare the cells that many figures and tables have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ghost.study.declarations import Cell


def settings(experiment: str, names: Iterable[str], prefix: str = "") -> tuple[Cell, ...]:
    """Settings of an experiment as cells: not even a step size is typed into the text."""
    return tuple(Cell(f"{prefix}setting/{name}", experiment, name, estimator="setting", digits="g") for name in names)


def curves(experiment: str, *arrays: str, prefix: str = "") -> tuple[Cell, ...]:
    """Arrays that a figure draws."""
    return tuple(Cell(f"{prefix}curve/{array}", experiment, array, estimator="series") for array in arrays)


def values(experiment: str, condition: str, digits: str, *metrics: str, **more: Any) -> tuple[Cell, ...]:
    """Measured values of an experiment without chance, under one condition: <condition>/<metric>."""
    return tuple(
        Cell(f"{condition}/{metric}", experiment, metric, condition, "value", digits, **more) for metric in metrics
    )


def module(row: str, name: str) -> Cell:
    """The module that implements a row of a table."""
    return Cell(f"{row}/module", "", name, estimator="module")
