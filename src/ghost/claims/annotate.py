"""`ghost annotate`: the article as printed, with a mark at every number of the ledger.

A mark has the colour and the symbol of the verdict. The number links to the entry of its claim in an appendix, and the
symbol opens a note with our value. Entries link back to the places and on to the audit page. A first page has the
counts, the inconsistencies, and what is missing. The PDF is read back before it is kept: a mark that is not in it is
an error.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pypdf

from ghost.claims.article import Located, keys, read_article, value_of
from ghost.claims.ledger import Ledger, numbers, read_ledger
from ghost.claims.marks import Mark, Marked, place_marks
from ghost.claims.notes import Notes
from ghost.claims.pdflatex import Missing, Typeset, around_document, find_missing, lay_out, made_pdf, typeset
from ghost.claims.report import judge
from ghost.claims.tex import Article, Edit
from ghost.claims.verdicts import VERDICTS
from ghost.errors import GhostError
from ghost.files import atomic
from ghost.report.appendix import anchor
from ghost.report.cells import read_cells
from ghost.report.latexmk import UNREADABLE
from ghost.study.builds import Config

HERE = Path(__file__).parent


def annotate(config: Config, source: Path, ledger_path: Path, out: Path) -> str:
    """Write the annotated article and say what it has."""
    if out.suffix != ".pdf" or (out.exists() and not _is_ours(out)):
        raise GhostError(f"{out} is not a name for the annotated PDF: it must end with .pdf, and not be another file's")
    article, ledger = Article(source), read_ledger(ledger_path)
    located = {found.printed.key: found for found in read_article(article, ledger.non_results)}
    lost = check_places(ledger, located, source)
    path = config.data / "cells.jsonl"
    cells = read_cells(path) if path.exists() else {}
    verdicts = judge(config, ledger)
    every = [
        (key, claim, at)
        for claim in ledger.claims.values()
        for at in claim.at
        if not any(key in lost for key in keys(at))
        for key in keys(at)
    ]
    marks = [Mark(index, located[key]) for index, (key, _, _) in enumerate(every, 1)]
    missing = find_missing(article)
    page = quote(os.path.relpath(config.data / "audit.html", out.parent))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        placed = place_marks(article, marks)
        notes = Notes(ledger, verdicts, cells, every, page, config.scale)
        placed, done = _compile(article, marks, placed, missing, notes, lost, folder)
        expected = Counter(mark.at.printed.key for mark in marks) - Counter(m.at.printed.key for m, _ in placed.refused)
        found, wanted = marks_of(made_pdf(done)), Counter(map(anchor, expected.elements()))
        if found != wanted:
            wrong = sorted((found - wanted) + (wanted - found))
            raise GhostError(f"the annotated PDF lacks or doubles {len(wrong)} marks, such as that at {wrong[0]}")
        with atomic(out) as temporary:
            temporary.write_bytes(done.pdf.read_bytes())
        pages = len(pypdf.PdfReader(done.pdf).pages)
    counts = Counter(verdict.verdict for verdict in verdicts)
    said = [f"{out}: {expected.total()} numbers of {len(ledger.claims)} claims are marked, {pages} pages"]
    said.append(", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]))
    said += [f"missing: {line}" for line in (*missing.lines, *done.lines)]
    said += [f"TeX, {file}, line {line}: {text}" for file, line, text in done.errors[:5]]
    said += [f"not marked: {key}: {reason}" for key, reason in _unmarked(placed, lost)]
    return "\n".join(said)


def check_places(ledger: Ledger, located: Mapping[str, Located], source: Path) -> dict[str, str]:
    """The places of the ledger where the article prints another number, or none, with the reason."""
    lost: dict[str, str] = {}
    total = 0
    for claim in ledger.claims.values():
        for at, text in claim.at.items():
            stated = [abs(number.value) for number in numbers(text)]
            total += len(keys(at))
            for key, value in zip(keys(at), [*stated, *[float("nan")] * len(keys(at))], strict=False):
                if key not in located:
                    lost[key] = f"{claim.id} says {text}; the article has no number there"
                elif value_of(located[key].printed.printed) != value:
                    lost[key] = f"{claim.id} says {text}; the article prints {located[key].printed.printed}"
    if lost and len(lost) > total / 2:
        raise GhostError(
            f"the ledger is not of {source}: {len(lost)} of {total} numbers differ, such as {next(iter(lost.values()))}"
        )
    return lost


def _unmarked(placed: Marked, lost: Mapping[str, str]) -> list[tuple[str, str]]:
    return [*((mark.at.printed.key, reason) for mark, reason in placed.refused), *lost.items()]


def _compile(
    article: Article,
    marks: Sequence[Mark],
    placed: Marked,
    missing: Missing,
    notes: Notes,
    lost: Mapping[str, str],
    folder: Path,
) -> tuple[Marked, Typeset]:
    """Typeset the marked article. Where TeX stumbles over a line with marks, and not without, the line has none."""

    def make(placed: Marked, said: Sequence[str]) -> Typeset:
        ends = around_document(article, r"\input{ghost_marks}", r"\ghostfront{}", r"\ghostappendix{}")
        edits: dict[str, list[Edit]] = {"": ends}
        for some in (missing.edits, placed.edits):
            for name, more in some.items():
                edits[name] = [*edits.get(name, []), *more]
        texts = {
            **article.edited(edits),
            **missing.files,
            "ghost_marks.tex": (HERE / "marks.tex").read_text(encoding="utf-8"),
            "ghost_places.tex": notes.places(),
            "ghost_front.tex": notes.front(said, _unmarked(placed, lost)),
            "ghost_entries.tex": notes.entries(),
        }
        lay_out(article, texts, folder)
        return typeset(folder, article.main)

    done = make(placed, missing.lines)
    stumbled = _lines_of(article, done) & {(mark.at.file, mark.at.printed.line) for mark in marks}
    if stumbled:
        without = place_marks(article, [m for m in marks if (m.at.file, m.at.printed.line) not in stumbled])
        freed = stumbled - _lines_of(article, make(without, missing.lines))
        kept = [mark for mark in marks if (mark.at.file, mark.at.printed.line) not in freed]
        refused = [(m, "TeX refuses a mark on this line") for m in marks if (m.at.file, m.at.printed.line) in freed]
        placed = place_marks(article, kept)
        placed = Marked(placed.edits, [*placed.refused, *refused])
        done = make(placed, missing.lines)
    if done.lines:  # citations and references that stayed open are known only now
        done = make(placed, [*missing.lines, *done.lines])
    return placed, done


def _lines_of(article: Article, done: Typeset) -> set[tuple[str, str]]:
    """The lines of the article that TeX found errors on, as files and names of lines."""
    found = set()
    for file, line, _ in done.errors:
        name = file.removeprefix("./")
        inner = "" if name == article.main else name
        found.add((inner, f"{inner}:{line}" if inner else str(line)))
    return found


def _is_ours(pdf: Path) -> bool:
    """Whether a PDF is an annotated article, which may be written anew. A figure of the article is not."""
    try:
        return bool(marks_of(pdf))
    except UNREADABLE:
        return False


def marks_of(pdf: Path) -> Counter[str]:
    """The places of the marks in a PDF, read back from its annotations."""
    found: Counter[str] = Counter()
    for page in pypdf.PdfReader(pdf).pages:
        for reference in page.get("/Annots") or ():
            annotation = reference.get_object()
            if "/GhostAt" in annotation:
                found[str(annotation["/GhostAt"])] += 1
    return found
