"""The files that a build consists of, from the records of its runs to the PDFs. The inventory has the sha256 of each.

Large files of runs (checkpoints, shards) are not among them: the manifests have their sha256.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ghost.report.headlines import metric_names
from ghost.runs.records import RECORD, UNITS, open_runs
from ghost.study.builds import Config

NOTEBOOK = "ghost_walkthrough"


def outputs(config: Config, *, tex: bool) -> list[Path]:
    """What `snakemake all` makes beside the runs; without TeX, no drawings and no PDFs.

    A build that leaves experiments out has each table as a PDF, in place of the report.
    """
    artefacts, suffixes = config.buildable(tex=tex), (".pdf", ".png", *([".pgf"] if tex else []))
    drawn = [artefact.label for artefact in artefacts if artefact.step in ("plot", "draw")]
    tables = [artefact.stage for artefact in artefacts if artefact.step == "tabulate"]
    return [
        *(config.data / "cells" / f"{artefact.stage}.jsonl" for artefact in artefacts),
        *(config.data / name for name in ("cells.jsonl", "results.csv")),
        *(config.data / "metrics" / name for name in metric_names(config.artefacts)),
        *(config.figures / f"{label}{suffix}" for label in drawn for suffix in suffixes),
        *(config.generated / f"{name}.tex" for name in (*tables, "numbers", "provenance_entries", "verdict_entries")),
        *([] if config.tasks else [config.data / "notebooks" / f"{NOTEBOOK}.html"]),  # it walks through the article's
        config.data / "audit.html",
        *(config.pdfs if tex else []),
        *(config.table_pdf(artefact.label) for artefact in artefacts if artefact.table and config.left_out and tex),
    ]


def records(manifests: Iterable[Path]) -> Iterator[Path]:
    """The manifests, and the records of the runs that they list."""
    for manifest in manifests:
        yield manifest
        folders = [manifest.parent / f"seed{run.seed}" for run in open_runs(manifest)]
        yield from (path for folder in folders for name in (RECORD, UNITS) if (path := folder / name).is_file())
