"""What `ghost audit` prints: text or JSON, and its exit code."""

from dataclasses import asdict, dataclass
from pathlib import Path

from ghost.audit import affected, compare, lookup
from ghost.audit.build import Build
from ghost.audit.seal import SIGNERS, signer
from ghost.errors import GhostError
from ghost.files import canonical
from ghost.study.builds import Config


@dataclass(frozen=True)
class Verification:
    repair: bool = False
    signers: Path = SIGNERS


def answer(
    config: Config,
    cell: str,
    query: affected.Query,
    verification: Verification | None = None,
    *,
    full: bool = False,
    rerun: str = "",
    sample: int = 3,
    diff: tuple[Path, Path] | None = None,
    json: bool = False,
) -> tuple[str, int]:
    """Answer one question: about a cell, the way back from runs, a verification, a second run, a comparison."""
    asked = [bool(cell), query.given, verification is not None, bool(rerun), diff is not None]
    if sum(asked) != 1:
        raise GhostError(
            "ask one thing: a cell or a number, or some of --run --seed --host --gpu --commit --file, or --verify,"
            " or --rerun, or --diff"
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
    if rerun:
        return _second_runs(config, rerun, sample, json=json)
    return _verified(config, verification or Verification(), json=json)


def _second_runs(config: Config, asked: str, sample: int, *, json: bool) -> tuple[str, int]:
    from ghost.audit.rerun import rerun

    found = rerun(Build.open(config), asked, sample)
    text = canonical([asdict(each) for each in found]) if json else "\n".join(map(str, found))
    return text, not all(each.same for each in found)


def _verified(config: Config, verification: Verification, *, json: bool) -> tuple[str, int]:
    from ghost.audit import verify  # it loads the libraries that read a PDF, which takes a while

    problems = verify.verify(config, signers=verification.signers)
    if json:
        plain = [{**asdict(problem), "remake": str(problem.remake or "")} for problem in problems]
        return canonical(plain), bool(problems)
    vouched = "" if problems else signer(config.inventory, verification.signers)
    text = verify.report(problems, vouched)
    if verification.repair and problems:
        text += f"\n{verify.repair(problems)}"
    return text, bool(problems)
