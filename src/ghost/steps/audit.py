"""The audit page: `python -m ghost.steps.audit --cells cells.jsonl --manifests ... --figures ... --out audit.html`."""

from pathlib import Path

import tyro

from ghost.audit.page import render
from ghost.errors import exit_on_error
from ghost.files import write_text
from ghost.report.cells import read_cells
from ghost.runs.records import open_runs


def audit(cells: Path, manifests: tuple[Path, ...], scale: str, out: Path, figures: tuple[Path, ...] = ()) -> None:
    """Write the audit page.

    Args:
        cells: all cells, a JSON line each.
        manifests: the manifests of every experiment.
        scale: the scale they were made at.
        out: the HTML file to write.
        figures: the figures, as PNG.
    """
    runs = [run for manifest in manifests for run in open_runs(manifest)]
    write_text(out, render(read_cells(cells), runs, scale, figures))


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(audit))
