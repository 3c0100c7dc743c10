"""Printed tables: rows and columns, declared once. LaTeX and the audit page are two renderings (ghost.report.tables).

    tabulated(
        "lightweight",
        ("Decoder", Column("test_mse", "Test MSE", lambda experiment: spread(experiment, "mse", ".4f")), ...),
        (Row("CVAE", ("CVAE",), "cvae_offline"), ...),  # a group of rows; a rule divides groups
    )

A row shows its own entries in the first columns, here a text; the other columns make theirs from what the row is of,
here an experiment. A cell without a name gets <row>/<column>, or what `named` says. Texts are plain Unicode; what LaTeX
sets otherwise is a `Tex`.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ghost.errors import GhostError
from ghost.report.escaping import escape
from ghost.study.declarations import DASH, Artefact, Cell, Entry, Table, Tex

Text = str | Tex
Shown = Cell | Text | tuple[Cell | Text, ...] | None  # side by side where there are several; None is an em dash


@dataclass(frozen=True)
class Column:
    """A column. Without a head it is not printed: its cells are for the text and the audit."""

    name: str
    head: Text | None
    shown: Callable[[Any], Shown] = lambda of: None
    align: str = "c"


@dataclass(frozen=True)
class Row:
    name: str
    shown: tuple[Shown, ...]  # in the first printed columns
    of: Any = None  # what the other columns make their entries from; from None they make none


def tabulated(
    label: str,
    columns: Iterable[Column | Text],  # a text is the head of a column of texts
    *groups: Iterable[Row],
    more: Iterable[Cell] = (),
    optional: tuple[str, ...] = (),
    named: str = "{row}/{column}",
) -> Artefact:
    """A table with its cells; `more` are cells that are not printed in it, `optional` as in an `Artefact`."""
    every = [column if isinstance(column, Column) else Column("", column, align="l") for column in columns]
    printed = [column for column in every if column.head is not None]
    cells: dict[str, Cell] = {}

    def keep(cell: Cell, name: str) -> str:
        cell = dataclasses.replace(cell, name=cell.name or name)
        if cells.setdefault(cell.name, cell) != cell:
            raise GhostError(f"study: tab:{label} has two different cells {cell.name} ({cell.declared})")
        return cell.name

    def entry(shown: Shown, name: str) -> Entry:
        parts = shown if isinstance(shown, tuple) else (DASH if shown is None else shown,)
        return tuple(keep(part, name) if isinstance(part, Cell) else text(part) for part in parts)

    def entries(row: Row) -> tuple[Entry, ...]:
        shown = {column: None if row.of is None else column.shown(row.of) for column in every}
        shown |= zip(printed[: len(row.shown)], row.shown, strict=True)
        made = {c: entry(shown[c], named.format(row=row.name, column=c.name)) for c in every}
        return tuple(made[column] for column in printed)

    made = tuple(tuple(map(entries, group)) for group in groups)
    for cell in more:
        keep(cell, "")
    table = Table("".join(c.align for c in printed), tuple(text(c.head or "") for c in printed), made)
    return Artefact("tab", label, "tabulate", tuple(cells.values()), table, optional)


def text(given: Text) -> Tex:
    """Plain Unicode, escaped for LaTeX, or a text that has both forms."""
    return given if isinstance(given, Tex) else Tex(escape(given), given)


def code(name: str) -> Tex:
    return Tex(rf"\texttt{{{escape(name)}}}", name)


def math(words: str) -> Tex:
    """The first of some words in mathematics."""
    first, _, rest = words.partition(" ")
    return Tex(f"${first}$ {escape(rest)}".rstrip(), words)


def indented(words: str) -> Tex:
    return Tex(rf"\quad {escape(words)}", f"\u2003{words}")
