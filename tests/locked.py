"""What a declaration asks for, along what each installed package says that it needs: for the tests of the locks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from importlib import metadata

from packaging.requirements import Requirement

from ghost.runs.environment import plain


def asked_for(
    needs: Iterable[str],
    pins: Mapping[str, str],
    left_out: Collection[str],
    forced: Mapping[str, Requirement] | None = None,
) -> set[str]:
    """The packages behind some needs, each of which must be pinned at a version that fits. `forced` replaces a need."""
    waiting = [Requirement(text) for text in needs]
    found: set[tuple[str, str]] = set()
    while waiting:
        need = waiting.pop()
        name = plain(need.name)
        if name in left_out:
            continue
        need = (forced or {}).get(name, need)
        assert name in pins, f"{need} is not locked: ghost lock"
        assert need.specifier.contains(pins[name], prereleases=True), f"{need}, but the lock has {pins[name]}"
        for extra in {"", *need.extras} - {extra for known, extra in found if known == name}:
            found.add((name, extra))
            further = [Requirement(text) for text in metadata.requires(name) or ()]
            waiting += [other for other in further if other.marker is None or other.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}
