"""Typeset the report.

A typed number in its text is refused first (ghost.report.lint), so every number in the PDF has runs behind it. The PDF
names the cells that it was made from. It is kept only if these are the cells of this build.
"""

import tempfile
from pathlib import Path

import tyro

from ghost.errors import GhostError, exit_on_error
from ghost.files import atomic, sha256
from ghost.report.cells import read_cells
from ghost.report.latexmk import cells_of, compile_pdf
from ghost.report.lint import lint

STYLE = Path("paper")  # ghost.sty, the bibliography, sections that two reports share


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
        pdf = compile_pdf(main, Path(folder), search=(generated, figures, STYLE))
        made_from, here = cells_of(pdf), sha256(cells)
        if made_from != here:
            raise GhostError(f"the PDF was made from cells {made_from[:8]}, this build's {cells} is {here[:8]}")
        with atomic(out) as temporary:
            temporary.write_bytes(pdf.read_bytes())


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(typeset))
