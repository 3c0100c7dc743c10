"""No table of the report shrinks below a readable size without a word: ghost.sty, through LaTeX, read back."""

from __future__ import annotations

import shutil

import pypdfium2
import pypdfium2.raw as pdfium
import pytest

from ghost.report.latexmk import compile_pdf
from ghost.report.tex import available

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="no TeX")]
# Columns of "0.0292 0.0015" in 8 pt: 56 pt each. A column of the page has 252 pt, the page 516, its height 675.
FITS, SHRINKS, TWO_COLUMNS, TURNED, TOO_WIDE = 4, 5, 8, 13, 20


@pytest.fixture(scope="module")
def sizes(tmp_path_factory) -> dict[int, tuple[float, bool, str]]:
    """Of the table with so many columns: the size of its letters, whether it is turned, and the text of its page."""
    folder = tmp_path_factory.mktemp("tables")
    wanted = (FITS, SHRINKS, TWO_COLUMNS, TURNED, TOO_WIDE)
    shutil.copy("paper/ghost.sty", folder)
    tables = []
    for columns in wanted:
        row = " & ".join(["0.0292 0.0015"] * (columns - 1) + [f"W{columns}W0.0015"])
        name = "x" * columns
        (folder / f"tab_{name}.tex").write_text(rf"\begin{{tabular}}{{@{{}}{'c' * columns}@{{}}}}{row}\end{{tabular}}")
        built = rf"\expandafter\def\csname ghost@built@tab:{name}\endcsname{{}}"
        tables.append(rf"{built}\ghosttable{{{name}}}{{A table.}}\clearpage")
    head = r"\documentclass[journal]{IEEEtran}\usepackage{ghost}\begin{document}text "
    (folder / "main.tex").write_text(head + "\n".join(tables) + r"\end{document}")
    document = pypdfium2.PdfDocument(compile_pdf(folder / "main.tex", folder))
    found = {}
    for page in (document[number].get_textpage() for number in range(len(document))):
        text = page.get_text_range()
        for columns in (columns for columns in wanted if f"W{columns}W" in text):
            matrix = pdfium.FS_MATRIX()
            assert pdfium.FPDFText_GetMatrix(page, text.index(f"W{columns}W"), matrix)
            size = pdfium.FPDFText_GetFontSize(page, text.index(f"W{columns}W"))
            found[columns] = (size * max(abs(matrix.a), abs(matrix.b)), abs(matrix.b) > abs(matrix.a), text)
    return found


def test_a_table_that_fits_keeps_its_size(sizes):
    assert sizes[FITS][:2] == (pytest.approx(8, abs=0.1), False)


@pytest.mark.parametrize("columns", [SHRINKS, TWO_COLUMNS, TURNED])
def test_a_wider_one_stays_readable(columns, sizes):
    size_pt, turned, text = sizes[columns]
    assert 6 <= size_pt <= 8.1
    assert turned == (columns == TURNED)
    assert "too wide" not in text


def test_what_fits_nowhere_says_so(sizes):
    size_pt, turned, text = sizes[TOO_WIDE]
    assert size_pt < 6
    assert turned
    assert "too wide to be set in letters of 6" in text
