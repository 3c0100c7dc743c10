"""The two renderings of a table that the study declares: LaTeX for the report, plain data for the audit page."""

from collections.abc import Iterator, Mapping
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.report.appendix import anchor
from ghost.report.escaping import escape, number
from ghost.study.declarations import Artefact, Entry, Part, Table, Tex

# A manuscript without our style, such as the authors' own, has no links: there a number is just the number.
HEAD = "\\providecommand{\\ghostlink}[2]{#2}%\n"
Cells = Mapping[str, Mapping[str, Any]]


def latex(artefact: Artefact, cells: Cells) -> str:
    """The tabular. Each number links to its entry in the supplement."""
    table = _table(artefact)

    def part(given: Part) -> str:
        if isinstance(given, Tex):
            return given.tex
        cell = _cell(artefact, given, cells)
        shown = cell["shown"]
        text = rf"\texttt{{{escape(shown)}}}" if shown.endswith(".py") else number(shown)
        return rf"\ghostlink{{prov:{anchor(cell['id'])}}}{{{text}}}"

    lines = [HEAD + rf"\begin{{tabular}}{{@{{}}{table.align}@{{}}}}", r"\toprule"]
    for group in _groups(table):
        lines += [*(" & ".join("".join(map(part, entry)) for entry in row) + r" \\" for row in group), r"\midrule"]
    return "\n".join([*lines[:-1], r"\bottomrule", r"\end{tabular}", ""])


def page(artefact: Artefact, cells: Cells) -> list[list[list[dict[str, str]]]]:
    """Rows, the head first, of entries, of parts: a text, and the anchor of the cell whose value it is."""

    def part(given: Part) -> dict[str, str]:
        if isinstance(given, Tex):
            return {"text": given.plain, "cell": ""}
        cell = _cell(artefact, given, cells)
        return {"text": cell["shown"], "cell": anchor(cell["id"])}

    return [[list(map(part, entry)) for entry in row] for group in _groups(_table(artefact)) for row in group]


def _groups(table: Table) -> Iterator[tuple[tuple[Entry, ...], ...]]:
    """Groups of rows; the first is the head."""
    yield (tuple((text,) for text in table.head),)
    yield from table.groups


def _table(artefact: Artefact) -> Table:
    if artefact.table is None:
        raise GhostError(f"{artefact.id} is no table")
    return artefact.table


def _cell(artefact: Artefact, name: str, cells: Cells) -> Mapping[str, Any]:
    identity = f"{artefact.id}/{name}"
    if identity not in cells:
        raise GhostError(f"{artefact.id} shows {identity}, which is not among the cells{did_you_mean(identity, cells)}")
    return cells[identity]
