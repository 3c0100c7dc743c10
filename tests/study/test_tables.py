import pytest

from ghost.errors import GhostError
from ghost.report.lint import lint_text
from ghost.study import ARTEFACTS
from ghost.study.declarations import Cell, Tex
from ghost.study.tables import Column, Row, code, indented, math, tabulated

MEAN = Column("mse", "MSE", lambda experiment: Cell("", experiment, "mse"))
HIDDEN = Column("n", None, lambda experiment: Cell("", experiment, "n"))


def names(artefact):
    return [cell.name for cell in artefact.cells]


def test_cells_are_named_by_row_and_column():
    table = tabulated("x", ("Who", MEAN, HIDDEN), [Row("a", ("A",), "one")], [Row("b", ("B",), "two")])
    assert names(table) == ["a/mse", "a/n", "b/mse", "b/n"]
    assert [cell.experiment for cell in table.cells] == ["one", "one", "two", "two"]
    assert table.table.align == "lc"
    assert table.table.groups == ((((Tex("A", "A"),), ("a/mse",)),), (((Tex("B", "B"),), ("b/mse",)),))
    other = tabulated("x", ("Who", MEAN), [Row("a", ("A",), "one")], named="{column}/{row}")
    assert names(other) == ["mse/a"]


def test_a_row_may_show_its_own_cells_and_leave_columns_empty():
    own = Cell("own", "three", "mse")
    row = Row("a", ("A", (own, " of ", own)))
    table = tabulated("x", ("Who", MEAN, Column("more", "More")), [row], more=[Cell("runs", "one", "")])
    assert names(table) == ["own", "runs"]
    assert table.table.groups[0][0][1] == ("own", Tex(" of ", " of "), "own")
    assert table.table.groups[0][0][2] == (Tex("---", "—"),)


def test_two_different_cells_of_one_name_are_refused():
    with pytest.raises(GhostError, match=r"tab:x has two different cells a/mse \(tests/study/test_tables.py:"):
        tabulated("x", ("Who", MEAN), [Row("a", ("A",), "one"), Row("a", ("A",), "two")])


def test_a_row_with_too_many_entries_is_refused():
    with pytest.raises(ValueError, match="zip"):
        tabulated("x", ("Who", MEAN), [Row("a", ("A", None, None))])


def test_texts_have_a_form_for_latex_and_a_plain_one():
    assert math("p vs 50 %") == Tex(r"$p$ vs 50 \%", "p vs 50 %")
    assert math("n") == Tex("$n$", "n")
    assert code("a_b") == Tex(r"\texttt{a\_b}", "a_b")
    assert indented("arm") == Tex(r"\quad arm", "\u2003arm")


def test_no_table_has_a_typed_number(root):
    """Put a number into a heading and this goes red."""
    for artefact in ARTEFACTS:
        if artefact.table:
            parts = [*artefact.table.head, *(p for g in artefact.table.groups for row in g for e in row for p in e)]
            texts = [part.tex for part in parts if isinstance(part, Tex)]
            assert texts
            assert lint_text(root / artefact.id, "\n".join(texts), ()) == []
