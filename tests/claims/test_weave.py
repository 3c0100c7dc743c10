"""The woven article: our numbers and figures in the article's own layout, and a reason for what stayed."""

import json
import os
import re
from collections import Counter
from pathlib import Path

import pypdf
import pytest

from ghost.claims.article import read_article
from ghost.claims.ledger import LEDGER, Claim, read_ledger
from ghost.claims.substitution import Ours, in_latex, is_magnitude, our_value, replaced_span, stars_of
from ghost.claims.tabular import tabulars
from ghost.claims.tex import Article
from ghost.claims.weave import weave
from ghost.errors import GhostError
from ghost.report.tex import available
from ghost.study.builds import load
from made_up import FIGURE, cell, made_up

SOURCE = os.environ.get("GHOST_ARTICLE")
RESULTS = "sections/results2.tex"
tex = pytest.mark.skipif(not available(), reason="no LaTeX on this machine")


@pytest.fixture
def made(tmp_path, monkeypatch, root):
    return made_up(tmp_path, monkeypatch, root)


def rows(folder):
    """The first table of the woven article, as words."""
    article = Article(folder / "article.tex")
    file = article.files[RESULTS]
    return [[file.text[e.start : e.end] for e in row] for row in tabulars(file)[0].rows]


@tex
@pytest.mark.slow
def test_numbers_and_figures_are_ours_and_the_best_is_bold(made, tmp_path):
    before = {path: path.read_bytes() for path in made.article.parent.rglob("*") if path.is_file()}
    out = tmp_path / "woven"
    said = weave(made.build, made.article, made.ledger, out, False)
    assert "tab:meta_rl: 8 of 9 numbers are ours" in said
    assert "not replaced: tab:meta_rl: 1.00 in line sections/results2.tex:17: the ledger names no cell for it" in said
    assert "not replaced: tab:unknown: the ledger binds none of its numbers" in said
    assert "fig:switch_speed: data/smoke/figures/switch_speed.pdf" in said
    table = rows(out)
    assert table[0] == ["Agent", "{Total reward}", "Switch latency", "Steady reward"]
    assert table[1] == ["AD", "24.0", r"$\ensuremath{\mathbf{8.5 \pm 1.5}}$", r"\ensuremath{0.05}"]
    assert table[2] == ["Transformer", "70.0", r"$\ensuremath{70.0 \pm 2.0}$", r"$\ensuremath{-0.40}$"]
    assert table[3][:3] == ["Ghost (proposed)", "281.5", r"${\ensuremath{10.4 \pm 3.6}}$"]
    assert table[3][3] == r"\textbf{{\ghostkept{1.00}}}"
    assert "not replaced: tab:meta_rl: the best of a column in bold: some of its numbers are not ours" in said
    source = (out / RESULTS).read_text()
    assert source.count(r"\midrule") == 2
    assert r"\begin{tabular}{@{}l S[table-format=3.1] c c@{}}" in source
    assert r"\includegraphics[width=0.9\columnwidth]{ghost_figures/switch_speed.pdf}" in source
    assert "over 20 episodes" in source, "numbers of the text stay, unless asked for"
    text = re.sub(r"\s", "", "".join(page.extract_text() for page in pypdf.PdfReader(out / "article.pdf").pages))
    assert "281.5" in text
    assert "NumbersandfiguresofthebuildsmokewovenintothearticleStand-infordata" in re.sub("[.,]", "", text)
    assert (out / "woven.txt").read_text() == f"{said}\n"
    assert {path: path.read_bytes() for path in made.article.parent.rglob("*") if path.is_file()} == before

    again = tmp_path / "again"
    weave(made.build, made.article, made.ledger, again, False)
    for path in (each for each in out.rglob("*") if each.is_file() and each.name != "woven.txt"):
        assert path.read_bytes() == (again / path.relative_to(out)).read_bytes(), path


@tex
@pytest.mark.slow
def test_numbers_of_the_text_are_bound_on_request(made, tmp_path):
    said = weave(made.build, made.article, made.ledger, made.article.parent / "woven", True)
    assert "the text: 2 of" in said
    text = (made.article.parent / "woven/article.tex").read_text()
    assert r"a new goal \ensuremath{4.3}{} times faster than one that does not, \speedup\ times" in text
    assert r"$\ensuremath{1{,}500}$ episodes" in text
    assert r"\newcommand{\speedup}{4.2}" in text


def test_the_articles_own_folder_is_refused(made):
    with pytest.raises(GhostError, match="never changed"):
        weave(made.build, made.article, made.ledger, made.article.parent, False)


def test_a_folder_with_other_files_is_refused(made, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/article.tex").write_text("mine")
    for out in (tmp_path / "thesis", tmp_path / "thesis/article.tex"):
        with pytest.raises(GhostError, match="is there already, and not from ghost weave"):
            weave(made.build, made.article, made.ledger, out, False)
    assert (tmp_path / "thesis/article.tex").read_text() == "mine"


def claim(printed="4.2", unit="", judge="statistical", cells=("tab:x/a",)):
    return Claim("tab:x/a", printed, {"1.1": printed}, judge, unit, cells)


@pytest.mark.parametrize(
    ("claimed", "measured", "expected"),
    [
        (claim("2.3", "M"), cell("c", "2,316,000", 2316000.0), "2.3"),
        (claim("1.07", "B"), cell("c", "1068.8", 1068.8, unit="M"), "1.07"),
        (claim("10", "steps"), cell("c", "11.2", 11.2), "11.2"),
        (claim("+10", "%"), cell("c", "-3", -3.0, unit="pp"), "-3"),
        (claim("9", "ms"), cell("c", "9", 9.0, unit="s"), "it is printed in ms, our cell is in s"),
        (claim(), cell("c", "none", None), "the cell is none"),
        (claim(), None, "the build has no such cell"),
        (claim(cells=()), None, "the ledger names no cell for it"),
    ],
)
def test_our_value_has_the_articles_unit_or_there_is_a_reason(claimed, measured, expected):
    found = our_value(claimed, measured)
    assert (found.shown if isinstance(found, Ours) else found) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("$|d|=", True),
        (r"$|d| \approx ", True),
        (r"$\|\nabla U\|_2", False),
        (r"$\|\nabla U\| \approx", True),
        (r"$\lvert d\rvert = ", True),
        ("$d=", False),
        ("$p(x|y)=", False),
        (r"a & \vline & ", False),
    ],
)
def test_a_magnitude_has_no_sign(before, expected):
    assert is_magnitude(f"{before}0.19$", len(before)) == expected
    assert [Ours(shown, -0.02).magnitude.shown for shown in ("-0.02", "< -0.02", "+0.02")] == ["0.02", "< 0.02", "0.02"]


@pytest.mark.parametrize(
    ("shown", "printed", "made"),
    [
        ("8.5 ± 1.5", "10.5 ± 3.5", r"\ensuremath{8.5 \pm 1.5}"),
        ("60 [39, 78]", "75.0", r"\ensuremath{60\ [39, 78]}"),
        ("< 0.001", "0.003", r"\ensuremath{<0.001}"),
        ("3.1", "+2.0", r"\ensuremath{+3.1}"),
        ("0.1 to 0.6", "0.2 to 0.3", r"\ensuremath{0.1\mbox{--}0.6}"),
        ("5.0e-04", "3e-4", r"\ensuremath{5.0 \times 10^{-4}}"),
        ("9/10", "8/10", r"\ensuremath{\mbox{9/10}}"),
        ("a_b & {", "1", r"\ensuremath{\mbox{a\_b \& \{}}"),
    ],
)
def test_our_value_is_set_for_text_and_mathematics(shown, printed, made):
    assert in_latex(Ours(shown, 1.0), printed) == made


@pytest.mark.parametrize(
    ("text", "printed", "replaced"),
    [
        (r"$p < 0.01$", "< 0.01", r"$p OURS=$"),
        (r"& $< 0.01$ &", "< 0.01", r"& $OURS$ &"),
        (r"requires $>$20 steps", "> 20", r"requires OURS steps"),
        (r"$\|U\|\approx 0.04$", "≈ 0.04", r"$\|U\|OURS=$"),
        (r"($+$19\%)", "+19", r"(OURS\%)"),
        (r"$-0.31$", "-0.31", r"$OURS$"),
        (r"82.5$\pm$2.6\%", "82.5 ± 2.6", r"OURS\%"),
        (r"$.017{\pm}.002$", "0.017 ± 0.002", r"$OURS$"),
        (r"5--29\%", "5 to 29", r"OURS\%"),
        (r"$5$--$29$", "5 to 29", r"$OURS$"),
        (r"\textbf{5}--29", "5 to 29", "torn"),
    ],
)
def test_the_sign_and_what_is_between_two_numbers_go_with_them(text, printed, replaced, tmp_path):
    (tmp_path / "a.tex").write_text("\\begin{abstract}\n" + text + "\n\\end{abstract}\n")
    article = Article(tmp_path / "a.tex")
    found = read_article(article, ())
    span = replaced_span(article.files[""].text, found, printed)
    whole = article.files[""].text
    made = "torn" if span is None else f"{whole[: span[0]]}OURS{span[2]}{whole[span[1] :]}".split("\n")[1]
    assert made == replaced


def test_stars_are_those_of_our_p_value():
    assert [stars_of(claim(judge="significance"), Ours("", p)) for p in (0.2, 0.04, 0.004, 0.0004)] == [
        *("", "*", "**", "***"),
    ]
    assert stars_of(claim(), Ours("", 0.001)) == ""


@tex
@pytest.mark.slow
@pytest.mark.skipif(not SOURCE, reason="the article is not ours to ship: GHOST_ARTICLE names its source")
def test_all_tables_and_figures_of_the_real_article_are_replaced(root, tmp_path, monkeypatch):
    """With cells that repeat what the ledger prints: 9 tables of 9, and the figures that the build has."""
    config, ledger = load({"scale": "smoke"}, root), read_ledger(root / LEDGER)
    monkeypatch.chdir(tmp_path)
    config.figures.mkdir(parents=True)
    labels = set(re.findall(r"\\label\{fig:(\w+)\}", Path(SOURCE).read_text()))
    for label in labels - {"method"}:
        (config.figures / f"{label}.pdf").write_bytes(FIGURE)
    config.generated.mkdir(parents=True)
    table = "\\begin{tabular}{@{}ll@{}}\n\\toprule\nours & here \\\\\n\\bottomrule\n\\end{tabular}\n"
    (config.generated / "tab_theory_method_map.tex").write_text(table)
    cells = [cell(c.cell[0], c.printed, c.number.value, unit=c.unit) for c in ledger.claims.values() if c.cell]
    (config.data / "cells.jsonl").write_text("".join(json.dumps(each) + "\n" for each in cells))
    said = weave(config, Path(SOURCE), root / LEDGER, tmp_path / "woven", False)
    done = Counter(line.split(":")[0] for line in said.splitlines() if re.match(r"(tab|fig):", line))
    assert done == {"tab": 9, "fig": len(labels) - 1}
    assert "not replaced: fig:method: the build has no figure of this label" in said
    assert "TeX," not in said
