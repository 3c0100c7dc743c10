"""What `ghost audit` prints: text or JSON, and its exit code."""

from pathlib import Path

from ghost.audit import affected, compare, lookup
from ghost.audit.build import Build
from ghost.errors import GhostError
from ghost.files import canonical
from ghost.study.builds import Config


def answer(
    config: Config,
    cell: str,
    query: affected.Query,
    *,
    full: bool = False,
    verify: bool = False,
    diff: tuple[Path, Path] | None = None,
    json: bool = False,
) -> tuple[str, int]:
    """Answer one question: about a cell, the way back from runs, a verification or a comparison of builds."""
    asked = [bool(cell), query.given, verify, diff is not None]
    if sum(asked) != 1:
        raise GhostError(
            "ask one thing: a cell or a number, or some of --run --seed --host --gpu --commit --file, or --verify,"
            " or --diff"
        )
    if cell:
        return (canonical(lookup.as_json(config, cell)) if json else lookup.lookup(config, cell, full=full)), 0
    if diff is not None:
        differences = compare.compare(*diff)
        return (canonical(compare.as_json(differences)) if json else compare.report(differences)), bool(differences)
    if query.given:
        build = Build.open(config)
        found = affected.affected(build, query)
        return (canonical(found.as_json()) if json else affected.report(build, found)), 0
    return _verified(config, json=json)


def _verified(config: Config, *, json: bool) -> tuple[str, int]:
    from ghost.audit import verify  # it loads the libraries that read a PDF, which takes a while

    problems = verify.verify(config)
    return (canonical(verify.as_json(problems)) if json else verify.report(problems)), bool(problems)
