"""Typeset the report.

A typed number in its text is refused first (ghost.report.lint), so every number in the PDF has runs behind it.
"""

import tempfile
from pathlib import Path

import tyro

from ghost.errors import GhostError, exit_on_error
from ghost.files import atomic
from ghost.report.cells import read_cells
from ghost.report.latexmk import compile_pdf
from ghost.report.lint import lint


def typeset(main: Path, figures: Path, generated: Path, cells: Path, out: Path) -> None:
    """Typeset the report.

    Args:
        main: its main file; the sections are below its folder.
        figures: the folder of the figures.
        generated: the folder of numbers.tex and the tables.
        cells: the cells that the text may refer to.
        out: the PDF to write.
    """
    complaints = lint(main.parent, read_cells(cells))
    if complaints:
        more = f" (and {len(complaints) - 1} more: `ghost lint`)" if len(complaints) > 1 else ""
        raise GhostError(f"{complaints[0]}{more}")
    with tempfile.TemporaryDirectory() as folder:
        pdf = compile_pdf(main, Path(folder), search=(generated, figures))
        with atomic(out) as temporary:
            temporary.write_bytes(pdf.read_bytes())


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(typeset))
