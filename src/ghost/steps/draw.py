"""Draw one TikZ figure: `python -m ghost.steps.draw --source paper/tikz/method.tikz --out figures/method`.

The .pgf is the drawing itself, for the report; .pdf and .png are for everybody else.
"""

import tempfile
from pathlib import Path

import pypdfium2
import tyro

from ghost.errors import exit_on_error
from ghost.files import atomic
from ghost.report.latexmk import compile_pdf

DOCUMENT = r"""\documentclass[border=2pt]{standalone}
\usepackage{ghost}
\begin{document}\fontsize{8}{9.6}\fontfamily{ptm}\selectfont
\input{%s}
\end{document}
"""
DPI = 200


def draw(source: Path, style: Path, out: Path) -> None:
    """Typeset one drawing.

    Args:
        source: a tikzpicture.
        style: the report's ghost.sty, so that drawing and report load the same packages.
        out: where to write, without the suffix.
    """
    with tempfile.TemporaryDirectory() as folder:
        main = Path(folder) / "drawing.tex"
        main.write_text(DOCUMENT % source.name, encoding="utf-8")
        pdf = compile_pdf(main, Path(folder), search=(source.parent, style.parent))
        page = pypdfium2.PdfDocument(pdf)[0].render(scale=DPI / 72).to_pil()
        with atomic(out.with_suffix(".png")) as temporary:
            page.save(temporary)
        for made, suffix in ((pdf, ".pdf"), (source, ".pgf")):
            with atomic(out.with_suffix(suffix)) as temporary:
                temporary.write_bytes(made.read_bytes())


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(draw))
