"""The settings of an experiment as dataclasses of the modules that use them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ghost.errors import GhostError, did_you_mean
from ghost.forms import require


def read_settings(name: str, settings: Mapping[str, Any], *kinds: Callable[..., Any]) -> list[Any]:
    """One dataclass of each kind. They share one flat list of settings, and each checks its own."""
    owned = [{field.name for field in fields(kind)} for kind in kinds]  # type: ignore[arg-type]
    known = set().union(*owned)
    for key in settings:
        if key not in known:
            raise GhostError(f"{name}: no setting {key!r}{did_you_mean(key, known)}")
    for kind in kinds:
        for key, hint in get_type_hints(kind).items():
            if key in settings:
                require(settings[key], _form(hint), f"{name}: {key}")
    try:
        return [
            kind(**{key: tuples(value) for key, value in settings.items() if key in own})
            for kind, own in zip(kinds, owned, strict=True)
        ]
    except (TypeError, ValueError) as error:
        raise GhostError(f"{name}: {error}") from None


def _form(hint: Any) -> Any:
    """The form of JSON values for a field's type: whole and finite numbers, texts, and lists or objects of them."""
    inner = [_form(each) for each in get_args(hint) if each is not Ellipsis]
    if get_origin(hint) is tuple:
        return [inner[0]]
    if get_origin(hint) is Mapping:
        return {str: inner[1]}
    if get_origin(hint) is UnionType:
        return tuple(inner)
    return {Any: object, NoneType: None}.get(hint, hint)


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
