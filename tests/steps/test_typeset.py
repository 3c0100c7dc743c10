"""The PDF is kept only if it was made from the cells of its build."""

from pathlib import Path

import pytest

from ghost.errors import GhostError
from ghost.files import sha256
from ghost.report.latexmk import cells_of
from ghost.report.tex import available
from ghost.steps.typeset import typeset

pytestmark = pytest.mark.skipif(not available(), reason="no TeX")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report of one line, with the files of a build beside it."""
    (tmp_path / "own").mkdir()
    (tmp_path / "figures").mkdir()
    (tmp_path / "cells.jsonl").write_text("")
    (tmp_path / "main.tex").write_text(r"\documentclass{article}\input{numbers}\begin{document}text\end{document}")
    return tmp_path


def made(report: Path) -> Path:
    typeset(report / "main.tex", report / "figures", report / "own", report / "cells.jsonl", report / "out.pdf")
    return report / "out.pdf"


def test_a_pdf_names_its_cells(report):
    here = sha256(report / "cells.jsonl")
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({here})}}")
    assert cells_of(made(report)) == here


def test_a_pdf_of_other_cells_is_refused(report):
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({'0' * 64})}}")
    with pytest.raises(GhostError, match="made from cells 00000000"):
        made(report)
    assert not (report / "out.pdf").exists()


def test_the_files_of_the_build_come_before_those_beside_the_text(report):
    here = sha256(report / "cells.jsonl")
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({here})}}")
    for folder in (report, report / "generated"):
        folder.mkdir(exist_ok=True)
        (folder / "numbers.tex").write_text(r"\errmessage{this is of another build}")
    assert cells_of(made(report)) == here


def test_a_file_of_another_build_is_not_found(report):
    (report / "generated").mkdir()
    (report / "generated/numbers.tex").write_text("")
    with pytest.raises(GhostError, match=r"numbers.tex' not found"):
        made(report)


def test_what_is_no_pdf_is_one_line(tmp_path):
    (tmp_path / "out.pdf").write_bytes(b"no PDF")
    with pytest.raises(GhostError, match="is not a PDF"):
        cells_of(tmp_path / "out.pdf")
