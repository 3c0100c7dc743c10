"""Is the report ready to be printed? The camera-ready build refuses everything that a draft only marks.

snakemake all --config scale=paper camera_ready=true        `ghost ready` lists the obstacles
"""

from pathlib import Path

from ghost.audit.verify import verify
from ghost.claims.sentences import SENTENCES, USED, read_sentences, supported
from ghost.report.appendix import doubts
from ghost.report.cells import read_cells
from ghost.study.builds import Config


def blockers(config: Config, text: Path | None = None) -> list[str]:
    """The reasons why the report of a build is not camera-ready, a line each."""
    cells = read_cells(config.data / "cells.jsonl")
    found = [f"{problem.where}: {problem.says}" for problem in verify(config, ("runs", "cells"))]
    found += [f"{artefact.id}: not built" for artefact in config.artefacts if not artefact.step]
    found += [f"{identity}: {'; '.join(said)}" for identity, cell in cells.items() if (said := doubts(cell))]
    return [*found, *unsupported(text or config.text, config)]


def unsupported(text: Path, config: Config) -> list[str]:
    r"""Sentences in \holds{<id>}{...} that the cells do not support, and ids without a predicate."""
    cells = read_cells(config.data / "cells.jsonl")
    known = read_sentences(SENTENCES)
    found = []
    for path in sorted(text.rglob("*.tex")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in USED.finditer(line.partition("%")[0]):
                if match[1] not in known:
                    found.append(f"{path}:{number}: {SENTENCES} has no predicate {match[1]!r}")
                elif not (support := supported(known[match[1]], cells))[0]:
                    found.append(f"{path}:{number}: the cells do not support {match[1]!r}: {support[1]}")
    return found
