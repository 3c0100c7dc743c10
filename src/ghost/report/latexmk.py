"""Run LaTeX quietly in a scratch folder. A failure is one line with TeX's own first error."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ghost.errors import GhostError


def available() -> bool:
    return shutil.which("latexmk") is not None and shutil.which("pdflatex") is not None


def compile_pdf(main: Path, scratch: Path, *, search: Iterable[Path] = ()) -> Path:
    """Run latexmk on `main` and return the PDF in `scratch`; `search` are the folders of the files that it inputs.

    No shell escape, no personal latexmkrc, no clock: the same sources give the same bytes.
    """
    if not available():
        raise GhostError(
            "no LaTeX on this machine; get it with: apt-get install --no-install-recommends texlive-latex-extra"
            " texlive-publishers texlive-science texlive-pictures latexmk"
        )
    folders = "".join(f"{folder.resolve()}//:" for folder in (main.parent, *search))
    environment = {
        **os.environ,
        "TEXINPUTS": f".:{folders}",
        "BIBINPUTS": f".:{folders}",
        "SOURCE_DATE_EPOCH": "0",
        "max_print_line": "1000",
    }
    command = ["latexmk", "-norc", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
    command += [f"-outdir={scratch.resolve()}", str(main.resolve())]
    # S603: latexmk with options of ours, without a shell and without shell escape
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, check=False)  # noqa: S603
    pdf = scratch / f"{main.stem}.pdf"
    if done.returncode or not pdf.exists():
        log = scratch / f"{main.stem}.log"
        text = log.read_text(errors="replace") if log.exists() else done.stdout.decode(errors="replace")
        said = re.search(r"^! (.*(?:\n(?!l\.).*){0,6}\nl\.\d+.*)$", text, re.MULTILINE)
        complaint = " ".join(said[1].split()) if said else " ".join(text.split())[-300:]
        raise GhostError(f"LaTeX failed on {main}: {complaint}")
    return pdf
