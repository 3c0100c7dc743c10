"""A line of the table on its way to a step: JSON on the command line, settings as the module's own dataclass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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


def at_least_one(settings: object, *names: str) -> None:
    """For the checks of such a dataclass: sizes and counts."""
    for name in names:
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(settings, name)}")


def tuples(value: Any) -> Any:
    """JSON has lists only; settings are frozen."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value
