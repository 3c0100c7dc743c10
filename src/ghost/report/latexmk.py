"""Run LaTeX quietly in a scratch folder. A failure is one line with TeX's own first error."""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pypdf

from ghost.errors import GhostError
from ghost.report.tex import available

# What pypdf raises on bytes that are no PDF, or one that lies about itself.
UNREADABLE = (
    pypdf.errors.PyPdfError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
LOST = re.compile(r"Warning: (?:Reference|Citation) `(.*?)' .*undefined|\(dest\): name\{(.*?)\} has been referenced")


def compile_pdf(main: Path, scratch: Path, *, search: Iterable[Path] = ()) -> Path:
    """Run latexmk on `main` and return the PDF in `scratch`; `search` are the folders of the files that it inputs.

    They come before the folder of `main`, and none is searched below itself: files of another build stay unseen.
    No shell escape, no personal latexmkrc, no clock: the same sources give the same bytes.
    """
    if not available():
        raise GhostError(
            "no LaTeX on this machine; get it with: apt-get install --no-install-recommends texlive-latex-extra"
            " texlive-publishers texlive-science texlive-pictures latexmk"
        )
    folders = [_short(folder, scratch / f"search{number}") for number, folder in enumerate((*search, main.parent))]
    places = "".join(f"{folder}:" for folder in (".", *folders))
    environment = {
        **os.environ,
        "TEXINPUTS": places,
        "BIBINPUTS": places,
        "SOURCE_DATE_EPOCH": "0",
        "max_print_line": "1000",
    }
    command = ["latexmk", "-norc", "-pdf", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
    command += ["-outdir=.", f"{folders[-1]}/{main.name}"]
    # S603: latexmk with options of ours, without a shell and without shell escape
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, check=False)  # noqa: S603
    pdf = scratch / f"{main.stem}.pdf"
    if done.returncode or not pdf.exists():
        log = scratch / f"{main.stem}.log"
        text = log.read_text(errors="replace") if log.exists() else done.stdout.decode(errors="replace")
        said = re.search(r"^! (.*(?:\n(?!l\.).*){0,12}\nl\.\d+.*)$", text, re.MULTILINE)
        complaint = " ".join(said[1].split()) if said else " ".join(text.split())[-300:]
        raise GhostError(f"LaTeX failed on {main}: {complaint}")
    return pdf


def _short(folder: Path, link: Path) -> str:
    """A name for a folder in TeX's search path, which takes no colon, dollar or brace of a longer one."""
    link.unlink(missing_ok=True)
    link.symlink_to(folder.resolve())
    return link.name


def lost_links(pdf: Path) -> list[str]:
    """What a PDF that was just compiled refers to in vain. TeX only warns, and leads such a link to the first page."""
    found = LOST.finditer(pdf.with_suffix(".log").read_text(errors="replace"))
    return [match[1] or match[2] for match in found]


def cells_of(pdf: Path) -> str:
    """The sha256 of the cells that a PDF of ours was made from, as `ghost.steps.macros` wrote it."""
    try:
        information = pypdf.PdfReader(pdf).metadata
    except UNREADABLE as error:
        raise GhostError(f"{pdf} is not a PDF that can be read: {' '.join(str(error).split())}") from None
    return str(information.get("/GhostCells", "unknown")) if information else "unknown"
