"""What a draft marks, the camera-ready build refuses."""

import json
import re

import pytest

from ghost.claims.sentences import USED, read_sentences, supported
from ghost.errors import GhostError
from ghost.report.appendix import doubts
from ghost.report.lint import lint_text
from ghost.report.readiness import unsupported
from ghost.study.builds import load


def cell(identity, value, **changes):
    made = {"id": identity, "shown": str(value), "value": value, "experiment": "cvae", "runs": ["r"] * 5}
    made |= dict.fromkeys(("against", "against_condition", "against_metric"), "")
    made |= {"metric": "mse", "condition": "all", "estimator": "mean_std", "unit": "", "interval": None, "n": 5}
    return {identity: {**made, "unpaired": [], "sha256": None, "stand_ins": [], "reduced": False, **changes}}


@pytest.fixture
def project(tmp_path, monkeypatch, root):
    config = load({"scale": "smoke"}, root)
    (tmp_path / "paper/sections").mkdir(parents=True)
    (tmp_path / "data/smoke").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper/sentences.yaml").write_text("order: mean('tab:x/a') < mean('tab:x/b')\n")
    (tmp_path / "paper/sections/x.tex").write_text("Text.\n\\holds{order}{A is below B.} % \\holds{comment}{}\n")

    def say(a, b):
        cells = {**cell("tab:x/a", a), **cell("tab:x/b", b)}
        (tmp_path / "data/smoke/cells.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cells.values()))
        return unsupported(tmp_path / "paper", config)

    return say


def test_a_sentence_is_refused_when_the_data_stop_supporting_it(project):
    assert project(1.0, 2.0) == []
    (complaint,) = project(3.0, 2.0)
    assert "x.tex:2: the cells do not support 'order': tab:x/a 3, tab:x/b 2" in complaint


def test_a_sentence_without_a_predicate_or_a_cell_is_not_supported(project, tmp_path):
    (tmp_path / "paper/sections/y.tex").write_text("\\holds{nope}{C.}\n")
    assert "has no predicate 'nope'" in project(1.0, 2.0)[0]
    holds, because = supported("mean('tab:x/gone') > 0", {})
    assert not holds
    assert "there is no tab:x/gone" in because


def test_predicates_of_the_report_are_expressions_over_cells_that_exist(root):
    from ghost.study import ARTEFACTS
    from ghost.study.closed_loop_claims import artefacts

    every = {*ARTEFACTS, *artefacts()}  # also where no study is shipped
    declared = {f"{artefact.id}/{one.name}": 1.0 for artefact in every for one in artefact.cells}
    cells = {identity: {"value": value, "shown": "1 ± 1", "interval": [0, 2]} for identity, value in declared.items()}
    for sentence, predicate in read_sentences(root / "paper/sentences.yaml").items():
        assert "there is no" not in supported(predicate, cells)[1], sentence


def test_every_predicate_is_bound_to_a_sentence(root):
    used = {name for path in (root / "paper/sections").glob("*.tex") for name in USED.findall(path.read_text())}
    study = (root / "paper/studies/closed_loop_study.tex").read_text()
    used |= set(re.findall(r"\\whether\{([^{}]*)\}", study))
    assert used == set(read_sentences(root / "paper/sentences.yaml"))


def test_a_predicate_knows_the_ends_of_an_interval():
    cells = {"tab:x/a": {"value": 2.0, "shown": "2", "interval": [1.0, 3.0]}, "tab:x/b": {"value": 1.0, "shown": "1"}}
    assert supported("low('tab:x/a') == 1 and high('tab:x/a') == 3", cells)[0]
    assert not supported("low('tab:x/a') > 1", cells)[0]
    assert supported("low('tab:x/b') > 0", cells) == (False, "tab:x/b has no interval")


def test_sentences_of_another_form_are_named(tmp_path):
    (tmp_path / "bad.yaml").write_text("- a\n")
    with pytest.raises(GhostError, match="must be an object"):
        read_sentences(tmp_path / "bad.yaml")


def test_doubts_name_stand_ins_scale_missing_runs_and_missing_values():
    whole = cell("tab:x/a", 1.0)["tab:x/a"]
    assert doubts(whole) == []
    assert doubts({**whole, "runs": ["r"] * 4}) == ["4 of 5 runs"]
    assert doubts({**whole, "stand_ins": ["backbone"], "reduced": True, "shown": "undefined"}) == [
        *("stand-in: backbone", "reduced scale", "undefined"),
    ]


def test_camera_ready_is_a_setting(root):
    assert not load({"scale": "smoke"}, root).camera_ready
    assert load({"scale": "smoke", "camera_ready": "true"}, root).camera_ready
    with pytest.raises(GhostError, match="camera_ready"):
        load({"scale": "smoke", "camera_ready": "perhaps"}, root)


def test_the_lint_reads_inside_a_bound_sentence(tmp_path):
    assert "typed number 17" in lint_text(tmp_path, "\\holds{order}{It gains 17.}", {})[0]
