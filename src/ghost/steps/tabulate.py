"""A table in LaTeX: `python -m ghost.steps.tabulate --artefact tab:x --cells tab_x.jsonl --out tab_x.tex`."""

from pathlib import Path

import tyro

from ghost.errors import exit_on_error
from ghost.files import write_text
from ghost.report.cells import read_cells
from ghost.report.tables import latex
from ghost.study.builds import opened


def tabulate(artefact: str, cells: Path, out: Path, scale: str = "laptop") -> None:
    """Write a table with the numbers of its cells.

    Args:
        artefact: the table's id, such as tab:lightweight.
        cells: the table's cells.
        out: the LaTeX file to write.
        scale: the build.
    """
    write_text(out, latex(opened(scale).artefact(artefact), read_cells(cells)))


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(tabulate))
