"""The PDF: it was made from the cells of this build, and prints them where its links are."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdf
import pypdfium2

from ghost.audit.checks import Problem
from ghost.audit.checks.report import Report
from ghost.errors import GhostError
from ghost.report.appendix import anchor
from ghost.report.cells import cell_lines
from ghost.report.latexmk import cells_of
from ghost.report.tex import available

MARGIN = 0.5  # points: less than the margin that TeX leaves around a link
# What the libraries raise on bytes that are no PDF, or one that lies about itself.
UNREADABLE = (
    *(pypdf.errors.PyPdfError, pypdfium2.PdfiumError, ArithmeticError, AttributeError, LookupError, RecursionError),
    *(TypeError, ValueError),
)


def check_pdf(report: Report) -> Iterator[Problem]:
    path = report.config.pdf
    if not path.exists():
        if available():
            yield Problem("pdf", str(path), "is missing", path)
        return
    here = hashlib.sha256(cell_lines(report.cells.values()).encode()).hexdigest()
    if (made_from := cells_of(path)) != here:
        says = f"is from another build: made from cells {made_from[:8]}, here is {here[:8]}"
        yield Problem("pdf", str(path), says, path)
    try:
        yield from _printed(path, {anchor(identity): cell for identity, cell in report.cells.items()})
    except UNREADABLE as error:
        raise GhostError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def _printed(path: Path, cells: dict[str, Any]) -> Iterator[Problem]:
    """Links that lead nowhere, and numbers that are not those of their cells."""
    reader = pypdf.PdfReader(path)
    names, document = set(reader.named_destinations), pypdfium2.PdfDocument(path)
    for number, page in enumerate(reader.pages):
        text, where = document[number].get_textpage(), f"{path}, page {number + 1}"
        for target, printed in _links(page, text):
            if target not in names:
                yield Problem("pdf", where, f"a link leads nowhere: {target}", path)
            cell = cells.get(target.removeprefix("prov:"))
            if cell and target.startswith("prov:") and not re.fullmatch(_as_printed(cell), printed):
                said = f"prints {printed!r} where the cell {cell['id']} has {cell['shown']!r}"
                yield Problem("pdf", where, said, path)


def _links(page: pypdf.PageObject, text: pypdfium2.PdfTextPage) -> list[tuple[str, str]]:
    """The targets of a page's links, and the text under each. A link that is broken over lines counts once."""
    characters = [(*text.get_charbox(index), index) for index in range(text.count_chars())]
    found: list[tuple[str, str]] = []
    for annotation in page.get("/Annots", []):
        entry = annotation.get_object()
        action = entry.get("/A", {})
        if action.get("/S") != "/GoTo":
            continue
        left, bottom, right, top = map(float, entry["/Rect"])
        inside = [
            index
            for x0, y0, x1, y1, index in characters
            if left + MARGIN < (x0 + x1) / 2 < right - MARGIN and bottom < (y0 + y1) / 2 < top
        ]
        printed = _plain("".join(text.get_text_range(index, 1) for index in inside))
        target = str(action["/D"])
        if found and found[-1][0] == target:
            found[-1] = (target, found[-1][1] + printed)
        else:
            found.append((target, printed))
    return found


def _as_printed(cell: dict[str, Any]) -> str:
    """A pattern for a cell's text in the PDF: with its unit in prose, without it in a table, or the link [runs]."""
    shown = _plain(re.sub(r"e([-+])0*(\d+)", lambda match: f"×10{match[1].strip('+')}{match[2]}", cell["shown"]))
    value, unit = re.escape(shown), re.escape(_plain(cell["unit"]))
    return rf"(?:{value}(?:{unit})?|\[runs\])+"


def _plain(text: str) -> str:
    return re.sub(r"[\s\x00-\x1f]", "", text.replace("−", "-").replace("–", "-").replace("·", "×"))
