import json
import re
import shutil
import subprocess

import pypdf
import pytest

from ghost.claims.appendix import published_macros
from ghost.claims.ledger import LEDGER, read_ledger
from ghost.report.appendix import anchor, shown
from ghost.report.cells import read_cells
from ghost.report.escaping import escape
from ghost.report.latexmk import compile_pdf
from ghost.report.tables import latex
from ghost.steps.macros import macros, stamp
from ghost.study.declarations import Cell
from ghost.study.tables import Column, Row, tabulated


def cell(identity, shown, unit="", reduced=False, stand_ins=()):
    return {
        "id": identity,
        "shown": shown,
        "unit": unit,
        "experiment": "",
        "against": "",
        "against_condition": "",
        "against_metric": "",
        "condition": "",
        "metric": "",
        "estimator": "value",
        "value": None,
        "interval": None,
        "n": 1,
        "unpaired": [],
        "sha256": None,
        "runs": [],
        "reduced": reduced,
        "stand_ins": list(stand_ins),
    }


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "cells.jsonl"
    made = [
        cell("fig:a_b/x", "-1.5 ± 0.1", unit="s"),
        cell("fig:a_b/text", r"50% \today $x_1$"),
        cell("tab:t/module", "dynamics/net_works.py", stand_ins=["GR00T N1.5 backbone"]),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in made))
    return path


def test_the_stamp_counts_what_is_reduced_or_a_stand_in():
    full = {"a": cell("a", "1"), "b": cell("b", "2")}
    assert stamp(full, "laptop") == ""
    reduced = {**full, "c": cell("c", "3", reduced=True, stand_ins=["backbone"])}
    said = stamp(reduced, "smoke")
    assert "Reduced scale (smoke): 1 of 3 cells" in said
    assert "stand-in for backbone" in said


def test_a_word_in_place_of_a_value_has_no_unit():
    assert shown(cell("a", "none", unit="%")) == "none"
    assert shown(cell("a", "5", unit="%")) == r"\ensuremath{5}\,\%"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs TeX, which `make test` installs where it can")
def test_macros_print_what_the_cells_say(tmp_path, cells, root, monkeypatch):
    monkeypatch.chdir(root)
    macros(cells, "smoke", tmp_path, built=("fig:a_b",))
    main = tmp_path / "main.tex"
    body = (
        r"\documentclass{article}\begin{document}\input{numbers}\makeatletter "
        r"value \cell{fig:a_b/x} paper \published{tab:lightweight/CVAE/d} text \cell{fig:a_b/text}"
        r"\ifcsname ghost@built@fig:a_b\endcsname built\fi\ifcsname ghost@built@fig:c\endcsname wrong\fi"
        r"\standin{tab:t}{GR00T N1.5 backbone}{onstandin}{onreal}"
        r"\standin{fig:a_b}{GR00T N1.5 backbone}{withstandin}{without} rests on \standins, build \buildname."
        r"\section{In a title \cell{fig:a_b/x}}%s\end{document}"
    )
    main.write_text(body % "")
    subprocess.run(["pdflatex", "-interaction=nonstopmode", "main"], cwd=tmp_path, check=True, capture_output=True)
    text = pypdf.PdfReader(tmp_path / "main.pdf").pages[0].extract_text()
    assert "50%\\today$x1$" in text.replace(" ", "")  # printed, not run; OT1's underscore is a rule
    assert "built" in text
    assert "wrong" not in text
    assert "onstandinwithoutrestsonGR00TN1.5backbone,buildsmoke." in text.replace(" ", "").replace("\n", "")
    assert "6.2" in text
    main.write_text(body % r"\cell{fig:nope}")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "main"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.returncode
    assert "No cell value for fig:nope" in done.stdout


HOSTILE = (
    r"\input{/etc/passwd}",
    r"\immediate\write18{touch hit}",
    "^^5cinput{x} ^^M",
    "50% of $x_1$ & #1 ~ {open",
    'a "quoted" <tag> and \\\\ \\end{document}',
    "naïve 任务 🤖 \u202eabc\x00\n\n\\par",
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs TeX, which `make test` installs where it can")
def test_hostile_text_from_data_is_printed_and_never_run(tmp_path, root, monkeypatch):
    """Task names, host names, errors: whatever is in a cell goes through TeX as text, wherever it is printed."""
    monkeypatch.chdir(root)
    made = [
        {
            **cell(f"tab:t/h{number}", text, unit=text, stand_ins=[text]),
            "metric": text,
            "experiment": text,
        }
        for number, text in enumerate(HOSTILE)
    ]
    (tmp_path / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    macros(tmp_path / "cells.jsonl", "smoke", tmp_path)
    rows = [Row(f"h{n}", (text, Cell(f"h{n}", text, text))) for n, text in enumerate(HOSTILE)]
    table = tabulated("t", ("Text", Column("cell", "Cell")), rows)
    (tmp_path / "tab_t.tex").write_text(latex(table, read_cells(tmp_path / "cells.jsonl")))
    used = " ".join(rf"\cell{{tab:t/h{number}}}" for number in range(len(HOSTILE)))
    (tmp_path / "main.tex").write_text(
        r"\documentclass[journal]{IEEEtran}\usepackage{ghost}\input{numbers}\begin{document}\sloppy "
        rf"{used} \input{{tab_t}} \begin{{ghostlist}}\input{{provenance_entries}}"
        r"\input{verdict_entries}\end{ghostlist}"
        r"\end{document}"
    )
    shutil.copy(root / "paper/ghost.sty", tmp_path)
    pdf = compile_pdf(tmp_path / "main.tex", tmp_path)
    reader = pypdf.PdfReader(pdf)
    text = re.sub(r"\s", "", "".join(page.extract_text() for page in reader.pages))
    for said in (
        "input{/etc/passwd}",
        "write18{touchhit}",
        "^^5cinput{x}",
        "50%of$x",
        "[U+4EFB]",
        "[U+1F916]",
        "[U+202E]",
    ):
        assert said in text
    assert "root:" not in text
    assert not (tmp_path / "hit").exists()
    inside = {
        str(a.get_object()["/A"]["/D"])
        for page in reader.pages
        for a in page.get("/Annots", [])
        if "/D" in a.get_object()["/A"]
    }
    assert inside
    assert inside <= set(reader.named_destinations)


def test_any_text_becomes_plain_ascii_or_known_letters():
    for text in HOSTILE:
        assert re.fullmatch(r"[ -~äöüÄÖÜßéèêëàâçñøåÅØæÆ]*", escape(text))


def test_anchors_are_plain_and_distinct():
    names = ["tab:x/a b", "tab:x/a_b", "tab:x/ä", "tab:x/<a>", "tab:x/a#b"]
    made = [anchor(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9:/_.+*-]+", name) for name in made)
    assert anchor("tab:lightweight/CVAE/test_mse") == "tab:lightweight/CVAE/test_mse"


def test_every_published_number_of_the_text_is_in_the_ledger(root):
    defined = {
        line.partition("}")[0].removeprefix(r"\ghost@set{published@")
        for line in published_macros(read_ledger(root / LEDGER))
    }
    used = {
        name
        for path in (root / "paper").rglob("*.tex")
        for name in re.findall(r"\\published\{(.*?)\}", path.read_text())
    }
    assert used
    assert used <= defined


def test_a_published_number_reads_as_part_of_a_sentence(root):
    lines = "\n".join(published_macros(read_ledger(root / LEDGER)))
    for cell, text in {
        "fig:switch_speed/gru_a0.30/steps_to_converge": r"\textgreater{}~\ensuremath{20}",
        "fig:diagnostic/ghost/dwell_s": r"\ensuremath{3.5}\,s",  # the article: approximately
        "tab:meta_rl/Ghost/latency": r"\ensuremath{10.8 \pm 3.4}",  # steps
        "tab:loss_ablation/bc/change": r"\ensuremath{+4.9}\,\%",
        "fig:libero_complexity/slope": r"\ensuremath{10.5}\,pp",  # per phase
    }.items():
        assert rf"{{published@{cell}}}{{\ghostlink{{claim:{cell}}}{{{text}}}}}" in lines
