"""What an annotated article says, in LaTeX: the marks and their notes, the first page, the appendix."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ghost.claims.article import keys
from ghost.claims.ledger import Claim, Ledger
from ghost.claims.verdicts import VERDICTS, Cells, Verdict
from ghost.report.appendix import anchor
from ghost.report.escaping import escape
from ghost.steps.macros import stamp

_DISC = (
    "3.2 1.7 m 3.2 2.53 2.53 3.2 1.7 3.2 c .87 3.2 .2 2.53 .2 1.7 c .2 .87 .87 .2 1.7 .2 c 2.53 .2 3.2 .87 3.2 1.7 c h"
)
LOOKS = {  # a colour, and a symbol of 3.4 by 3.4 points that says the same without colour
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


@dataclass(frozen=True)
class Notes:
    """What the marks, the first page and the appendix say, in LaTeX."""

    ledger: Ledger
    verdicts: Sequence[Verdict]
    cells: Cells
    every: Sequence[tuple[str, Claim, str]]  # each number, its claim and its place in the ledger
    page: str  # the way to the audit page
    scale: str

    @cached_property
    def by_claim(self) -> dict[str, Verdict]:
        return {verdict.claim: verdict for verdict in self.verdicts}

    def cell(self, identity: str) -> Mapping[str, Any] | None:
        claim = self.ledger.claims.get(identity)
        return next((self.cells[each] for each in claim.cell if each in self.cells), None) if claim else None

    def ours(self, verdict: Verdict) -> str:
        """Our value with its interval."""
        cell, shown = self.cell(verdict.claim), verdict.ours
        if cell is None or not shown:
            return shown
        if cell["interval"] and "[" not in shown:
            shown += ", 95 % interval [{:,.6g}, {:,.6g}]".format(*cell["interval"])
        return f"{shown}, n = {cell['n']}"

    def places(self) -> str:
        r"""ghost_places.tex: the look of each verdict, and what each mark says."""
        lines = []
        for name, (colour, shape) in LOOKS.items():
            lines.append(rf"\ghostverdict{{{name}}}{{{colour} rg {colour} RG}}{{{shape}}}")
        for index, (key, claim, at) in enumerate(self.every, 1):
            verdict = self.by_claim[claim.id]
            note = _hexadecimal(self.note(claim, verdict)) if key == keys(at)[-1] else ""
            lines.append(
                rf"\ghostdefine{{{index}}}{{{anchor(key)}}}{{{anchor(claim.id)}}}{{{verdict.verdict}}}{{{note}}}"
            )
        return "\n".join([*lines, ""])

    def note(self, claim: Claim, verdict: Verdict) -> str:
        ours = self.ours(verdict)
        said = [
            f"{claim.id}: {verdict.verdict}",
            f"printed: {verdict.published}",
            f"ours: {ours}" if ours else "no value of ours",
        ]
        return "\n".join([*said, verdict.reason])

    def front(self, missing: Sequence[str], unmarked: Sequence[tuple[str, str]]) -> str:
        """ghost_front.tex: counts, inconsistencies, what is missing."""
        claims = Counter(self.by_claim[claim].verdict for claim in self.ledger.claims)
        sentences = Counter(v.verdict for v in self.verdicts if v.claim not in self.ledger.claims)
        places = Counter(self.by_claim[claim.id].verdict for _, claim, _ in self.every)
        lines = [r"{\Large\bfseries The numbers of this article, compared\par}\medskip"]
        lines.append(
            f"The article follows as it is printed. {len({key for key, _, _ in self.every} - dict(unmarked).keys())}"
            f" numbers carry the verdict on their claim, from the build {escape(self.scale)}. A number links to its"
            r" entry in the appendix, and the symbol above it opens a note with our value.\par\medskip"
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
        lines.append(r"\footnotesize")  # the lists are long, and one page should do
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
            said = [
                rf"\ghostcoloured{{{verdict.verdict}}}{{{verdict.verdict}}}.",
                f"Printed: {_text(verdict.published)}",
            ]
            lines_of = [_place(key) for key in marked.get(verdict.claim, [])]
            if verdict.claim not in self.ledger.claims:
                lines_of = [str(self.ledger.relations[verdict.claim.removeprefix("relation:")].line)]
            said[-1] += f" ({'line' if len(lines_of) == 1 else 'lines'} {', '.join(lines_of)})." if lines_of else "."
            ours, cell = self.ours(verdict), self.cell(verdict.claim)
            if ours:
                said.append(f"Ours: {_text(ours)}.")
            said.append(f"Because: {_text(verdict.reason)}." if verdict.reason else "")
            if cell is not None:
                runs = ", ".join(run[:8] for run in cell["runs"]) or "none"
                web = rf"\ghostweb{{{_url(self.page, cell['id'])}}}{{{_text(cell['id'])}}}"
                said.append(rf"Cell {web}, {_text(cell['estimator'])}, runs {_text(runs)}.")
            lines.append(head + " ".join(filter(None, said)) + r"\par")
        return "\n".join([*lines, ""])

    def _linked(self, verdict: Verdict) -> str:
        return rf"\ghostlinked{{{anchor(verdict.claim)}}}{{{_text(verdict.claim)}}}"


def _place(key: str) -> str:
    """The line of a number, as a link to its mark."""
    return rf"\ghostlinked{{at.{anchor(key)}}}{{{_text(key.rpartition('.')[0])}}}"


def _part(title: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    return [rf"\medskip{{\bfseries {title}\par}}", *(rf"\hangindent1em\hangafter1 {entry}\par" for entry in entries)]


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
