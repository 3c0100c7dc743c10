"""A line of the table on its way to a step: JSON on the command line, settings as the module's own dataclass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from ghost.errors import GhostError
from ghost.runs.code import module_path

ROW = ("name", "step", "module", "scale", "settings", "seeds", "needs", "reduced")
Settings = TypeVar("Settings")


def read_row(text: str) -> dict[str, Any]:
    """The row, with every field there."""
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        raise GhostError(f"--row is not JSON: {error}") from None
    missing = [key for key in ROW if key not in row] if isinstance(row, dict) else list(ROW)
    if missing:
        raise GhostError(f"--row lacks {', '.join(missing)}; `snakemake -n -p` shows a whole one")
    if module_path(row["module"]) is None:
        raise GhostError(f"--row: no module {row['module']!r} of ours")
    return dict(row)


def read_settings(row: Mapping[str, Any], make: Callable[..., Settings]) -> Settings:
    """The row's settings as the dataclass of its module, which checks them."""
    try:
        return make(**{key: tuples(value) for key, value in row["settings"].items()})
    except (TypeError, ValueError) as error:
        raise GhostError(f"{row['name']}: {error}") from None


# The checks that the modules' settings share. Each names the setting and the value that it got.


def at_least(least: int, settings: object, *names: str) -> None:
    _require(lambda value: value >= least, f"be at least {least}", settings, names)


at_least_one = partial(at_least, 1)


def positive(settings: object, *names: str) -> None:
    _require(lambda value: value > 0, "be positive", settings, names)


def not_negative(settings: object, *names: str) -> None:
    _require(lambda value: value >= 0, "not be negative", settings, names)


def below_one(settings: object, *names: str) -> None:
    _require(lambda value: 0 <= value < 1, "lie in [0, 1)", settings, names)


def _require(holds: Callable[[Any], bool], what: str, settings: object, names: Iterable[str]) -> None:
    for name in names:
        value = getattr(settings, name)
        if not holds(value):
            raise ValueError(f"{name} must {what}, got {value}")


def tuples(value: Any) -> Any:
    """JSON has lists only; settings are frozen."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value
