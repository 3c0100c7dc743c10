"""`ghost audit --verify`: does everything still hold together, from the bytes of the runs to the text of the PDF?

`ghost.audit.checks` has the checks, in the order the data flows. A problem names the file and what is wrong. A damaged
file hides no other one. `--repair` removes the outputs that are wrong, and `snakemake all` makes them anew.

What holds together is consistent. Somebody who changes every file alike can make it so: only a signature (`ghost seal`)
says who vouches for a build, and only a second run (`ghost audit --rerun`) shows that a value is what the code gives.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ghost.audit.checks import Problem, attempt
from ghost.audit.checks.inventory import check_inventory
from ghost.audit.checks.pdf import check_pdf
from ghost.audit.checks.report import Report
from ghost.audit.checks.runs import Runs
from ghost.audit.checks.studies import check_studies
from ghost.audit.seal import SIGNERS, check_seal
from ghost.study.builds import Config
from ghost.study.closed_loop import STUDIES

ALL = ("studies", "runs", "cells", "text", "page", "pdf", "inventory", "seal")
REST_ON = {"text": {"runs", "cells"}, "page": {"runs", "cells"}, "pdf": {"runs", "cells"}, "cells": {"runs"}}
REST_ON |= {"inventory": {"runs"}}  # checks that read what others found


def verify(config: Config, parts: Sequence[str] = ALL, signers: Path = SIGNERS) -> list[Problem]:
    """Every problem of a build, in the order the data flows; none when everything holds together."""
    runs = Runs(config)
    report = Report(runs)
    found: list[Problem] = []
    checks: dict[str, tuple[Path, Callable[[], Iterator[Problem]]]] = {
        "studies": (Path(STUDIES), check_studies),
        "runs": (config.data, runs.check),
        "cells": (config.data / "cells.jsonl", report.check_cells),
        "text": (config.generated, report.check_text),
        "page": (config.data / "audit.html", report.check_page),
        "pdf": (config.pdf, lambda: check_pdf(report)),
        "inventory": (config.inventory, lambda: check_inventory(runs, {problem.where for problem in found})),
        "seal": (config.inventory, lambda: check_seal(config.inventory, signers)),
    }
    needed = set(parts).union(*(REST_ON.get(part, set()) for part in parts))
    for part, (path, check) in checks.items():
        if part in needed:
            problems = list(attempt(part, path, check, path if path.suffix else None))
            found += problems if part in parts else []
    return found


def repair(problems: Sequence[Problem]) -> str:
    """Remove the outputs that are wrong, so that Snakemake makes them anew. Finished work in units/ stays."""
    gone = sorted({problem.remake for problem in problems if problem.remake is not None and problem.remake.is_file()})
    for path in gone:
        path.unlink()
    left = [problem for problem in problems if problem.remake is None]
    said = f"removed {len(gone)} outputs; `snakemake all` makes them anew" if gone else "nothing to remove"
    return f"{said}; {len(left)} problems are not mended by that" if left else said


def report(problems: Sequence[Problem], vouched: str = "") -> str:
    """For people: a line per problem, the total last; without problems, who vouches for the build."""
    lines = [f"{problem.kind:8} {problem.where}: {problem.says}" for problem in problems]
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
        return "\n".join([*lines, f"{count}; --repair removes the outputs that are wrong"])
    return f"consistent: everything holds together\n{vouched}".strip()
