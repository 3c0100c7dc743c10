"""The annotated article: a mark at every number of the ledger, the text unchanged, and nothing that TeX could harm."""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pypdf
import pytest
from PIL import Image

from ghost.claims.annotate import annotate, marks_of
from ghost.claims.article import keys
from ghost.claims.ledger import LEDGER, read_ledger
from ghost.claims.pdflatex import find_missing, lay_out, typeset
from ghost.claims.tex import Article
from ghost.claims.weave import weave
from ghost.errors import GhostError
from ghost.report.appendix import anchor
from ghost.report.tex import available
from ghost.study.builds import load
from made_up import made_up

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not available(), reason="no LaTeX on this machine")]
SOURCE = os.environ.get("GHOST_ARTICLE")
LEDGER_OF_GHOST = Path(__file__).parents[2] / LEDGER


@pytest.fixture
def made(tmp_path, monkeypatch, root):
    return made_up(tmp_path, monkeypatch, root)


def pages(pdf):
    """The text of each page, without blanks and hyphens at the ends of lines."""
    return [re.sub(r"-\n|\s", "", page.extract_text()) for page in pypdf.PdfReader(pdf).pages]


def plain_pages(source, folder):
    """The pages of the article without any mark."""
    article = Article(source)
    missing = find_missing(article)
    lay_out(article, {**article.edited(missing.edits), **missing.files}, folder)
    return pages(typeset(folder, article.main).pdf)


def links(pdf):
    """Names that links go to, addresses that they go to, and the names there are."""
    reader = pypdf.PdfReader(pdf)
    actions = [a.get_object().get("/A", {}) for page in reader.pages for a in page.get("/Annots") or ()]
    inside = {str(action["/D"]) for action in actions if action.get("/S") == "/GoTo"}
    outside = {str(action["/URI"]) for action in actions if action.get("/S") == "/URI"}
    return inside, outside, set(reader.named_destinations)


def notes(pdf):
    every = [a.get_object() for page in pypdf.PdfReader(pdf).pages for a in page.get("/Annots") or ()]
    return [note for note in every if note["/Subtype"] == "/Text"]


def test_every_number_of_the_ledger_is_marked_and_the_text_is_unchanged(made, tmp_path):
    out = tmp_path / "out/annotated.pdf"
    said = annotate(made.build, made.article, made.ledger, out)
    places = [at for claim in read_ledger(made.ledger).claims.values() for at in claim.at]
    every = Counter(anchor(key) for at in places for key in keys(at))
    assert marks_of(out) == every - Counter(["22.4"])
    assert f"{every.total() - 1} numbers" in said
    assert "not marked: 22.4: TeX reads only its first digit" in said
    assert "missing: the package nosuchstyle" in said
    assert "missing: 1 figure (figures/old_switch)" in said
    assert "missing: the bibliography nosuch.bib: 1 citation shown as [?]" in said
    assert len(notes(out)) == len(places) - 1

    texts = {note["/Contents"].split(":")[0]: note["/Contents"] for note in notes(out)}
    assert "printed: 4.2 times\nours: 4.3, 95 % interval [4.2, 4.4], n = 5\nstand-in: data" in texts["abstract/15.1"]
    found = pages(out)
    article = plain_pages(made.article, tmp_path / "plain")
    assert found[1 : 1 + len(article)] == article
    assert "33numberscarrytheverdict" in found[0]
    assert "nosuchstyle" in found[0]
    assert "tab:metarl/speedup" in "".join(found[2:]).replace("_", "")

    inside, outside, names = links(out)
    assert inside <= names, "a link that leads nowhere"
    assert any(link.endswith("audit.html#tab:meta_rl/speedup") for link in outside)
    assert (out.parent / next(iter(outside)).split("#")[0]).resolve() == made.build.data.resolve() / "audit.html"


def test_two_builds_give_the_same_bytes_and_leave_the_article_alone(made, tmp_path):
    before = {path: path.read_bytes() for path in made.article.parent.rglob("*") if path.is_file()}
    annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")
    first = (tmp_path / "a.pdf").read_bytes()
    annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == first
    assert {path: path.read_bytes() for path in made.article.parent.rglob("*") if path.is_file()} == before


def test_an_article_runs_no_command_and_writes_no_file(made, tmp_path):
    text = made.article.read_text()
    made.article.write_text(text.replace("touch pwned", f"touch {tmp_path}/pwned"))
    annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")
    assert not (tmp_path / "pwned").exists()
    leak = rf"\newwrite\leak\immediate\openout\leak={tmp_path}/leaked.txt \immediate\write\leak{{pwned}}"
    made.article.write_text(text.replace(r"\maketitle", rf"\maketitle{leak}"))
    with pytest.raises(GhostError, match=r"LaTeX made no PDF: .*can't write on file"):
        annotate(made.build, made.article, made.ledger, tmp_path / "b.pdf")
    assert not (tmp_path / "leaked.txt").exists()
    assert not (tmp_path / "b.pdf").exists()
    (tmp_path / "secret.txt").write_text("42 is secret")
    hidden = rf"\newread\spy\openin\spy={tmp_path}/secret.txt \ifeof\spy\else\read\spy to\line\line\fi"
    made.article.write_text(text.replace(r"\maketitle", rf"\maketitle{hidden}"))
    annotate(made.build, made.article, made.ledger, tmp_path / "c.pdf")
    assert "secret" not in "".join(pages(tmp_path / "c.pdf"))


def test_an_article_embeds_no_file_from_outside_of_its_folder(made, tmp_path):
    r"""\pdfobj is not held back by openin_any, and nobody sees what it embeds. The article tries to hide it as well."""
    (tmp_path / "secret.txt").write_text("42 is secret")
    text = made.article.read_text()
    hide = r"\newwrite\list\immediate\openout\list=\jobname.fls \immediate\write\list{INPUT article.tex}"
    embed = rf"\immediate\pdfobj stream file{{{tmp_path}/secret.txt}}\pdfrefobj\pdflastobj"
    made.article.write_text(text.replace(r"\maketitle", rf"\maketitle{embed}{hide}\immediate\closeout\list "))
    with pytest.raises(GhostError, match=r"article\.tex has TeX read .*secret\.txt, which is outside"):
        annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")
    with pytest.raises(GhostError, match=r"article\.tex has TeX read .*secret\.txt, which is outside"):
        weave(made.build, made.article, made.ledger, tmp_path / "woven", False)
    assert not (tmp_path / "a.pdf").exists()
    assert not (tmp_path / "woven/article.pdf").exists()


def test_no_file_but_an_annotated_article_is_written_over(made, tmp_path):
    figure = made.article.parent / "figure.pdf"
    figure.write_bytes(b"a figure of the article")
    for out in (made.article, figure):
        before = out.read_bytes()
        with pytest.raises(GhostError, match="is not a name for the annotated PDF"):
            annotate(made.build, made.article, made.ledger, out)
        assert out.read_bytes() == before


def test_an_endless_article_is_stopped(made, tmp_path, monkeypatch):
    monkeypatch.setattr("ghost.claims.pdflatex.SECONDS", 2)
    made.article.write_text(made.article.read_text().replace(r"\maketitle", r"\maketitle\def\x{\x}\x"))
    with pytest.raises(GhostError, match=r"pdflatex ran for more than 2 s on article.tex and was stopped"):
        annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")


def test_a_picture_that_is_a_link_out_of_the_folder_is_not_used(made, tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "private.png")
    (made.article.parent / "figures").mkdir()
    (made.article.parent / "figures/old_switch.png").symlink_to(tmp_path / "private.png")
    article = Article(made.article)
    lay_out(article, article.edited({}), tmp_path / "scratch")
    assert (tmp_path / "scratch/article.tex").exists()
    assert not (tmp_path / "scratch/figures").exists()
    assert "1 figure (figures/old_switch)" in find_missing(article).lines


def test_a_line_on_which_a_mark_breaks_tex_is_left_without(made, tmp_path):
    text = made.article.read_text()
    strange = r"\newcommand{\counted}[1]{\ifnum#1>0 many\fi}"
    text = text.replace(r"\title", strange + r"\title").replace(r"\share{95}", r"\counted{95}")
    made.article.write_text(text)
    said = annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")
    assert "not marked: 24.1: TeX refuses a mark on this line" in said
    assert marks_of(tmp_path / "a.pdf")["24.1"] == 0
    assert "32 numbers" in said
    assert "TeX," not in said, "the article itself has no error"


def test_a_ledger_of_another_article_is_refused_and_a_changed_number_is_listed(made, tmp_path):
    text = made.article.read_text()
    made.article.write_text(text.replace("over three rooms", "over four rooms"))
    said = annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")
    assert "not marked: 16.1: abstract/16.1 says 3; the article prints four" in said
    with pytest.raises(GhostError, match="the ledger is not of"):
        annotate(made.build, made.article, LEDGER_OF_GHOST, tmp_path / "b.pdf")


def test_what_is_no_article_is_one_line(made, tmp_path):
    with pytest.raises(GhostError, match="there is no article"):
        annotate(made.build, tmp_path / "nowhere.tex", made.ledger, tmp_path / "a.pdf")
    part = made.article.parent / "sections/results2.tex"
    shutil.copy(part, made.article)
    with pytest.raises(GhostError, match=r"the ledger is not of|not a whole article"):
        annotate(made.build, made.article, made.ledger, tmp_path / "a.pdf")


@pytest.mark.skipif(not SOURCE, reason="the article is not ours to ship: GHOST_ARTICLE names its source")
def test_every_number_of_the_real_article_is_marked(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    out = tmp_path / "annotated.pdf"
    said = annotate(load({"scale": "paper"}, root), Path(SOURCE), LEDGER, out)
    every = Counter(key for claim in read_ledger().claims.values() for at in claim.at for key in keys(at))
    assert marks_of(out) == every
    assert f"{every.total()} numbers" in said
    assert "not marked" not in said
    article = plain_pages(Path(SOURCE), tmp_path / "plain")
    assert pages(out)[1 : 1 + len(article)] == article
