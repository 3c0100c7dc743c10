"""The form that a value from a file must have. What a pull or a download brings may be anything.

A reader says what it expects, and `require` refuses everything else with one line that names the place:

    str, bool, dict, list      a value of this type
    int                        a whole number of at most 64 bits; a bool is none
    float                      a finite number
    range(1, 10)               a whole number among these
    re.compile(...)            text that matches as a whole
    [form]                     a list of values of this form
    {"key": form}              an object with at least these keys
    {str: form}                an object whose keys all have one form, given by a type or a pattern
    (form, form)               one form or the other; None stands for null, object for any value
"""

import math
import re
from typing import Any

from ghost.errors import GhostError

INT64 = range(-(2**63), 2**63)
COUNT = range(2**63)  # whole numbers from 0
PART = r"(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f]+"
NAME = re.compile(rf"{PART}(?:/{PART})*")  # of a file below some folder: no root, no `..`, no control characters
SHA256 = re.compile(r"[0-9a-f]{64}")
NAMES: dict[Any, str] = {str: "text", bool: "true or false", int: "a whole number", float: "a finite number"}
NAMES |= {dict: "an object", list: "a list", bytes: "bytes", None: "null"}
LONGEST = 60  # characters that are shown of a wrong value


def require(value: Any, form: Any, where: object) -> None:
    """Refuse a value that does not have the form. `where` names the file."""
    found = _unlike(value, form)
    if found is not None:
        place, expected, wrong = found
        what = shortened(place.lstrip(".")) or "it"
        raise GhostError(f"{where}: {what} must be {expected}, got {shortened(repr(wrong))}")


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def has_form(value: Any, form: Any) -> bool:
    return _unlike(value, form) is None


def _unlike(value: Any, form: Any) -> tuple[str, str, Any] | None:
    """The place of the first wrong value, what was expected there, and the value."""
    if isinstance(form, tuple):
        return None if any(has_form(value, each) for each in form) else ("", _named(form), value)
    if isinstance(form, list) and type(value) is list:
        return _first((f"[{number}]", item, form[0]) for number, item in enumerate(value))
    if isinstance(form, dict) and type(value) is dict:
        return _unlike_object(value, form)
    return None if _plain(value, form) else ("", _named(form), value)


def _unlike_object(value: dict[str, Any], form: dict[Any, Any]) -> tuple[str, str, Any] | None:
    (first, inner), *_ = form.items()
    if not isinstance(first, str):  # the form of all keys
        wrong = [key for key in value if not has_form(key, first)]
        if wrong:
            return "a name in it", _named(first), wrong[0]
        return _first((f".{key}", item, inner) for key, item in value.items())
    missing = [key for key in form if key not in value]
    if missing:
        return "", f"an object with {', '.join(missing)}", sorted(value, key=str)
    return _first((f".{key}", value[key], inner) for key, inner in form.items())


def _first(parts: Any) -> tuple[str, str, Any] | None:
    for place, item, form in parts:
        found = _unlike(item, form)
        if found is not None:
            return place + found[0], *found[1:]
    return None


def _plain(value: Any, form: Any) -> bool:
    if isinstance(form, re.Pattern):
        return isinstance(value, str) and form.fullmatch(value) is not None
    if form is None or form is object:
        return form is object or value is None
    if form is float:
        whole = type(value) is int and value in INT64
        return whole or (type(value) is float and math.isfinite(value))
    if isinstance(form, range):
        return type(value) is int and value in form
    if form is int:
        return type(value) is int and value in INT64
    return isinstance(form, type) and type(value) is form


def _named(form: Any) -> str:
    if isinstance(form, tuple):
        return " or ".join(map(_named, form))
    if isinstance(form, range):
        return f"a whole number from {form.start} to {form.stop - 1}"
    if isinstance(form, re.Pattern):
        return {NAME: "the name of a file inside its folder", SHA256: "a sha256"}.get(form, f"like {form.pattern}")
    kind = type(form) if isinstance(form, dict | list) else form
    return NAMES.get(kind) or f"of type {kind.__name__}"
