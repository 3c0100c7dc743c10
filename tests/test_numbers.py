import json
import shutil
import subprocess

import pypdf
import pytest

from ghost.errors import GhostError
from ghost.numbers import numbers, stamp
from ghost.tabulate import tabulate


def cell(identity, shown, published="", unit="", reduced=False, stand_ins=()):
    return {
        "id": identity,
        "shown": shown,
        "published": published,
        "unit": unit,
        "experiment": "",
        "against": "",
        "condition": "",
        "metric": "",
        "estimator": "value",
        "value": None,
        "interval": None,
        "n": 1,
        "runs": [],
        "reduced": reduced,
        "stand_ins": list(stand_ins),
    }


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "cells.jsonl"
    made = [
        cell("fig:a_b/x", "-1.5 ± 0.1", published="> 20", unit="s"),
        cell("fig:a_b/text", r"50% \today $x_1$"),
        cell("tab:t/module", "dynamics/net_works.py"),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in made))
    return path


def test_the_stamp_counts_what_is_reduced_or_a_stand_in():
    full = {"a": cell("a", "1"), "b": cell("b", "2")}
    assert stamp(full, "laptop") == ""
    reduced = {**full, "c": cell("c", "3", reduced=True, stand_ins=["backbone"])}
    said = stamp(reduced, "smoke")
    assert "REDUCED SCALE (SMOKE): 1 OF 3 CELLS" in said
    assert "STAND-IN FOR BACKBONE" in said


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs TeX, which `make test` installs where it can")
def test_macros_print_what_the_cells_say(tmp_path, cells, root, monkeypatch):
    monkeypatch.chdir(root)
    numbers(cells, "smoke", tmp_path, built=("fig:a_b",))
    main = tmp_path / "main.tex"
    body = (
        r"\documentclass{article}\begin{document}\input{numbers}\makeatletter "
        r"value \cell{fig:a_b/x} paper \published{fig:a_b/x} text \cell{fig:a_b/text}"
        r"\ifcsname ghost@built@fig:a_b\endcsname built\fi\ifcsname ghost@built@fig:c\endcsname wrong\fi"
        r"\section{In a title \cell{fig:a_b/x}}%s\end{document}"
    )
    main.write_text(body % "")
    subprocess.run(["pdflatex", "-interaction=nonstopmode", "main"], cwd=tmp_path, check=True, capture_output=True)
    text = pypdf.PdfReader(tmp_path / "main.pdf").pages[0].extract_text()
    assert "50%\\today$x1$" in text.replace(" ", "")  # printed, not run; OT1's underscore is a rule
    assert "built" in text
    assert "wrong" not in text
    assert "20" in text
    main.write_text(body % r"\cell{fig:nope}")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "main"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.returncode
    assert "No cell value for fig:nope" in done.stdout


def test_a_table_is_filled_from_cells_and_escaped(tmp_path, cells):
    template = tmp_path / "t.jinja"
    template.write_text("<< cell('module') >> \\\\\n")
    tabulate("tab:t", template, cells, tmp_path / "t.tex")
    assert (tmp_path / "t.tex").read_text().endswith("{\\texttt{dynamics/net\\_works.py}} \\\\\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [("<< cell('modul') >>", "did you mean tab:t/module"), ("<< nope >>", "is undefined"), ("<% if %>", "Expected")],
)
def test_a_bad_template_is_one_line(tmp_path, cells, text, message):
    template = tmp_path / "t.jinja"
    template.write_text(text)
    with pytest.raises(GhostError) as error:
        tabulate("tab:t", template, cells, tmp_path / "t.tex")
    assert message in str(error.value)
    assert not (tmp_path / "t.tex").exists()
