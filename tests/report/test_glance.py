"""Results at a glance: the block of README.md is made of declared cells, and its sentence of their fields."""

import re
import shutil

import pypdfium2
import pytest
from PIL import Image

from ghost.errors import GhostError
from ghost.report import glance, headlines
from ghost.study import ARTEFACTS

DECLARED = {f"{artefact.id}/{cell.name}" for artefact in ARTEFACTS for cell in artefact.cells}


def made_up(**fields):
    """Every chosen cell, each with a value of its own."""
    ids = [name for _, _, identity, p in headlines.chosen() for name in (identity, p) if name]
    fields = {"unit": "", "stand_ins": [], "reduced": False, **fields}
    return {name: {"shown": f"v{number}", "value": number, **fields} for number, name in enumerate(ids)}


def test_every_decoder_agent_and_policy_has_a_line_and_a_random_walk_has_none():
    ids = {identity for _, _, identity, _ in headlines.chosen()}
    assert {f"tab:lightweight/{label}/test_mse" for label in ("Ghost", "CVAE", "Ghost_BC")} <= ids
    assert {f"tab:meta_rl/{label}/latency" for label in ("Ghost", "AD")} <= ids
    assert "tab:libero10/Ghost_PZ_ensemble/success" in ids
    assert "tab:meta_rl/random_walk/latency" in DECLARED - ids


def test_a_line_has_the_value_the_p_value_and_the_cell():
    cells = made_up(unit="%")
    text = glance.block(cells, "laptop")
    value, p = cells["tab:lightweight/CVAE/test_mse"]["shown"], cells["tab:lightweight/CVAE/p"]["shown"]
    assert re.search(rf"^\|  \| CVAE \| {value} % \| {p} \| `tab:lightweight/CVAE/test_mse` \|$", text, re.M)
    ghost = cells["tab:lightweight/Ghost/test_mse"]["shown"]
    assert f"| test error (MSE), dual-arm data | Ghost | {ghost} % |  | `tab:lightweight/Ghost/test_mse` |" in text


def test_a_p_value_is_of_a_comparison_with_ghost():
    """The policies of tab:libero10 have one too, but against the MLP."""
    against = {f"{a.id}/{cell.name}": cell.against for a in ARTEFACTS for cell in a.cells}
    assert {against[p] for _, _, _, p in headlines.chosen() if p} == {"ghost_basin_curriculum_offline"}


def test_the_sentence_names_build_stand_ins_and_scale():
    text = glance.block(made_up(stand_ins=["backbone", "data"], reduced=True), "laptop")
    assert "build `laptop`" in text
    assert "stand-ins (backbone, data) and on settings that are smaller" in text
    assert "neither confirm nor refute" in text
    assert "neither" not in glance.block(made_up(), "paper")


def test_another_decoder_that_beats_ghost_is_named():
    cells = made_up()
    assert "Ghost has the lowest test error." in glance.block(cells, "laptop")
    mlp, p, ghost = (cells[f"tab:lightweight/{name}"] for name in ("MLP/test_mse", "MLP/p", "Ghost/test_mse"))
    mlp["value"] = -1
    said = f"The MLP, not Ghost, has the lowest test error: {mlp['shown']} against {ghost['shown']}, p {p['shown']}."
    assert said in glance.block(cells, "laptop")


def test_the_verdicts_are_counted_in_their_order():
    text = glance.counted(["different", "not comparable", "identical", "not comparable"])
    assert "with 4 numbers and statements of the article: 1 identical, 1 different, 2 not comparable. [" in text


def test_a_build_without_the_cells_is_refused():
    cells = made_up()
    del cells["tab:libero10/MLP/success"]
    with pytest.raises(GhostError, match="smoke has no cell tab:libero10/MLP/success"):
        glance.block(cells, "smoke")


def test_the_closed_loop_study_takes_the_place_of_the_builds_own_trials():
    """A line a policy, in the order of the table; the first one is compared with nothing."""
    shown = {"MLP/success": "61 [55, 67]", "MLP/trials": "100", "Ghost_PG/success": "70 [63, 76]"}
    shown |= {"Ghost_PG/gain": "+9 [+1, +17]", "Ghost_PG/p": "0.031", "Ghost_PG/trials": "100"}
    shown |= {"claim/ghost_and_mlp/p": "0.5"}
    cells = made_up()
    assert not glance.has_study(cells)
    assert "tab:libero10/MLP/success" in glance.block(cells, "laptop")
    marked = {"value": 1.0, "unit": "%", "stand_ins": ["LIBERO assets"], "reduced": True}
    cells |= {f"{glance.STUDY}/{name}": {"shown": text, **marked} for name, text in shown.items()}
    assert glance.has_study(cells)
    assert "tab:libero10" not in glance.block(cells, "laptop")
    head, _, *lines = glance.study(cells).splitlines()
    assert lines[0] == "| MLP | 61 [55, 67] |  |  | 100 |"
    assert lines[1] == "| Ghost PG | 70 [63, 76] | +9 [+1, +17] | 0.031 | 100 |"
    assert lines[2] == ""  # what a claim is compared with is no row
    assert {line.count("|") for line in (head, *lines[:2])} == {6}
    assert "stand-ins (LIBERO assets)" in lines[3]


def test_only_the_block_is_replaced():
    old = f"# Title\n{glance.BEGIN}old\n{glance.END}rest\n"
    assert glance.replaced(old, "new\n") == f"# Title\n{glance.BEGIN}new\n{glance.END}rest\n"
    with pytest.raises(GhostError, match="no block"):
        glance.replaced("# Title\n", "new\n")


def test_the_picture_has_two_pages_side_by_side(tmp_path):
    document = pypdfium2.PdfDocument.new()
    for _ in range(3):
        document.new_page(72, 144)
    document.save(tmp_path / "report.pdf")
    glance.picture(tmp_path / "report.pdf", tmp_path / "report.png", dpi=60)
    with Image.open(tmp_path / "report.png") as image:
        assert image.size == (120, 120)


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, glance.BROWSERS)), reason="needs Debian's chromium")
def test_a_page_is_pictured_at_a_place_of_it(tmp_path):
    """What the address names is what is seen: here all of the screen is green."""
    style = "body { margin: 0; background: red } div { height: 860px } div:target { background: #0f0 }"
    (tmp_path / "page.html").write_text(f"<!doctype html><style>{style}</style><div id='two'>two</div>")
    glance.screenshot(tmp_path / "page.html", "two", tmp_path / "shot.png")
    with Image.open(tmp_path / "shot.png") as image:
        assert image.width == 1280
        assert image.convert("RGB").getpixel((640, 400)) == (0, 255, 0)


def test_the_readme_has_a_block_of_declared_cells(root):
    text = (root / glance.README).read_text()
    assert glance.replaced(text, "") != text
    found = text.split(glance.BEGIN)[1].split(glance.END)[0]
    ids = re.findall(r"`((?:tab|fig):[^`]+)`", found)
    assert set(ids) <= DECLARED
    if ids:
        assert len(ids) >= len(headlines.SHOWN)
        assert all(line.count("|") == 6 for line in found.splitlines() if line.startswith("|"))
    else:
        assert found == "Run `make paper`, then `ghost glance`.\n"
    for picture in (glance.PICTURE, glance.PAGE_PICTURE):
        assert (root / picture).stat().st_size <= 300_000
