"""Planted defects: each is found, and named. In a copy of the project in which the smoke DAG has run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pypdf
import pytest
from pypdf.generic import NameObject, TextStringObject
from small_build import forge

from ghost.audit.affected import Query, affected
from ghost.audit.answer import answer
from ghost.audit.build import Build
from ghost.audit.checks.pdf import check_pdf
from ghost.audit.checks.report import Report
from ghost.audit.checks.runs import Runs
from ghost.audit.lookup import NO_METRIC, explain
from ghost.audit.verify import verify
from ghost.errors import GhostError
from ghost.files import hashes, read_json, write_json
from ghost.report.over_cells import OVER_CELLS
from ghost.study.builds import load

pytestmark = pytest.mark.slow
RUNS = Path("data/smoke/runs")


@pytest.fixture
def config(project, monkeypatch):
    monkeypatch.chdir(project)
    return load({"scale": "smoke"})


@pytest.fixture
def keep(config, tmp_path):
    """Put files and folders of the build back after a test has spoilt them."""
    kept: list[tuple[Path, Path]] = []

    def remember(path: Path) -> Path:
        copy = tmp_path / f"kept{len(kept)}"
        (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
        kept.append((path, copy))
        return path

    yield remember
    for path, copy in reversed(kept):
        if copy.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(copy, path)
        else:
            shutil.copy(copy, path)


def said(config, *parts: str) -> str:
    found = verify(config, parts) if parts else verify(config)
    return "\n".join(f"{problem.kind} {problem.where}: {problem.says}" for problem in found)


def test_a_whole_build_has_no_problem(config):
    assert said(config) == ""


def test_a_changed_checkpoint_is_named(config, keep):
    path = keep(RUNS / "ghost/seed42/model.safetensors")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert f"files {path}: was changed" in said(config, "runs")


def test_an_edited_value_is_named_also_when_every_hash_was_mended(config, keep):
    folder = keep(RUNS / "cvae_offline")
    values, manifest = folder / "seed42/measured.csv", folder / "manifest.json"
    lines = values.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("all,mse,"))
    lines[at] = "all,mse,0.001," + lines[at].split(",")[-1]
    values.write_text("\n".join(lines) + "\n")
    assert f"files {values}: was changed" in said(config, "runs")
    forge(manifest, 42, lambda record: record["outputs"].update({"measured.csv": hashes(values)}))
    found = said(config, "cells")
    assert "tab:lightweight/CVAE/test_mse does not recompute from the measured values" in found
    assert "results.csv: was edited, or is stale" in found


def test_a_number_edited_in_the_tex_is_named(config, keep):
    table = keep(config.generated / "tab_lightweight.tex")
    table.write_text(table.read_text().replace("0.", "9.", 1))
    assert f"text {table}: was edited, or is stale: line" in said(config, "text")


def test_a_number_typed_into_the_text_is_named(config, keep):
    section = keep(Path("paper/sections/conclusion.tex"))
    section.write_text(section.read_text() + "\nIt gains 13.5 points.\n")
    assert "typed number 13.5" in said(config, "text")


def test_a_deleted_seed_is_named(config, keep):
    folder = keep(RUNS / "cvae_offline")
    listing = read_json(folder / "manifest.json")
    listing["runs"] = [run for run in listing["runs"] if run["seed"] != 123]
    write_json(folder / "manifest.json", listing)
    shutil.rmtree(folder / "seed123")
    found = said(config, "runs", "cells")
    assert "seeds [123] of cvae_offline are missing: 1 of 2" in found
    assert "tab:lightweight/CVAE/test_mse" in found


def test_a_swapped_run_is_named(config, keep):
    folder = keep(RUNS / "cvae_offline")
    (folder / "seed42").rename(folder / "other")
    (folder / "seed123").rename(folder / "seed42")
    (folder / "other").rename(folder / "seed123")
    found = said(config, "runs")
    assert "records data/smoke/runs/cvae_offline/seed42/run.json" in found
    assert "but the manifest lists" in found


def test_a_swap_that_the_manifest_follows_is_named_too(config, keep):
    folder = keep(RUNS / "cvae_offline")
    (folder / "seed42").rename(folder / "other")
    (folder / "seed123").rename(folder / "seed42")
    (folder / "other").rename(folder / "seed123")
    text = (folder / "manifest.json").read_text()
    listing = json.loads(text.replace("seed42/", "seed@/").replace("seed123/", "seed42/").replace("seed@/", "seed123/"))
    for run in listing["runs"]:
        run["seed"] = {42: 123, 123: 42}[run["seed"]]
    write_json(folder / "manifest.json", listing)
    assert "was swapped: this is the run of cvae_offline, seed 123" in said(config, "runs")


def test_a_stale_feature_cache_is_named(config, keep):
    manifest = keep(RUNS / "dual_arm_features/manifest.json")
    listing = read_json(manifest)
    listing["runs"][0]["files"]["seed0/measured.csv"] = "0" * 64
    write_json(manifest, listing)
    found = said(config, "runs")
    assert "inputs data/smoke/runs/ghost/seed42/run.json: is stale" in found
    assert "the files of dual_arm_features/seed0 have changed since" in found


@pytest.mark.parametrize("which", [0, 1])
def test_a_pdf_from_another_build_is_named(config, keep, which):
    path = keep(config.pdfs[which])
    writer = pypdf.PdfWriter(clone_from=path)
    writer.add_metadata({"/GhostCells": "0" * 64})
    writer.write(path)
    assert f"pdf {path}: is from another build: made from cells 00000000" in said(config, "pdf")


def test_a_cell_that_the_pdf_prints_otherwise_is_named(config, keep):
    cells = keep(config.data / "cells.jsonl")
    cells.write_text(cells.read_text().replace('"shown":"10"', '"shown":"11"', 1))
    found = said(config, "cells", "pdf")
    assert "does not recompute" in found
    assert "pdf" not in found  # it prints what the runs give


def test_a_pdf_that_prints_another_number_is_named(config):
    runs = Runs(config)
    report = Report(runs)
    assert [*runs.check(), *report.check_cells(), *check_pdf(report)] == []
    identity = "tab:lightweight/CVAE/test_mse"
    report.cells[identity] = {**report.cells[identity], "shown": "4711"}
    found = "\n".join(problem.says for problem in check_pdf(report))
    assert "is from another build" in found
    assert f"where the cell {identity} has '4711'" in found
    where = {problem.where.split(",")[0] for problem in check_pdf(report) if identity in problem.says}
    assert where == set(map(str, config.pdfs))  # in the table, and in the entry of the supplement
    report.cells["tab:lightweight/CVAE/new"] = {**report.cells.pop(identity), "id": "tab:lightweight/CVAE/new"}
    found = "\n".join(problem.says for problem in check_pdf(report))
    assert "lacks 1 cells, tab:lightweight/CVAE/new among them" in found
    assert f"a link leads nowhere: {config.page}#{identity}" in found


@pytest.mark.parametrize(
    ("which", "action", "says"),
    [
        (0, {"/F": "ghost_supplement.pdf", "/D": "prov:none"}, "a link leads nowhere: prov:none"),
        (
            0,
            {"/F": "elsewhere.pdf", "/D": "prov:none"},
            "a link leads to a file that is not of this build: elsewhere.pdf",
        ),
        (1, {"/F": "ghost.pdf", "/D": "figure.caption.99"}, "a link leads nowhere: figure.caption.99"),
    ],
)
def test_a_dead_link_from_one_pdf_to_the_other_is_named(config, keep, which, action, says):
    path = keep(config.pdfs[which])
    writer = pypdf.PdfWriter(clone_from=path)
    links = [link.get_object()["/A"] for page in writer.pages for link in page.get("/Annots", [])]
    across = next(link for link in links if link["/S"] == "/GoToR" and isinstance(link["/D"], str))
    across.update({NameObject(key): TextStringObject(value) for key, value in action.items()})
    writer.write(path)
    assert f"{path}, page 1: {says}" in said(config, "pdf")


def test_a_damaged_supplement_does_not_hide_the_report(config, keep):
    supplement = keep(config.supplement)
    supplement.write_bytes(b"no PDF")
    report = keep(config.pdf)
    writer = pypdf.PdfWriter(clone_from=report)
    writer.add_metadata({"/GhostCells": "0" * 64})
    writer.write(report)
    found = said(config, "pdf")
    assert f"pdf {supplement}: is not a PDF that can be read" in found
    assert f"pdf {report}: is from another build" in found
    assert "leads nowhere" not in found  # nobody knows


def test_the_way_back_from_a_training_run_reaches_cells_figures_and_sentences(config):
    build = Build.open(config)
    trained = next(run for run in build.manifests["cvae"] if run.seed == 123)
    found = affected(build, Query(run=trained.run_id))
    assert found.runs == [trained.run_id]
    assert {build.records[run_id]["experiment"] for run_id in found.above} == {"cvae_offline"}
    assert {build.runs[run_id].seed for run_id in found.above} == {123}  # the other seed is not touched
    assert "tab:lightweight/CVAE/test_mse" in found.cells
    assert not [identity for identity in found.cells if identity.startswith("fig:switch_speed")]
    assert found.artefacts == ["tab:lightweight"]
    assert any("the variational decoder" in sentence for sentence in found.sentences)


def test_the_way_back_from_a_host_a_commit_a_file_and_a_seed(config):
    build = Build.open(config)
    record = build.records[build.manifests["switch_speed"][0].run_id]
    assert set(affected(build, Query(host=record["host"])).runs) == set(build.runs)
    assert len(affected(build, Query(commit=record["commit"][:10])).runs) == len(build.runs)
    file = affected(build, Query(file="src/ghost/simulations/dwell_time.py"))
    assert [build.records[run]["experiment"] for run in file.runs] == ["dwell_time"]
    demos = affected(build, Query(file="data/smoke/runs/dual_arm/manifest.json"))
    assert "tab:ablation/Move_parts/mse/dual" in demos.cells
    assert "tab:lightweight/CVAE/p" in affected(build, Query(seed=42)).cells
    with pytest.raises(GhostError, match="no run with gpu GPU-1"):
        affected(build, Query(gpu="GPU-1"))


def test_a_cell_leads_down_to_the_demonstrations(config):
    build = Build.open(config)
    runs = build.cells["tab:lightweight/CVAE/test_mse"]["runs"]
    below = [(depth, build.records[run.run_id]["experiment"]) for depth, run in build.lineage(runs)]
    assert below[0] == (0, "cvae_offline")
    assert (1, "cvae") in below
    assert (2, "dual_arm") in below
    text, _ = answer(config, "tab:lightweight/CVAE/test_mse", Query(), json=True)
    records = json.loads(text)[0]["records"]
    assert {record["experiment"] for record in records} >= {"cvae", "dual_arm_features", "dual_arm"}


def test_two_builds_are_compared_and_one_question_is_asked_at_a_time(config, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(config.data, other, ignore=shutil.ignore_patterns("*.safetensors", "*.parquet", "paper", "figures"))
    assert answer(config, "", Query(), diff=(config.data, other)) == ("no cell differs", 0)
    cells = other / "cells.jsonl"
    cells.write_text(
        "".join(
            line.replace('"shown":"10"', '"shown":"11"') if "gru_a0.30/steps" in line else line
            for line in cells.read_text().splitlines(keepends=True)
        )
    )
    text, code = answer(config, "", Query(), diff=(config.data, other))
    assert "1 cells differ" in text
    assert code == 1
    with pytest.raises(GhostError, match="ask one thing"):
        answer(config, "", Query())
    with pytest.raises(GhostError, match="ask one thing"):
        answer(config, "tab:", Query(seed=42))


def test_every_cell_can_be_explained(config):
    build = Build.open(config)
    for cell in build.cells.values():
        text = explain(build, cell)
        assert text.startswith(f"cell       {cell['id']}\n")
        follows = cell["estimator"] in OVER_CELLS and f"\nof         {cell['id'].partition('/')[0]}/" in text
        assert cell["estimator"] in NO_METRIC or follows or "\ncomputed   src/ghost/" in text
