"""One table as a PDF: `python -m ghost.steps.typeset_table --table tab_x.tex --cells tab_x.jsonl ... --out tab_x.pdf`.

Below it stands what its cells rest on, as on every page of the report, and the command that shows the runs behind them.
"""

import tempfile
from pathlib import Path

import tyro

from ghost.errors import exit_on_error
from ghost.files import atomic, sha256
from ghost.report.cells import read_cells
from ghost.report.escaping import escape
from ghost.report.latexmk import compile_pdf
from ghost.steps.macros import stamp

DOCUMENT = r"""\documentclass[border=6pt,varwidth=100cm]{standalone}
\usepackage{ghost}
\DeclareRobustCommand{\ghostlink}[2]{#2}%% there is no supplement to lead to
\pdfinfo{/GhostCells (%(sha256)s)}
\begin{document}
\newsavebox{\tablebox}\sbox{\tablebox}{\input{%(table)s}}
\begin{minipage}{\wd\tablebox}
\usebox{\tablebox}\par\medskip\footnotesize\raggedright
\texttt{ghost audit %(artefact)s -{}-scale %(scale)s} shows the runs behind each number. %(said)s
\end{minipage}
\end{document}
"""


def typeset_table(artefact: str, table: Path, cells: Path, style: Path, scale: str, out: Path) -> None:
    """Typeset one table.

    Args:
        artefact: its id, such as tab:libero10.
        table: the tabular, as `ghost.steps.tabulate` writes it.
        cells: its cells.
        style: the report's ghost.sty.
        scale: the build.
        out: the PDF to write.
    """
    said = stamp(read_cells(cells), scale)
    texts = {"artefact": escape(artefact), "scale": escape(scale), "said": escape(f"{said}." if said else "")}
    with tempfile.TemporaryDirectory() as folder:
        main = Path(folder) / "alone.tex"
        main.write_text(DOCUMENT % {"table": table.name, "sha256": sha256(cells), **texts}, encoding="utf-8")
        pdf = compile_pdf(main, Path(folder), search=(table.parent, style.parent))
        with atomic(out) as temporary:
            temporary.write_bytes(pdf.read_bytes())


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(typeset_table))
