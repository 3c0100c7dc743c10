"""The PDFs: they were made from the cells of this build, print them where their links are, and no link is dead.

A number of the report links to its entry in the supplement, and the entry links to the audit page. The text under each
of these links is read back. An entry is also there for every cell.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pypdf
import pypdfium2

from ghost.audit.checks import Problem, attempt
from ghost.audit.checks.report import Report
from ghost.errors import GhostError
from ghost.report.appendix import anchor
from ghost.report.cells import cell_lines
from ghost.report.latexmk import UNREADABLE, cells_of
from ghost.report.tex import available

MARGIN = 0.5  # points: less than the margin that TeX leaves around a link
PROVENANCE = "prov:"


@dataclass(frozen=True)
class Link:
    page: int  # from 1
    file: str  # the PDF that it leads to; empty for an address
    target: str  # a named place in this PDF, empty for its beginning; or the address
    printed: str  # the text under it, without spaces


@dataclass(frozen=True)
class Document:
    names: frozenset[str]  # the places that links can lead to
    links: list[Link]


def check_pdf(report: Report) -> Iterator[Problem]:
    documents: dict[Path, Document] = {}
    for path in report.config.pdfs:
        yield from attempt("pdf", path, partial(_read, path, report, documents), path)
    cells = {anchor(identity): cell for identity, cell in report.cells.items()}
    names = {path.name: documents[path].names if path in documents else None for path in report.config.pdfs}
    for path, document in documents.items():
        for link in document.links:
            for says in (_dead(link, names), _unlike(link, cells, report.config.page)):
                if says:
                    yield Problem("pdf", f"{path}, page {link.page}", says, path)
    if (path := report.config.supplement) in documents:
        lacking = [cell["id"] for name, cell in cells.items() if PROVENANCE + name not in documents[path].names]
        if lacking:
            yield Problem("pdf", str(path), f"lacks {len(lacking)} cells, {lacking[0]} among them", path)


def _read(path: Path, report: Report, documents: dict[Path, Document]) -> Iterator[Problem]:
    """Whether a PDF is of this build; its links are added to `documents`."""
    if not path.exists():
        if available():
            yield Problem("pdf", str(path), "is missing", path)
        return
    here = hashlib.sha256(cell_lines(report.cells.values()).encode()).hexdigest()
    if (made_from := cells_of(path)) != here:
        says = f"is from another build: made from cells {made_from[:8]}, here is {here[:8]}"
        yield Problem("pdf", str(path), says, path)
    try:
        documents[path] = read_links(path)
    except (*UNREADABLE, pypdfium2.PdfiumError) as error:
        raise GhostError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def _dead(link: Link, names: Mapping[str, frozenset[str] | None]) -> str:
    """What is wrong with the place that a link leads to; a PDF without names could not be read, and was named."""
    if link.file and link.file not in names:
        return f"a link leads to a file that is not of this build: {link.file}"
    places = names.get(link.file)
    is_dead = places is not None and link.target and link.target not in places
    return f"a link leads nowhere: {link.target}" if is_dead else ""


def _unlike(link: Link, cells: Mapping[str, Any], page: str) -> str:
    """What is wrong with the text of a link to a cell, in the supplement or on the audit page."""
    head = PROVENANCE if link.file else f"{page}#"
    if not link.target.startswith(head):
        return ""
    cell = cells.get(link.target.removeprefix(head))
    if cell is None:  # in the supplement it may be the head of a figure's or table's entries
        return "" if link.file else f"a link leads nowhere: {link.target}"
    if re.fullmatch(_as_printed(cell, in_entry=not link.file), link.printed):
        return ""
    return f"prints {link.printed!r} where the cell {cell['id']} has {cell['shown']!r}"


def read_links(path: Path) -> Document:
    """The named places of a PDF and its links. A link that is broken over lines or pages counts once."""
    reader, drawn = pypdf.PdfReader(path), pypdfium2.PdfDocument(path)
    found: list[Link] = []
    for number, page in enumerate(reader.pages, 1):
        text = drawn[number - 1].get_textpage()
        boxes = np.array([text.get_charbox(index) for index in range(text.count_chars())]).reshape(-1, 4)
        x, y = boxes[:, 0::2].mean(axis=1), boxes[:, 1::2].mean(axis=1)  # the middle of each character
        for annotation in page.get("/Annots", []):
            entry = annotation.get_object()
            file, target = _target(entry.get("/A", {}), path.name)
            if not file and not target:
                continue
            left, bottom, right, top = map(float, entry["/Rect"])
            inside = (left + MARGIN < x) & (x < right - MARGIN) & (bottom < y) & (y < top)
            printed = _plain("".join(text.get_text_range(int(index), 1) for index in np.flatnonzero(inside)))
            if found and (found[-1].file, found[-1].target) == (file, target):
                found[-1] = Link(found[-1].page, file, target, found[-1].printed + printed)
            else:
                found.append(Link(number, file, target, printed))
    return Document(frozenset(reader.named_destinations), found)


def _target(action: Mapping[str, Any], own: str) -> tuple[str, str]:
    """The PDF and the place in it that an action leads to, or no PDF and an address; neither for another action."""
    kind = action.get("/S")
    if kind == "/URI":
        return "", str(action["/URI"])
    if kind not in ("/GoTo", "/GoToR"):
        return "", ""
    place = action["/D"]
    return own if kind == "/GoTo" else str(action["/F"]), "" if isinstance(place, list) else str(place)


def _as_printed(cell: Mapping[str, Any], *, in_entry: bool) -> str:
    """A pattern for a cell's text in a PDF: with its unit in prose, without it in a table, or the link [runs]. Its
    entry in the supplement has its name in front."""
    shown = _plain(re.sub(r"e([-+])0*(\d+)", lambda match: f"×10{match[1].strip('+')}{match[2]}", cell["shown"]))
    value, unit = re.escape(shown), re.escape(_plain(cell["unit"]))
    if in_entry:
        return rf"{re.escape(_plain(cell['id'].partition('/')[2]))}{value}(?:{unit})?"
    return rf"(?:{value}(?:{unit})?|\[runs\])+"


def _plain(text: str) -> str:
    return re.sub(r"[\s\x00-\x1f]", "", text.replace("−", "-").replace("–", "-").replace("·", "×"))
