"""A table as a PDF of its own: its numbers, what they rest on, and which cells they are."""

import json

import pypdf
import pytest

from conftest import ROOT
from ghost.files import sha256
from ghost.report.latexmk import cells_of
from ghost.report.tex import available
from ghost.steps.typeset_table import typeset_table

pytestmark = pytest.mark.skipif(not available(), reason="no TeX")
CELL = {
    **dict.fromkeys(("experiment", "metric", "condition", "unit"), ""),
    **{"id": "tab:my_lab/a", "estimator": "mean", "shown": "73", "value": 73.0, "interval": None, "n": 1},
    **{"runs": [], "sha256": None, "unpaired": [], "reduced": False, "stand_ins": []},
}


def printed(folder, **changes):
    (folder / "tab_my_lab.tex").write_text(
        r"\begin{tabular}{lc} \toprule Policy & Success \\ \midrule Ghost & \ghostlink{prov:a}{$73$} \\ \bottomrule"
        r"\end{tabular}"
    )
    cells = folder / "tab_my_lab.jsonl"
    cells.write_text(json.dumps({**CELL, **changes}) + "\n")
    out = folder / "out.pdf"
    typeset_table("tab:my_lab", folder / "tab_my_lab.tex", cells, ROOT / "paper/ghost.sty", "my_lab", out)
    assert cells_of(out) == sha256(cells)
    (page,) = pypdf.PdfReader(out).pages
    assert "/Annots" not in page  # links would lead to a supplement that is not there
    return " ".join(page.extract_text().split())


def test_a_table_says_what_it_rests_on(tmp_path):
    text = printed(tmp_path, stand_ins=["LIBERO assets"], reduced=True)
    assert "Ghost 73" in text
    assert "ghost audit tab:my_lab --scale my_lab" in text
    assert "Reduced scale (my_lab): 1 of 1 cells; stand-in for LIBERO assets: not comparable" in text


def test_a_table_of_the_papers_own_experiments_says_nothing_more(tmp_path):
    assert printed(tmp_path).endswith("shows the runs behind each number.")
