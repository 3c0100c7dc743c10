"""`ghost annotate`: the article as printed, with a mark at every number of the ledger.

A mark has the colour and the symbol of the verdict. The number links to the entry of its claim in an appendix, and the
symbol opens a note with our value. Entries link back to the places and on to the audit page. A first page has the counts,
the inconsistencies, and what is missing. The PDF is read back before it is kept: a mark that is not in it is an error.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pypdf

from ghost.claims.article import Located, keys, read_article, value_of
from ghost.claims.ledger import Claim, Ledger, numbers, read_ledger
from ghost.claims.marks import Mark, Marked, place_marks
from ghost.claims.pdflatex import Missing, Typeset, around_document, find_missing, lay_out, typeset
from ghost.claims.report import judge
from ghost.claims.tex import Article, Edit
from ghost.claims.verdicts import VERDICTS, Cells, Verdict
from ghost.errors import GhostError
from ghost.files import atomic
from ghost.report.appendix import anchor
from ghost.report.cells import read_cells, stamp
from ghost.report.escaping import escape
from ghost.study.builds import Config

HERE = Path(__file__).parent
_DISC = "3.2 1.7 m 3.2 2.53 2.53 3.2 1.7 3.2 c .87 3.2 .2 2.53 .2 1.7 c .2 .87 .87 .2 1.7 .2 c 2.53 .2 3.2 .87 3.2 1.7 c h"
LOOKS = {  # colour, told apart also by those who see few; the symbol as a drawing of 3.4 by 3.4, told apart without colour
    "identical": ("0 .45 .3", f"{_DISC} f"),
    "equivalent": ("0 .35 .75", f".5 w {_DISC} S"),
    "different": ("0.85 .3 0", ".8 w .3 .3 m 3.1 3.1 l .3 3.1 m 3.1 .3 l S"),
    "not enough runs": ("0.6 .42 0", ".5 w .2 .3 m 3.2 .3 l 1.7 3.1 l h S"),
    "not comparable": ("0.5 .2 .55", ".5 w .4 .4 2.6 2.6 re S"),
    "not attempted": ("0.42 .42 .42", "0 1.2 .8 .8 re 1.3 1.2 .8 .8 re 2.6 1.2 .8 .8 re f"),
    "inconsistent": ("0.8 0 .15", "1 w 1.7 3.5 m 1.7 1.3 l S 1.2 -.2 1 .9 re f"),
}
MEANINGS = {
    "identical": "the same to the printed digits",
    "equivalent": "within the margin of the ledger; for a sentence: it holds here too",
    "different": "the runs suffice to say that it differs",
    "not enough runs": "the runs decide neither way",
    "not comparable": "ours rests on a stand-in, a smaller scale or other hardware",
    "not attempted": "there is no cell for it",
    "inconsistent": "other numbers of the article, or its formula, contradict it",
}


def annotate(config: Config, source: Path, ledger_path: Path, out: Path) -> str:
    """Write the annotated article and say what it has."""
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
        made = _compile(article, marks, placed, missing, notes, lost, folder)
        placed, done = made
        expected = {mark.at.printed.key for mark in marks} - {mark.at.printed.key for mark, _ in placed.refused}
        found = marks_of(done.pdf)
        if found != Counter(expected):
            wrong = sorted((found - Counter(expected)) + (Counter(expected) - found))
            raise GhostError(f"the annotated PDF lacks or doubles {len(wrong)} marks, such as that at {wrong[0]}")
        with atomic(out) as temporary:
            temporary.write_bytes(done.pdf.read_bytes())
        pages = len(pypdf.PdfReader(done.pdf).pages)
    counts = Counter(verdict.verdict for verdict in verdicts)
    said = [f"{out}: {len(expected)} numbers of {len(ledger.claims)} claims are marked, {pages} pages"]
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
        raise GhostError(f"the ledger is not of {source}: {len(lost)} of {total} numbers differ, such as {next(iter(lost.values()))}")
    return lost


def _unmarked(placed: Marked, lost: Mapping[str, str]) -> list[tuple[str, str]]:
    return [*((mark.at.printed.key, reason) for mark, reason in placed.refused), *lost.items()]


class Notes:
    """What the marks, the first page and the appendix say, in LaTeX."""

    def __init__(
        self, ledger: Ledger, verdicts: Sequence[Verdict], cells: Cells, every: Sequence[tuple[str, Claim, str]], page: str, scale: str
    ) -> None:
        self.ledger, self.verdicts, self.cells, self.every, self.page, self.scale = ledger, verdicts, cells, every, page, scale
        self.by_claim = {verdict.claim: verdict for verdict in verdicts}

    def cell(self, identity: str) -> Mapping[str, Any] | None:
        claim = self.ledger.claims.get(identity)
        return next((self.cells[each] for each in claim.cell if each in self.cells), None) if claim else None

    def ours(self, verdict: Verdict) -> str:
        """Our value with its interval."""
        cell, shown = self.cell(verdict.claim), verdict.ours
        if cell is None or not shown:
            return shown
        if cell["interval"] and "[" not in shown:
            shown += ", 95 % interval [{:.4g}, {:.4g}]".format(*cell["interval"])
        return f"{shown}, n = {cell['n']}"

    def places(self) -> str:
        r"""ghost_places.tex: the look of each verdict, and what each mark says."""
        lines = []
        for verdict, (colour, shape) in LOOKS.items():
            lines.append(rf"\ghostverdict{{{verdict}}}{{{colour} rg {colour} RG}}{{{shape}}}")
        for index, (key, claim, at) in enumerate(self.every, 1):
            verdict = self.by_claim[claim.id]
            note = _hexadecimal(self.note(claim, verdict)) if key == keys(at)[-1] else ""
            lines.append(rf"\ghostdefine{{{index}}}{{{key}}}{{{anchor(claim.id)}}}{{{verdict.verdict}}}{{{note}}}")
        return "\n".join([*lines, ""])

    def note(self, claim: Claim, verdict: Verdict) -> str:
        ours = self.ours(verdict)
        said = [f"{claim.id}: {verdict.verdict}", f"printed: {verdict.published}", f"ours: {ours}" if ours else "no value of ours"]
        return "\n".join([*said, verdict.reason])

    def front(self, missing: Sequence[str], unmarked: Sequence[tuple[str, str]]) -> str:
        """ghost_front.tex: counts, inconsistencies, what is missing."""
        claims = Counter(self.by_claim[claim].verdict for claim in self.ledger.claims)
        sentences = Counter(v.verdict for v in self.verdicts if v.claim not in self.ledger.claims)
        places = Counter(self.by_claim[claim.id].verdict for _, claim, _ in self.every)
        lines = [r"{\Large\bfseries The numbers of this article, compared\par}\medskip"]
        lines.append(
            f"The article follows as it is printed. {len(self.every) - len(unmarked)} numbers carry the verdict on their"
            f" claim, from the build {escape(self.scale)}. A number links to its entry in the appendix, and the symbol"
            r" above it opens a note with our value.\par\medskip"
        )
        lines.append(r"\begin{tabular}{@{}llrrr@{}}verdict & meaning & claims & numbers & sentences\\\hline")
        for verdict in VERDICTS:
            name = rf"\ghostlegend{{{verdict}}}\ghostcoloured{{{verdict}}}{{{verdict}}}"
            counts = (claims[verdict], places[verdict], sentences[verdict])
            lines.append(" & ".join([name, MEANINGS[verdict], *(str(n or "--") for n in counts)]) + r"\\")
        totals = (claims.total(), places.total(), sentences.total())
        lines.append(" & ".join([r"\hline total", "", *map(str, totals)]) + r"\\\end{tabular}\par\medskip")
        said = stamp(self.cells, self.scale) if self.cells else "There are no cells of this build yet"
        lines.append(rf"{escape(said)}.\par" if said else "")
        wrong = [v for v in self.verdicts if v.verdict == "inconsistent"]
        lines += _part("Inconsistencies", [f"{self._linked(v)} {_text(v.published)}: {_text(v.reason)}" for v in wrong])
        lines += _part("Missing here", [_text(line) for line in missing])
        lines += _part("Not marked", [f"{_text(key)}: {_text(reason)}" for key, reason in unmarked])
        return "\n".join([*lines, ""])

    def entries(self) -> str:
        """ghost_entries.tex: an entry for each claim and sentence."""
        lines = [r"{\Large\bfseries Claims\par}\footnotesize"]
        marked: dict[str, list[str]] = {}
        for key, claim, at in self.every:
            if key == keys(at)[0]:
                marked.setdefault(claim.id, []).append(key)
        for verdict in self.verdicts:
            name = rf"{{\bfseries {_text(verdict.claim)}}}"
            head = rf"\ghosttarget{{{anchor(verdict.claim)}}}\ghostlegend{{{verdict.verdict}}}{name} "
            said = [rf"\ghostcoloured{{{verdict.verdict}}}{{{verdict.verdict}}}.", f"Printed: {_text(verdict.published)}"]
            at = [rf"\ghostlinked{{at.{key}}}{{{_text(key.rpartition('.')[0])}}}" for key in marked.get(verdict.claim, [])]
            if verdict.claim not in self.ledger.claims:
                at = [str(self.ledger.relations[verdict.claim.removeprefix("relation:")].line)]
            said[-1] += f" ({'line' if len(at) == 1 else 'lines'} {', '.join(at)})." if at else "."
            ours, cell = self.ours(verdict), self.cell(verdict.claim)
            if ours:
                said.append(f"Ours: {_text(ours)}.")
            said.append(f"{_text(verdict.reason[0].upper() + verdict.reason[1:])}." if verdict.reason else "")
            if cell is not None:
                runs = ", ".join(run[:8] for run in cell["runs"]) or "none"
                web = rf"\ghostweb{{{_url(self.page, cell['id'])}}}{{{_text(cell['id'])}}}"
                said.append(rf"Cell {web}, {_text(cell['estimator'])}, runs {_text(runs)}.")
            lines.append(head + " ".join(filter(None, said)) + r"\par")
        return "\n".join([*lines, ""])

    def _linked(self, verdict: Verdict) -> str:
        return rf"\ghostlinked{{{anchor(verdict.claim)}}}{{{_text(verdict.claim)}}}"


def _part(title: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    return [rf"\medskip{{\bfseries {title}\par}}", *(rf"\hangindent1em\hangafter1 {entry}\par" for entry in entries)]


def _compile(
    article: Article, marks: Sequence[Mark], placed: Marked, missing: Missing, notes: Notes, lost: Mapping[str, str], folder: Path
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


def marks_of(pdf: Path) -> Counter[str]:
    """The places of the marks in a PDF, read back from its annotations."""
    found: Counter[str] = Counter()
    for page in pypdf.PdfReader(pdf).pages:
        for reference in page.get("/Annots") or ():
            annotation = reference.get_object()
            if "/GhostAt" in annotation:
                found[str(annotation["/GhostAt"])] += 1
    return found


def _text(text: str) -> str:
    """Any text in LaTeX, with places where a long name may break."""
    made = escape(text.replace('"', "''"))
    return made.replace("/", r"/\allowbreak{}").replace(r"\_", r"\_\allowbreak{}")


def _hexadecimal(text: str) -> str:
    """A string of PDF that may hold any character."""
    return f"<FEFF{text.encode('utf-16-be').hex().upper()}>"


def _url(page: str, identity: str) -> str:
    """The audit page at a cell, as TeX tokens that are plain characters."""
    signs = {"%": r"\csname @percentchar\endcsname ", "#": r"\string#"}
    return "".join(signs.get(c, c if c.isalnum() else rf"\string{c}") for c in f"{page}#{anchor(identity)}")
