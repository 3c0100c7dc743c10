"""A ledger is started from an article: every number, and a cell where the table's words name one."""

import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given

from ghost.claims.article import keys, read_article
from ghost.claims.consistency import findings
from ghost.claims.ledger import LEDGER, read_ledger
from ghost.claims.new_ledger import KINDS, propose, start_ledger
from ghost.claims.tex import Article
from ghost.errors import GhostError
from hostile import damages, withstand
from made_up import ARTICLE, made_up

RESULTS = "sections/results2.tex"


@pytest.fixture
def made(tmp_path, monkeypatch, root):
    return made_up(tmp_path, monkeypatch, root)


def test_every_number_of_the_article_becomes_a_claim_or_is_excused(made):
    claims = read_ledger(made.ledger).claims.values()
    named = [key for claim in claims for at in claim.at for key in keys(at)]
    printed = [found.printed for found in read_article(Article(made.article), KINDS)]
    assert sorted(named) == sorted(each.key for each in printed if not each.non_result)
    assert len(set(named)) == len(named)
    assert [each.printed for each in printed if each.line in ("15", "16")] == ["4.2", "4.2", "three", "1{,}500", "0.01"]
    seen = " ".join(each.printed for each in printed)
    for hidden in ("99", "77", "7", "456", "123", "1000", "2pt", "18", "3.1", "0.9"):
        assert hidden not in seen.split(), f"{hidden} is in a comment, verbatim, a length, a column or after the end"


def test_cells_are_proposed_by_label_row_and_column(made):
    claims = {at: claim for claim in read_ledger(made.ledger).claims.values() for at in claim.at}
    proposed = {at: claim.cell[0] for at, claim in claims.items() if claim.cell}
    assert proposed == {
        "15.1": "tab:meta_rl/speedup",  # by hand
        "16.2": "tab:meta_rl/episodes",
        f"{RESULTS}:14.1": "tab:meta_rl/AD/total_reward",
        f"{RESULTS}:14.2-3": "tab:meta_rl/AD/latency",
        f"{RESULTS}:14.4": "tab:meta_rl/AD/steady_reward",
        f"{RESULTS}:15.1": "tab:meta_rl/Transformer/total_reward",
        f"{RESULTS}:15.2-3": "tab:meta_rl/Transformer/latency",
        f"{RESULTS}:15.4": "tab:meta_rl/Transformer/steady_reward",
        f"{RESULTS}:17.1": "tab:meta_rl/Ghost/total_reward",
        f"{RESULTS}:17.2-3": "tab:meta_rl/Ghost/latency",  # its steady reward has no cell
    }
    assert claims[f"{RESULTS}:15.2-3"].printed == "66.0 ± 65.0"
    assert claims[f"{RESULTS}:15.4"].printed == "-0.31"
    assert claims["16.3"].printed == "< 0.01"
    assert claims["21.3"].printed == "0.0005"
    assert claims["15.1"].unit == claims["15.2"].unit == "times"


def test_a_cell_that_two_names_fit_is_not_proposed():
    cells = {name: {"value": 1.0} for name in ("tab:x/A/mse", "tab:x/B/mse", "tab:x/B/other/mse", "tab:y/A/mse")}
    assert propose("tab:x", "A (ours)", "Test MSE", cells) == "tab:x/A/mse"
    assert propose("tab:x", "C", "Test MSE", cells) == ""
    assert propose("tab:x", "A", "", cells) == ""
    assert propose("tab:z", "A", "MSE", cells) == ""
    assert propose("tab:x", "A", "MSE", {**cells, "tab:x/mse/A": {"value": 1.0}}) == ""


def test_a_started_ledger_can_be_checked_and_is_not_overwritten(made):
    assert findings(read_ledger(made.ledger)) == []
    with pytest.raises(GhostError, match="is there already"):
        start_ledger(made.build, made.article, made.ledger)


def test_a_ledger_needs_no_build(made, tmp_path):
    (made.build.data / "cells.jsonl").unlink()
    said = start_ledger(made.build, made.article, tmp_path / "more.yaml")
    assert "a cell is proposed for 0" in said
    assert not any(claim.cell for claim in read_ledger(tmp_path / "more.yaml").claims.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\maketitle", "\\maketitle {", r"article.tex, line 13: a \{ that is never closed"),
        ("\\maketitle", "\\maketitle }", r"article.tex, line 13: a \} that closes nothing"),
        ("\\end{abstract}", "", r"\\end\{document\}, but \\begin\{abstract\} is open"),
        ("\\begin{abstract}", "", r"line 17: \\end\{abstract\}, but \\begin\{document\} is open"),
        ("\\verb|\\num{7} % {|", "\\verb|\\num{7}", r"\\verb\| has no end"),
        ("\\end{verbatim}", "", r"\\begin\{verbatim\} has no end"),
        ("\\input{sections/results2}", "\\input{../../secret}", "leads out of .*: refused"),
        ("\\input{sections/results2}", "\\input{/etc/passwd}", "leads out of .*: refused"),
        ("\\input{sections/results2}", "\\input{article}", "article.tex inputs itself"),
    ],
)
def test_an_article_that_cannot_be_trusted_is_one_line(made, old, new, message):
    text = made.article.read_text()
    assert text.count(old) == 1
    made.article.write_text(text.replace(old, new))
    with pytest.raises(GhostError, match=message) as refused:
        Article(made.article)
    assert "\n" not in str(refused.value)


def test_a_link_out_of_the_folder_and_a_file_too_large_are_refused(made, tmp_path, monkeypatch):
    (tmp_path / "secret.tex").write_text("secret 42")
    (made.article.parent / "sections/results2.tex").unlink()
    (made.article.parent / "sections/results2.tex").symlink_to(tmp_path / "secret.tex")
    with pytest.raises(GhostError, match="leads out"):
        Article(made.article)
    monkeypatch.setattr("ghost.claims.tex.LARGEST", 100)
    with pytest.raises(GhostError, match="at most 100 are read"):
        Article(made.article)


def test_files_that_input_each_other_again_and_again_are_refused(tmp_path, monkeypatch):
    """Ten files, each ten times in the one above: ten billion lines."""
    monkeypatch.setattr("ghost.claims.tex.MOST_LINES", 1000)
    for number in range(10):
        (tmp_path / f"{number}.tex").write_text(f"\\input{{{number + 1}}}\n" * 10)
    (tmp_path / "10.tex").write_text("a 7")
    with pytest.raises(GhostError, match="more than 1000 lines"):
        Article(tmp_path / "0.tex")


@given(damages)
def test_a_damaged_article_is_read_or_refused(damage):
    def read(folder):
        shutil.copytree(ARTICLE, folder)
        (folder / "article.tex").write_bytes(damage.to((ARTICLE / "article.tex").read_bytes(), ".tex"))
        return read_article(Article(folder / "article.tex"), KINDS)

    with tempfile.TemporaryDirectory() as name:
        withstand(lambda: read(Path(name) / "article"))


def test_the_machinery_does_not_know_the_articles_names(root):
    """What belongs to one article stands in its ledger, and its formulas in a module that the ledger names."""
    ledger = read_ledger(root / LEDGER)
    names = {part for claim in ledger.claims if claim.startswith(("tab:", "fig:")) for part in claim.split("/")[:2]}
    names = {name for name in names if re.search("[:_A-Z]", name)} | {ledger.hardware, "GR00T", "LIBERO"}
    for path in (root / "src/ghost/claims").glob("*"):
        text = path.read_text() if path.is_file() and path.name != "formulas.py" else ""
        found = [name for name in names if re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text)]
        assert not found, (path.name, found)
