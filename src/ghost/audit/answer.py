"""What `ghost audit` answers: text or JSON, and an exit code."""

from __future__ import annotations

from pathlib import Path

from ghost.audit import affected, compare, lookup
from ghost.audit.build import Build
from ghost.errors import GhostError
from ghost.files import canonical
from ghost.study.builds import Config


def answer(
    config: Config, cell: str, query: affected.Query, *, verify: bool, diff: tuple[Path, Path] | None, json: bool
) -> tuple[str, int]:
    """One question at a time: a cell, the way back, a verification or a comparison."""
    asked = [bool(cell), query.given, verify, diff is not None]
    if sum(asked) != 1:
        raise GhostError("ask for a cell, for one of --run --seed --host --gpu --commit --file, for --verify or --diff")
    if cell:
        return (canonical(lookup.as_json(config, cell)) if json else lookup.lookup(config, cell)), 0
    if diff is not None:
        differences = compare.compare(*diff)
        return (canonical(compare.as_json(differences)) if json else compare.report(differences)), bool(differences)
    if query.given:
        build = Build.open(config)
        found = affected.affected(build, query)
        return (canonical(found.as_json()) if json else affected.report(build, found)), 0
    return _verified(config, json=json)


def _verified(config: Config, *, json: bool) -> tuple[str, int]:
    from ghost.audit import verify  # with the libraries for PDF and tables, which take a while to load

    problems = verify.verify(config)
    return (canonical(verify.as_json(problems)) if json else verify.report(problems)), bool(problems)
