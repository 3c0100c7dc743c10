"""Typeset the report and its supplement.

A typed number in their text is refused first (ghost.report.lint), so every number in the PDFs has runs behind it. The
PDFs name the cells that they were made from. They are kept only if these are the cells of this build, and if no link
within one of them is dead.
"""

import tempfile
from pathlib import Path

import tyro

from ghost.errors import GhostError, exit_on_error
from ghost.files import atomic, sha256
from ghost.report.cells import read_cells
from ghost.report.latexmk import cells_of, compile_pdf, lost_links
from ghost.report.lint import lint

STYLE = Path("paper")  # ghost.sty, the bibliography, sections that two reports share


def typeset(
    main: Path, supplement: Path, figures: Path, generated: Path, cells: Path, out: Path, out_supplement: Path
) -> None:
    """Typeset the report and its supplement.

    Args:
        main: the report's main file; the sections are below its folder.
        supplement: the supplement's main file. It is typeset second, since it names the pages of the report.
        figures: the folder of the figures.
        generated: the folder of numbers.tex and the tables.
        cells: the cells that the text may refer to.
        out: the report's PDF to write.
        out_supplement: the supplement's PDF to write.
    """
    complaints = lint(main.parent, read_cells(cells))
    if complaints:
        more = f" (and {len(complaints) - 1} more: `ghost lint`)" if len(complaints) > 1 else ""
        raise GhostError(f"{complaints[0]}{more}")
    here = sha256(cells)
    with tempfile.TemporaryDirectory() as folder:
        made = [compile_pdf(source, Path(folder), search=(generated, figures, STYLE)) for source in (main, supplement)]
        for source, pdf in zip((main, supplement), made, strict=True):
            if lost := lost_links(pdf):
                raise GhostError(f"{source}: a link leads nowhere: {lost[0]}")
            if (made_from := cells_of(pdf)) != here:
                raise GhostError(f"the PDF was made from cells {made_from[:8]}, this build's {cells} is {here[:8]}")
        for pdf, target in zip(made, (out, out_supplement), strict=True):
            with atomic(target) as temporary:
                temporary.write_bytes(pdf.read_bytes())


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(typeset))
