"""The tables in an article's LaTeX: columns, rows and entries of each tabular, with their places in the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ghost.claims.tex import File

_OPEN = re.compile(r"\\begin\s*\{(tabular\*?|tabularx|tabulary|longtable|array)\}")
_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\\\|\\.|[{}&]", re.DOTALL)
_SPEC = re.compile(r"[@!><]\s*|\*\s*|[A-Za-z]")
_RULES = re.compile(
    r"(?:\s|\\(?:toprule|midrule|bottomrule|hline|addlinespace|noalign|rowcolor)(?![A-Za-z])(?:\[[^\]]*\]|\{[^{}]*\})*"
    r"|\\(?:cmidrule|cline)(?:\([a-z]*\))?(?:\[[^\]]*\])?\{[^{}]*\}|\\\\(?:\[[^\]]*\])?|%)*"
)
_SPAN = re.compile(r"\s*\\multicolumn\s*\{(\d{1,2})\}")


@dataclass(frozen=True)
class Entry:
    """One entry: its columns, counted from 0, and its text in the file, without the blanks around it."""

    column: int
    columns: int
    start: int
    end: int


@dataclass(frozen=True)
class Tabular:
    start: int
    end: int  # after \end{...}
    spec: tuple[int, int]  # the column specification, without its braces
    columns: tuple[str, ...]  # such as l, S[table-format=1.3], p
    rows: tuple[tuple[Entry, ...], ...]

    def entry(self, offset: int) -> tuple[int, Entry] | None:
        """The row and the entry that an offset lies in."""
        for number, row in enumerate(self.rows):
            for entry in row:
                if entry.start <= offset < entry.end:
                    return number, entry
        return None


def tabulars(file: File, start: int = 0, end: int | None = None) -> list[Tabular]:
    """The tabulars that begin in a part of a file, those inside of others too."""
    found = []
    for match in _OPEN.finditer(file.printed, start, len(file.printed) if end is None else end):
        position = match.end()
        for _ in range(1 if match[1] in ("tabular", "array", "longtable") else 2):  # the width, then the columns
            position = _after_options(file.printed, position)
            group = (position, file.groups.get(position, -1))
            position = group[1] + 1
        if group[1] >= 0:
            rows, last = _rows(file, position)
            spec = (group[0] + 1, group[1])
            found.append(Tabular(match.start(), last, spec, tuple(_columns(file.text[slice(*spec)])), rows))
    return found


def _after_options(text: str, position: int) -> int:
    found = re.compile(r"\s*(?:\[[^\]]*\]\s*)?").match(text, position)
    return found.end() if found else position


def _columns(spec: str, depth: int = 0) -> Iterator[str]:
    """The columns of a specification; * repeats, and what @ ! > < insert is no column."""
    position = 0
    while match := _SPEC.search(spec, position):
        position = match.end()
        sign = match[0].strip()
        if sign == "*":
            times, position = _argument(spec, position)
            inner, position = _argument(spec, position)
            if times.strip().isdigit() and depth < 4:
                yield from [each for _ in range(min(int(times), 50)) for each in _columns(inner, depth + 1)]
        elif sign in "@!><":
            _, position = _argument(spec, position)
        else:
            option = re.compile(r"\s*\[[^\]]*\]").match(spec, position)
            sign, position = (sign + option[0].strip(), option.end()) if option else (sign, position)
            while spec[position : position + 1] == "{":
                _, position = _argument(spec, position)
            yield sign


def _argument(text: str, position: int) -> tuple[str, int]:
    """The group in braces at a position, or the next sign."""
    while text[position : position + 1].isspace():
        position += 1
    depth = 0
    for end in range(position, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            whole = text[position : end + 1]
            return (whole[1:-1] if whole.startswith("{") else whole), end + 1
    return "", len(text)


def _rows(file: File, start: int) -> tuple[tuple[tuple[Entry, ...], ...], int]:
    """The rows of a tabular's body, and the end of the tabular."""
    text, depth, inside = file.printed, 0, 0
    rows: list[tuple[Entry, ...]] = []
    cuts, row_start = [start], start
    for match in _TOKEN.finditer(text, start):
        sign = match[0]
        if sign.startswith("\\begin"):
            inside += 1
        elif sign.startswith("\\end") and inside:
            inside -= 1
        elif sign in "{}":
            depth += 1 if sign == "{" else -1
        elif depth or inside:
            continue
        elif sign == "&":
            cuts.append(match.end())
        elif sign == "\\\\" or sign.startswith("\\end"):
            rows.append(_row(text, row_start, cuts, match.start()))
            row_start = match.end()
            cuts = [row_start]
            if sign != "\\\\":
                return tuple(row for row in rows if row), match.end()
    return tuple(row for row in rows if row), len(text)


def _row(text: str, start: int, cuts: list[int], end: int) -> tuple[Entry, ...]:
    rules = _RULES.match(text, start)
    cuts[0] = rules.end() if rules else start
    entries, column = [], 0
    for first, last in zip(cuts, [*(cut - 1 for cut in cuts[1:]), end], strict=True):
        piece = text[first:last]
        span = _SPAN.match(piece)
        width = int(span[1]) if span else 1
        stripped = first + len(piece) - len(piece.lstrip())
        entries.append(Entry(column, width, stripped, max(stripped, first + len(piece.rstrip()))))
        column += width
    return tuple(entries) if len(entries) > 1 or entries[0].end > entries[0].start else ()


def words(text: str) -> str:
    """What a reader sees of a piece of LaTeX, as plain words."""
    text = re.sub(r"\\multicolumn\s*\{\d+\}\s*\{[^{}]*\}|\\multirow\s*\{[^{}]*\}\s*\{[^{}]*\}", " ", text)
    text = re.sub(r"\\(?:cite[a-z]*|label|ref|eqref)\s*\{[^{}]*\}", " ", text)
    text = re.sub(r"\\([_%&#$])", r"\1", text)
    text = re.sub(r"\\[A-Za-z]+\*?|\\.|[{}$~]", " ", text)
    return " ".join(text.split())
