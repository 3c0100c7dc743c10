"""The PDFs are kept only if they were made from the cells of their build."""

from pathlib import Path

import pypdf
import pytest

from ghost.errors import GhostError
from ghost.files import sha256
from ghost.report.latexmk import cells_of
from ghost.report.tex import available
from ghost.steps.typeset import typeset

pytestmark = pytest.mark.skipif(not available(), reason="no TeX")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report and a supplement of one line each, with the files of a build beside them."""
    (tmp_path / "own").mkdir()
    (tmp_path / "figures").mkdir()
    (tmp_path / "cells.jsonl").write_text("")
    (tmp_path / "main.tex").write_text(
        r"\documentclass{article}\input{numbers}\begin{document}\section{One}\label{one}\end{document}"
    )
    (tmp_path / "supplement.tex").write_text(
        r"\documentclass{article}\usepackage{xr-hyper}\input{numbers}\externaldocument{main}[out.pdf]"
        r"\begin{document}see \ref{one}\end{document}"
    )
    return tmp_path


def made(report: Path) -> list[Path]:
    out = [report / "out.pdf", report / "out_supplement.pdf"]
    sources = report / "main.tex", report / "supplement.tex"
    typeset(*sources, report / "figures", report / "own", report / "cells.jsonl", *out)
    return out


def test_both_pdfs_name_their_cells_and_the_second_knows_the_first(report):
    here = sha256(report / "cells.jsonl")
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({here})}}")
    out = made(report)
    assert [cells_of(pdf) for pdf in out] == [here, here]
    assert "see 1" in pypdf.PdfReader(out[1]).pages[0].extract_text()


def test_a_pdf_of_other_cells_is_refused(report):
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({'0' * 64})}}")
    with pytest.raises(GhostError, match="made from cells 00000000"):
        made(report)
    assert not list(report.glob("out*.pdf"))


def test_a_supplement_of_other_cells_is_refused(report):
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({sha256(report / 'cells.jsonl')})}}")
    text = (report / "supplement.tex").read_text()
    (report / "supplement.tex").write_text(text.replace("numbers", "others"))
    (report / "own/others.tex").write_text(rf"\pdfinfo{{/GhostCells ({'0' * 64})}}")
    with pytest.raises(GhostError, match="made from cells 00000000"):
        made(report)
    assert not list(report.glob("out*.pdf"))


def test_the_files_of_the_build_come_before_those_beside_the_text(report):
    here = sha256(report / "cells.jsonl")
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({here})}}")
    for folder in (report, report / "generated"):
        folder.mkdir(exist_ok=True)
        (folder / "numbers.tex").write_text(r"\errmessage{this is of another build}")
    assert [cells_of(pdf) for pdf in made(report)] == [here, here]


def test_a_file_of_another_build_is_not_found(report):
    (report / "generated").mkdir()
    (report / "generated/numbers.tex").write_text("")
    with pytest.raises(GhostError, match=r"numbers.tex' not found"):
        made(report)


def test_what_is_no_pdf_is_one_line(tmp_path):
    (tmp_path / "out.pdf").write_bytes(b"no PDF")
    with pytest.raises(GhostError, match="is not a PDF"):
        cells_of(tmp_path / "out.pdf")


@pytest.mark.parametrize("lost", [r"\ref{nowhere}", r"\hyperlink{nowhere}{a link}", r"\cite{nowhere}"])
def test_a_link_that_leads_nowhere_is_refused(report, lost):
    """TeX itself only warns, and leads the link to the first page."""
    here = sha256(report / "cells.jsonl")
    (report / "own/numbers.tex").write_text(rf"\pdfinfo{{/GhostCells ({here})}}\usepackage{{hyperref}}")
    made(report)
    text = (report / "supplement.tex").read_text()
    (report / "supplement.tex").write_text(text.replace("see", f"see {lost}"))
    with pytest.raises(GhostError, match=r"supplement\.tex: a link leads nowhere: nowhere"):
        made(report)
