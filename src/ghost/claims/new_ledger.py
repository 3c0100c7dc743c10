"""`ghost ledger`: start a ledger for an article.

Every number of the article becomes a claim, with its context beside it. For a number in a table that has the label of
one of the build's tables, the cell is proposed whose name fits the words of its row and column best. What is left has
no cell: its author names one, or moves the number to the kinds that are no results.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from ghost.claims.article import Located, read_article, value_of
from ghost.claims.ledger import NonResult
from ghost.claims.tabular import Tabular, tabulars, words
from ghost.claims.tex import Article
from ghost.errors import GhostError
from ghost.files import write_text
from ghost.report.cells import read_cells
from ghost.study.builds import Config

KINDS = (NonResult("scripts", "subscripts and superscripts: indices, norms and powers", r"[_^](?:\d|\{[^{}]*\})"),)
HEAD = """# The ledger of {article}, started by `ghost ledger` from the build {scale}.
# Each claim is one number: `at` is where it stands (line.number), the comment shows it there. A proposed `cell` has to
# be checked. Where none is proposed, name one, or excuse the number by a pattern under non_results.
# The fields are explained in src/ghost/claims/ledger.py.

non_results:
{kinds}
# How far apart two averages may lie and still be called equivalent: in percent of the published value, or in points.
margins: {{percent: 10, points: 5}}
# What the article averages over, by the beginning of a claim's id: tab:x: {{kind: retraining, runs: 5}}
noise: {{}}
# What the article says in words, as predicates over claims; numbers that follow from others.
relations: []
derived: []

claims:
"""
_BETWEEN = {
    "±": re.compile(r"\s*\$?\s*\{?\s*(?:\\pm|\+-|±)\s*\}?\s*\$?\s*"),
    "to": re.compile(r"\s*\$?(?:--|–|\s+to\s+)\$?\s*"),
}
_UNIT = re.compile(
    r"(?:\$|\}|\\[,;!\s]|~|\s|\{)*(?:(\\?%|percent\b)|(ms|Hz|pp|[KMB]|s)\b|(\$?\\times|x\b|times\b))", re.DOTALL
)
_SIGN = re.compile(r"(?:(\\approx|\\sim|<|>|\\leq?|\\geq?)|([-+]))\s*\$?\s*$")
_SIGNS = {
    "\\approx": "≈ ",
    "\\sim": "≈ ",
    "<": "< ",
    ">": "> ",
    "\\le": "≤ ",
    "\\leq": "≤ ",
    "\\ge": "≥ ",
    "\\geq": "≥ ",
}
_COMMON = frozenset(["the", "of", "and", "in", "vs", "to", "for", "on", "with", "proposed", "ours", "overall"])
LEAST = 0.7  # of a cell's words must stand in the row, the column or the caption


@dataclass(frozen=True)
class Entry:
    """A claim to be: one number, or two that belong together."""

    found: tuple[Located, ...]
    printed: str
    unit: str
    row: str = ""
    column: str = ""

    @property
    def at(self) -> str:
        first, last = self.found[0].printed, self.found[-1].printed
        return first.key if len(self.found) == 1 else f"{first.key}-{last.number}"


def start_ledger(config: Config, source: Path, out: Path) -> str:
    """Write the ledger and say what it has."""
    if out.exists():
        raise GhostError(f"{out} is there already, and somebody may have worked on it: give another name")
    article = Article(source)
    path = config.data / "cells.jsonl"
    cells = read_cells(path) if path.exists() else {}
    entries = _entries(article)
    kinds = "".join(
        f"  - {{name: {k.name}, reason: {json.dumps(k.reason)}, pattern: {_quoted(k.pattern)}}}\n" for k in KINDS
    )
    lines, place, taken = [HEAD.format(article=article.main, scale=config.scale, kinds=kinds)], "", set[str]()
    proposed = 0
    for entry in entries:
        printed = entry.found[0].printed
        if printed.place != place:
            place = printed.place
            lines.append(f"  # ---- {place}\n")
        cell = propose(place, entry.row, entry.column, cells)
        proposed += bool(cell)
        identity = _unique(_name(entry, cell), taken)
        last = entry.found[-1].printed
        lines.append(f"  # {_one_line(printed.before)}[{entry.printed}]{_one_line(last.after)}\n")
        lines.append(f"  - {_claim(entry, identity, cells.get(cell))}\n")
    write_text(out, "".join(lines) if entries else "".join(lines).replace("\nclaims:\n", "\nclaims: []\n"))
    numbers = sum(len(entry.found) for entry in entries)
    return (
        f"{out}: {numbers} numbers as {len(entries)} claims; a cell is proposed for {proposed},"
        f" {len(entries) - proposed} are to be named"
    )


def _entries(article: Article) -> list[Entry]:
    """The numbers of the article, those with ± or a dash between them as one."""
    found = [each for each in read_article(article, KINDS) if not each.printed.non_result]
    tables = {name: tabulars(file) for name, file in article.files.items()}
    entries: list[Entry] = []
    position = 0
    while position < len(found):
        first = found[position]
        text = article.files[first.file].text
        pair, sign = [first], ""
        if position + 1 < len(found) and found[position + 1].printed.line == first.printed.line:
            between = text[first.end : found[position + 1].start]
            sign = next((name for name, pattern in _BETWEEN.items() if pattern.fullmatch(between)), "")
            pair += [found[position + 1]] if sign else []
        position += len(pair)
        row, column = _words_of(article, tables[first.file], first)
        unit = _UNIT.match(text, pair[-1].end)
        named = ("%" if unit[1] else unit[2] or "times") if unit else ""
        entries.append(Entry(tuple(pair), _printed(text, pair, sign), named, row, column))
    return entries


def _printed(text: str, pair: list[Located], sign: str) -> str:
    """The number as the ledger has it: -0.08, ≈ 2, 170.0 ± 72.7."""
    before = _SIGN.search(text, max(0, pair[0].start - 20), pair[0].start)
    plain = [_plain(each.printed.printed) for each in pair]
    lead = _SIGNS.get(before[1], "") if before and before[1] else before[2] if before and _is_sign(text, before) else ""
    return lead + f" {sign} ".join(plain)


def _is_sign(text: str, before: re.Match[str]) -> bool:
    """Whether a plus or minus is the number's sign: not a hyphen in a word, not between two terms."""
    previous = text[: before.start()].rstrip()[-1:]
    return not (previous.isalnum() or previous in "})-+")


def _plain(printed: str) -> str:
    text = printed.replace("{,}", ",")
    return text if re.fullmatch(r"[\d.,]+", text) else f"{value_of(printed):g}"


def _words_of(article: Article, tables: list[Tabular], at: Located) -> tuple[str, str]:
    """The words of the row and of the head of the column that a number in a table stands in."""
    file = article.files[at.file]
    table = next((table for table in tables if table.start <= at.start < table.end), None)
    here = table.entry(at.start) if table else None
    if table is None or here is None:
        return "", ""
    rows, (number, entry) = table.rows, here

    def text_of(row: int, column: int) -> str:
        for each in rows[row]:
            if each.column <= column < each.column + each.columns:
                return words(file.text[each.start : each.end])
        return ""

    upwards = (text_of(row, 0) for row in range(number, 0, -1))  # a name may stand for several rows
    labels = [text_of(number, 0) or next(filter(None, upwards), "")] if entry.column else []
    for column in range(1, entry.column):
        label = text_of(number, column)
        labels += [label] if re.match(r"[A-Za-z]{2}", label) and label not in labels else []
    return " ".join(labels), text_of(0, entry.column) if number else ""


def propose(label: str, row: str, column: str, cells: Mapping[str, Mapping[str, Any]]) -> str:
    """The cell of the table with this label whose name fits the words of row and column; empty if none does, or two."""
    asked = (_tokens(row), _tokens(column))
    if not all(asked):
        return ""
    scored = []
    for identity, cell in cells.items():
        head, _, name = identity.partition("/")
        if head == label and cell["value"] is not None:
            wanted = _tokens(name)
            rows, columns = ([max((_like(word, w) for w in some), default=0.0) for word in wanted] for some in asked)
            covered = sum(map(max, zip(rows, columns, strict=True))) / len(wanted)
            used = [sum(max(_like(word, w) for w in wanted) for word in some) / len(some) for some in asked]
            if covered >= LEAST and max(rows) and max(columns):
                scored.append((covered + 0.5 * used[0] + 0.3 * used[1], identity))
    scored.sort(reverse=True)
    return scored[0][1] if scored and (len(scored) == 1 or scored[0][0] > scored[1][0] + 1e-9) else ""


def _tokens(text: str) -> list[str]:
    found = re.findall(r"[A-Z]+(?![a-z])|[A-Za-z][a-z]*|\d+", text.replace("$", ""))
    lower = [word.lower() for word in found]
    return [word for word in lower if word not in _COMMON] or lower


def _like(one: str, other: str) -> float:
    if one == other:
        return 1.0
    shorter, longer = sorted((one, other), key=len)
    return 0.8 if len(shorter) >= 3 and longer.startswith(shorter) else 0.0


def _name(entry: Entry, cell: str) -> str:
    """An id for a claim: that of its cell, or its place with row and column, or its place with line and number."""
    place = entry.found[0].printed.place
    if cell:
        return cell
    parts = [re.sub(r"\W+", "_", part).strip("_") for part in (entry.row, entry.column)]
    return "/".join([place, *parts]) if all(parts) else f"{place}/{entry.at}"


def _unique(name: str, taken: set[str]) -> str:
    made = next(each for n in count(1) if (each := name if n == 1 else f"{name}/{n}") not in taken)
    taken.add(made)
    return made


def _claim(entry: Entry, identity: str, cell: Mapping[str, Any] | None) -> str:
    fields: dict[str, Any] = {"id": identity, "printed": entry.printed}
    fields |= {"unit": entry.unit} if entry.unit else {}
    fields["at"] = [entry.at]
    whole = re.fullmatch(r"[\d,]+", entry.printed)
    judge = "exact" if whole else "statistical"
    if cell is not None:
        fields["cell"] = cell["id"]
        p_value = re.search(r"(?:^|_)p$", cell["estimator"])
        judge = "significance" if p_value else "statistical" if cell["interval"] or cell["n"] > 1 else "exact"
    return (
        "{"
        + ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
        + f", judge: {judge}}}"
    )


def _quoted(text: str) -> str:
    """A string of YAML in single quotes: a pattern keeps its backslashes."""
    return "'" + text.replace("'", "''") + "'"


def _one_line(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in " ".join(text.split()))
