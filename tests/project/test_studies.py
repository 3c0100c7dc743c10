"""A study is shipped, read again as runs, and its table, figures and sentences are made, audited and verified.

The runs are made by the real driver; only what the policies did is made up.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pypdf
import pytest

from conftest import ROOT
from ghost.audit.compare import compare
from ghost.audit.lookup import lookup
from ghost.audit.verify import verify
from ghost.claims.sentences import USED, read_sentences, supported
from ghost.data.results import EPISODES
from ghost.errors import GhostError
from ghost.files import write_text
from ghost.project.studies import ship
from ghost.report.cells import cell_lines, read_cells
from ghost.report.headlines import metric_texts
from ghost.report.latexmk import compile_pdf
from ghost.report.lint import lint
from ghost.report.plots import closed_loop_differences, closed_loop_per_task, closed_loop_why
from ghost.report.plots.style import RC
from ghost.report.tables import latex
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.collect import results_text
from ghost.steps.macros import macros
from ghost.steps.plot import plot
from ghost.steps.read_study import read_study
from ghost.study import builds, closed_loop, closed_loop_claims
from ghost.study.closed_loop import declared
from ghost.study.closed_loop_claims import HARD
from made_up import needs_tex
from studied import SEEDS, TRIALS, make_studies, summarized


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Both levels, shipped into an empty checkout. Tests leave it as it was."""
    tmp_path = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        for name in ("paper", "config", "workflow", "requirements.lock"):
            (tmp_path / name).symlink_to(ROOT / name)
        make_studies()
    return tmp_path


@pytest.fixture
def shipped(made, monkeypatch) -> Path:
    monkeypatch.chdir(made)
    return made


@pytest.fixture(scope="module")
def built(made) -> tuple[builds.Config, dict[str, dict[str, Any]]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        return _build(made)


@pytest.fixture
def read(built, shipped) -> tuple[builds.Config, dict[str, dict[str, Any]]]:
    return built


def _build(shipped: Path) -> tuple[builds.Config, dict[str, dict[str, Any]]]:
    """A build of the report that has the study alone, and its cells."""
    experiments, artefacts = declared(shipped / closed_loop.STUDIES)
    paper = tuple(map(closed_loop.at_full_size, experiments))
    config = dataclasses.replace(builds.load({}, ROOT), experiments=experiments, paper=paper, artefacts=artefacts)
    for experiment in experiments:
        said, reads = json.dumps(config.declaration(experiment.name)), [Path(name) for name in experiment.reads]
        execute(read_study, said, config.manifest(experiment.name), (), reads)
    cells = {artefact.stage: summarized(artefact, config) for artefact in artefacts}
    for stage, made in cells.items():
        write_text(config.data / f"cells/{stage}.jsonl", cell_lines(made))
    by_id = {cell["id"]: cell for made in cells.values() for cell in made}
    write_text(config.data / "cells.jsonl", cell_lines(by_id.values()))
    runs = [run for experiment in experiments for run in open_runs(config.manifest(experiment.name))]
    write_text(config.data / "results.csv", results_text(runs))
    for name, text in metric_texts(by_id, artefacts).items():
        write_text(config.data / "metrics" / name, text)
    return config, by_id


def test_without_shipped_files_nothing_is_declared(tmp_path, shipped):
    assert declared(tmp_path / "nowhere") == ((), ())
    one = tmp_path / "studies" / HARD / closed_loop.INDEX
    write_text(one, (shipped / closed_loop.STUDIES / HARD / closed_loop.INDEX).read_text())
    assert declared(tmp_path / "studies") == ((), ())
    assert len(declared(shipped / closed_loop.STUDIES)[1]) == len(closed_loop_claims.artefacts())


def test_a_study_that_is_not_finished_is_not_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GhostError, match="snakemake study --config scale=closed_loop"):
        ship(builds.load({"scale": HARD}, ROOT))


def test_table_figures_and_sentences(read):
    config, cells = read
    assert cells["tab:closed_loop_study/MLP/trials"]["value"] == 10 * TRIALS
    assert cells["tab:closed_loop_study/MLP/runs"]["value"] == len(SEEDS)
    table = latex(config.artefact("tab:closed_loop_study"), cells)
    assert "contrastive push" in table
    assert "not run" not in table
    phase = cells["tab:closed_loop_study/claim/phase_and_mlp/difference"]
    assert phase["interval"][1] < 0  # the gated MLP fails
    assert phase["stand_ins"] == ["LIBERO assets"]
    assert phase["reduced"]
    runs = {each.name: open_runs(config.manifest(each.name)) for each in config.experiments}
    with mpl.rc_context(RC):
        for plot, bars in ((closed_loop_per_task, 4 * 10), (closed_loop_differences, 0)):
            assert len(plot.draw(runs).axes[0].patches) == bars
        heads, steadiness, levels = closed_loop_why.draw(runs).axes
    assert sum(len(line.get_xdata()) for line in heads.lines) == 4 * len(SEEDS)  # a dot a training
    drawn = [line.get_xdata()[0] for line in steadiness.lines if line.get_marker() != "None"]
    assert drawn == pytest.approx([0] * 4 + [100 / 3] * 4)  # of successes, and of failures, which go back once in three
    assert [tick.get_text() for tick in levels.get_xticklabels()] == ["80", "300"]
    said = read_sentences(ROOT / "paper/sentences.yaml")
    assert supported(said["study_phase_and_mlp_lower"], cells)[0]
    assert not supported(said["study_phase_and_mlp_higher"], cells)[0]
    assert supported(said["study_persistent_higher"], cells)[0]
    for name in ("gated_error_lower", "t8_fewer_transitions", "heads_mlp_worse", "recovers_persistent_higher"):
        assert supported(said[f"study_{name}"], cells)[0], name
    for name in ("gated_error_higher", "t8_more_transitions", "heads_mlp_better", "recovers_persistent_lower"):
        assert not supported(said[f"study_{name}"], cells)[0], name
    for name, predicate in said.items():
        if name.startswith("study_"):
            assert "there is no" not in supported(predicate, cells)[1]


def test_a_scene_that_is_corrected_at_three_steps_is_one_trial(read):
    _, cells = read
    misdirected = {name.split("/", 1)[1]: cell for name, cell in cells.items() if "misdirected/" in name}
    assert misdirected["scenes"]["value"] == TRIALS
    at = [misdirected[f"ghost_pz/T0-T1_N{step}"]["value"] for step in (50, 100, 150)]
    together = misdirected["ghost_pz/T0-T1"]
    assert together["value"] == pytest.approx(sum(at) / 3)
    assert together["n"] == misdirected["ghost_pz/T0-T1_N50"]["n"] == TRIALS


def test_every_claim_of_the_text_has_an_interval(read):
    """Whatever a predicate asks for the ends of, and each difference, rate and mean of the text, shows its interval."""
    _, cells = read
    source = (ROOT / "paper/studies/closed_loop_study.tex").read_text()
    named = set(re.findall(r"\\cell\{([^{}]*)\}", source))
    without = {name.split("/", 1)[1] for name in named if "[" not in cells[name]["shown"]}
    plain = {f"{level}/demos/episodes" for level in ("hard", "easy")} | {"scenes", "ghost_pz_ensemble/lowest"}
    assert {name for name in without if not name.endswith("/detectable")} == plain


def test_the_text_of_the_study_names_cells_and_predicates_that_exist(read, tmp_path):
    _, cells = read
    (tmp_path / "text/studies").mkdir(parents=True)
    source = (ROOT / "paper/studies/closed_loop_study.tex").read_text()
    (tmp_path / "text/studies/closed_loop_study.tex").write_text(source)
    published = re.findall(r"\\published\{([^{}]*)\}", source)
    assert lint(tmp_path / "text", {**cells, **dict.fromkeys(published)}) == []
    assert lint(tmp_path / "text", ()) == []  # without the study the text is not set
    known = read_sentences(ROOT / "paper/sentences.yaml")
    used = re.findall(r"\\whether\{([^{}]*)\}", source)
    assert {*used} == {name for name in known if name.startswith("study_")}
    assert not USED.findall(source)
    for table, claims in (("study", closed_loop_claims.CLAIMS), ("misdirected", closed_loop_claims.RECOVERIES)):
        for claim in claims:
            for short in ("difference", "detectable"):
                assert rf"\cell{{tab:closed_loop_{table}/claim/{claim}/{short}}}" in source


@pytest.mark.slow
@needs_tex
def test_tex_sets_text_tables_and_figures(read, tmp_path):
    """Both parts of the study, in documents with nothing else: no line and no table is wider than its place."""
    config, cells = read
    generated = tmp_path / "generated"
    for artefact in config.artefacts:
        if artefact.table:
            write_text(generated / f"{artefact.stage}.tex", latex(artefact, cells))
        else:
            manifests = tuple(config.manifest(name) for name in artefact.experiments)
            plot(artefact.label, generated / artefact.label, manifests, pgf=True)
    macros(config.data / "cells.jsonl", config.scale, generated, "audit.html", tuple(a.id for a in config.artefacts))
    for name, label in (("report", "closed_loop_study"), ("supplement", "closed_loop_misdirected")):
        given = "[supplement]" if name == "supplement" else ""
        head = rf"\documentclass[journal]{{IEEEtran}}\usepackage{given}{{ghost}}\input{{numbers}}"
        body = (
            rf"\begin{{document}}\ghostifstudy{{{label}}}{{there}}{{not there}}. \ghoststudy{{{label}}}\end{{document}}"
        )
        write_text(tmp_path / f"{name}.tex", head + body)
        pdf = compile_pdf(tmp_path / f"{name}.tex", tmp_path, search=(generated, ROOT / "paper"))
        text = " ".join(" ".join(page.extract_text() for page in pypdf.PdfReader(pdf).pages).split())
        assert text.count("not there") == 0
        log = (tmp_path / f"{name}.log").read_text(errors="replace")
        assert not [pt for pt in re.findall(r"Overfull .hbox \(([\d.]+)pt", log) if float(pt) > 3]
        assert "set smaller than 6 pt" not in log
        if name == "report":
            assert "gating hurts the MLP, by" in text  # as was made up
            assert "the persistent latent helps (" in text  # after a wrong instruction


def test_the_audit_reaches_the_run_on_the_other_machine(read, shipped):
    config, _ = read
    there = open_runs(shipped / closed_loop.STUDIES / HARD / "runs/libero_mlp_rollout/manifest.json")
    said = " ".join(lookup(config, "tab:closed_loop_study/MLP/success").split())
    for run_there in there:
        assert f"run {run_there.run_id} of the build closed_loop" in said
    assert "reduced trials 4 (paper: 20)" in said


def test_what_is_shipped_is_verified(read, shipped):
    config, _ = read
    parts = ("studies", "runs", "cells")
    assert verify(config, parts) == []
    episodes = shipped / closed_loop.STUDIES / HARD / "runs/libero_mlp_rollout/seed42" / EPISODES
    text = episodes.read_text()
    episodes.write_text(text.replace("False", "True", 1))
    problems = {(problem.kind, Path(problem.where).name) for problem in verify(config, parts)}
    assert ("studies", EPISODES) in problems
    assert ("inputs", "run.json") in problems  # the runs that read it
    experiment = config.experiment("closed_loop_libero_mlp_rollout")
    again = json.dumps(config.declaration(experiment.name))
    with pytest.raises(GhostError, match="is not the file that its manifest lists"):
        execute(read_study, again, Path("again/runs/x/manifest.json"), (), [Path(name) for name in experiment.reads])
    episodes.write_text(text)
    more = episodes.parent / "more.csv"
    more.write_text("")
    assert [Path(problem.where).name for problem in verify(config, ("studies",))] == ["more.csv"]
    more.unlink()


def test_an_own_build_is_compared_with_the_shipped_one(shipped):
    own, there = shipped / "data/closed_loop", shipped / closed_loop.STUDIES / HARD
    assert compare(own, there) == []
    cells = own / "cells/tab_libero10.jsonl"
    before = cells.read_text()
    (cell,) = read_cells(cells).values()
    write_text(cells, cell_lines([{**cell, "value": 1.0, "shown": "1"}]))
    assert [each.cell for each in compare(own, there)] == ["tab:libero10/MLP/success"]
    cells.write_text(before)
