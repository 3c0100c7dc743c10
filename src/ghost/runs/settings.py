"""The settings of an experiment as dataclasses of the modules that use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from ghost.errors import GhostError, did_you_mean


def read_settings(name: str, settings: Mapping[str, Any], *kinds: Callable[..., Any]) -> list[Any]:
    """One dataclass of each kind. They share one flat list of settings, and each checks its own."""
    owned = [{field.name for field in fields(kind)} for kind in kinds]  # type: ignore[arg-type]
    known = set().union(*owned)
    for key in settings:
        if key not in known:
            raise GhostError(f"{name}: no setting {key!r}{did_you_mean(key, known)}")
    try:
        return [
            kind(**{key: tuples(value) for key, value in settings.items() if key in own})
            for kind, own in zip(kinds, owned, strict=True)
        ]
    except (TypeError, ValueError) as error:
        raise GhostError(f"{name}: {error}") from None


def at_least_one(settings: object, *names: str) -> None:
    """For the checks of such a dataclass: sizes and counts."""
    for name in names:
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} must be at least 1, got {getattr(settings, name)}")


def tuples(value: Any) -> Any:
    """JSON has lists only; settings are frozen."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value
