"""What `ghost audit` prints: text or JSON, and its exit code."""

from dataclasses import asdict
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
        text = canonical([asdict(each) for each in differences]) if json else compare.report(differences)
        return text, bool(differences)
    if query.given:
        build = Build.open(config)
        found = affected.affected(build, query)
        return (canonical(asdict(found)) if json else affected.report(build, found)), 0
    from ghost.audit import verify as verification  # it loads the libraries that read a PDF, which takes a while

    problems = verification.verify(config)
    text = canonical([asdict(problem) for problem in problems]) if json else verification.report(problems)
    return text, bool(problems)
