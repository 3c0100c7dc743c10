r"""Where a mark can stand: each number of the ledger is wrapped in \ghostmark at its place in the article's source.

A number is not always a piece of text of its own. In \num{...} or \SI{...}{...} the whole command is wrapped, and in a
column that aligns decimals the whole entry. Behind ^ and _ the mark needs braces. Where TeX would take only a digit of
the number as an argument (\frac12) no mark is possible, and the number is listed with this reason.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ghost.claims.article import Located
from ghost.claims.tabular import Tabular, tabulars
from ghost.claims.tex import Article, Edit, File

_WHOLE = {  # commands that read a number, with how many arguments they have
    **dict.fromkeys(("num", "ang", "ce", "tablenum", "numlist", "numproduct"), 1),
    **dict.fromkeys(("SI", "qty", "numrange", "qtylist", "SIlist"), 2),
    **dict.fromkeys(("SIrange", "qtyrange"), 3),
}
_COMMAND = re.compile(rf"\\({'|'.join(_WHOLE)})\s*(?:\[[^\]]*\]\s*)?(?:\{{[^{{}}]*\}}\s*){{0,2}}$")
_TAKES_ARGUMENTS = re.compile(r"\\(?:[dtc]?frac|[dt]?binom|sqrt|root|mathbf|mathrm|bm|hat|bar|overline|underline)\s*$")
_OPTIONS = re.compile(r"\s*(?:\[[^\]]*\]\s*)?")
_PLAIN = re.compile(r"[-+]?[\d.,]+(?:\s*(?:\\pm|\+-)\s*[\d.,]+|\(\d+\))?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Mark:
    """A mark in the article: its number in marks.tex, and the number of the article that it is at."""

    index: int
    at: Located


@dataclass(frozen=True)
class Marked:
    edits: dict[str, list[Edit]]  # by file
    refused: list[tuple[Mark, str]]  # with the reason


@dataclass(frozen=True)
class Span:
    """What is wrapped for a number, and what stands around it inside the mark."""

    start: int
    end: int
    before: str = ""
    after: str = ""
    read: bool = False  # by a command or a column, so that no other text may stand there


def place_marks(article: Article, marks: Sequence[Mark]) -> Marked:
    """The edits that put the marks into the article."""
    edits: dict[str, list[Edit]] = {}
    refused: list[tuple[Mark, str]] = []
    for name, file in article.files.items():
        tables = tabulars(file)
        wrapped: dict[Span, list[Mark]] = {}
        for mark in (mark for mark in marks if mark.at.file == name):
            span = _span(file, tables, mark.at)
            if isinstance(span, str):
                refused.append((mark, span))
            else:
                wrapped.setdefault(span, []).append(mark)
        edits[name] = [Edit(span.start, span.end, _wrap(article, file, span, found)) for span, found in wrapped.items()]
    return Marked(edits, refused)


def _wrap(article: Article, file: File, span: Span, marks: Iterable[Mark]) -> str:
    source = file.text[span.start : span.end]
    text = f"{span.before}{source}{span.after}"
    for mark in marks:
        text = rf"\ghostmark{{{mark.index}}}{{{text}}}"
    # TeX leaves out the blanks behind a macro's name; behind the mark it would print one
    body = article.macros.get(source)
    eats = file.text[span.end : span.end + 1].isspace() and body is not None and r"\xspace" not in body
    return f"{{{text}}}" + (r"\relax" if eats else "")


def reads_numbers(file: File, tables: Sequence[Tabular], at: Located) -> bool:
    """Whether a command or a column reads the number, so that no other text may stand there."""
    span = _span(file, tables, at)
    return isinstance(span, str) or span.read


def _span(file: File, tables: Sequence[Tabular], at: Located) -> Span | str:
    """What is wrapped; or why no mark is possible."""
    text = file.printed
    for opening, closing in sorted(file.groups.items(), reverse=True):
        if opening < at.start and at.end <= closing:
            command = _COMMAND.search(text, max(0, opening - 200), opening)
            if command:
                return Span(command.start(), _after_arguments(file, command.end(1), _WHOLE[command[1]]), read=True)
    for table in reversed(tables):
        if table.start <= at.start < table.end:
            found = table.entry(at.start)
            if found and found[1].columns == 1 and found[1].column < len(table.columns):
                entry, kind = found[1], table.columns[found[1].column]
                content = text[entry.start : entry.end]
                if kind[0] == "S" and not content.startswith(("{", r"\multicolumn")):
                    aligned = (rf"\tablenum{kind[1:]}{{", "}") if _PLAIN.fullmatch(content) else ("", "")
                    return Span(entry.start, entry.end, *aligned, read=True)
                if kind[0] == "D" and not content.startswith(r"\multicolumn"):
                    return "its column aligns decimals with dcolumn, which reads the entry itself"
            break
    if _TAKES_ARGUMENTS.search(text, max(0, at.start - 30), at.start) and at.end - at.start > 1:
        return "TeX reads only its first digit here, as an argument without braces"
    return Span(at.start, at.end)


def _after_arguments(file: File, position: int, count: int) -> int:
    """The end of a command's arguments."""
    for _ in range(count):
        options = _OPTIONS.match(file.printed, position)
        opening = options.end() if options else position
        position = file.groups.get(opening, position - 1) + 1
    return position
