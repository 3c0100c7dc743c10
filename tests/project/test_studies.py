"""A study is shipped, read again as runs, and its table, figures and sentences are made, audited and verified.

The runs are made by the real driver; only what the policies did is made up.
"""

from __future__ import annotations

import dataclasses
import json
import re
import zlib
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from conftest import ROOT, declaration
from ghost.audit.compare import compare
from ghost.audit.lookup import lookup
from ghost.audit.verify import verify
from ghost.claims.sentences import USED, read_sentences, supported
from ghost.data.results import EPISODES, Measured, Outcome
from ghost.errors import GhostError
from ghost.files import write_text
from ghost.project.studies import ship
from ghost.report.cells import cell_lines, read_cells
from ghost.report.headlines import metric_texts
from ghost.report.lint import lint
from ghost.report.over_cells import OVER_CELLS, over_cells
from ghost.report.plots import closed_loop_differences, closed_loop_per_task
from ghost.report.plots.style import RC
from ghost.report.tables import latex
from ghost.runs.driver import Plan, execute
from ghost.runs.records import open_runs
from ghost.steps.collect import results_text
from ghost.steps.read_study import read_study
from ghost.steps.summarize import correct, summarize_cell
from ghost.study import builds, closed_loop
from ghost.study.closed_loop import EASY, HARD, STAGES, declared
from ghost.study.declarations import Artefact, Cell

SEEDS, TRIALS = (42, 123), 4
MISDIRECTED = [(f"T{told}-T{task}_N{at}", task) for told, task in ((0, 1), (5, 7)) for at in (50, 100, 150)]
PLAIN = [(f"T{task}", task) for task in range(10)]


def succeeds(experiment: str, condition: str, trial: int) -> bool:
    """Drawn, the same for all trainings: the gated MLP fails, the persistent Ghost succeeds, the others do either."""
    share = 0.05 if "mlp_phase" in experiment else 0.95 if "_pz_" in experiment else 0.5
    key = zlib.crc32(f"{experiment}/{condition}".encode())
    return bool(np.random.default_rng([key, trial]).random() < share)


def acted(experiment: str, folder: Path, seed: int) -> Outcome:
    """What a rollout leaves."""
    together = "ensemble" in experiment
    lines = [
        {
            "condition": condition,
            "task": task,
            "trial": trial,
            "training_seed": -1 if together else seed,
            "env_seed": seed if together else 0,
            "start": f"{condition}-{trial}",
            "success": succeeds(experiment, condition, trial),
        }
        for condition, task in (MISDIRECTED if "misdirected" in experiment else PLAIN)
        for trial in range(TRIALS)
    ]
    episodes = pd.DataFrame(lines)
    (folder / EPISODES).write_text(episodes.to_csv(index=False, lineterminator="\n"))
    measured = [Measured("all", "success", float(episodes.success.mean()), len(episodes))]
    for condition, group in episodes.groupby("condition"):
        measured.append(Measured(str(condition), "success", float(group.success.mean()), len(group)))
        measured.append(Measured(str(condition), "subphases", 2 + int(group.task.iloc[0]) % 3))
    for end in ("succeeded", "failed"):
        measured += [Measured(f"T8/{end}", name, 4.0, 2) for name in ("transitions", "second_object_percent")]
    return Outcome(measured, files=(EPISODES,))


def run(name: str, config: builds.Config) -> None:
    """The runs of an experiment of a level."""
    demos = name == "libero_demos"
    stand_in = {"of": "LIBERO assets", "evidence": "", "real": None, "made": None}
    said = declaration(
        name,
        scale=config.scale,
        seeds=[0] if demos else [0, 1] if "ensemble" in name else list(SEEDS),
        stand_ins=[stand_in],
        reduced={"trials": {"here": TRIALS, "paper": 20}},
    )

    def work(unit: Any) -> Outcome:
        return Outcome([Measured("all", "episodes", 80)]) if demos else acted(name, unit.folder, unit.seed)

    execute(lambda job: Plan(work), json.dumps(said), config.manifest(name))


def summarized(artefact: Artefact, config: builds.Config) -> list[dict[str, Any]]:
    """Its cells, as the step makes them."""
    runs = {name: open_runs(config.manifest(name)) for name in artefact.experiments}
    cells = artefact.declaration()
    plain = [cell for cell in cells if cell["estimator"] not in OVER_CELLS]
    made = [summarize_cell(cell, runs.get(cell["experiment"], []), runs.get(cell["against"], [])) for cell in plain]
    correct(made, {cell["id"]: cell["digits"] for cell in cells})
    return [*made, *over_cells(cells, made)]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Both levels, shipped into an empty checkout. Tests leave it as it was."""
    tmp_path = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        _make(tmp_path)
    return tmp_path


@pytest.fixture
def shipped(made, monkeypatch) -> Path:
    monkeypatch.chdir(made)
    return made


def _make(tmp_path: Path) -> None:
    for name in ("paper", "config", "workflow", "requirements.lock"):
        (tmp_path / name).symlink_to(ROOT / name)
    needed = {name for artefact in closed_loop.artefacts() for name in artefact.experiments}
    for level in (HARD, EASY):
        config = builds.load({"scale": level}, ROOT)
        for name in sorted(
            each.name for each in config.experiments if closed_loop.recorded(each.name, level) in needed
        ):
            run(name, config)
        if level == HARD:
            cell = Cell("MLP/success", "libero_mlp_rollout", "success", "all", "success_rate", ".0f", "%")
            first = dataclasses.replace(config.artefact("tab:libero10"), cells=(cell,))
            for stage in STAGES:
                lines = cell_lines(summarized(first, config)) if stage == "tab_libero10" else ""
                write_text(config.data / f"cells/{stage}.jsonl", lines)
        assert "MB" in ship(config)


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
    assert len(declared(shipped / closed_loop.STUDIES)[1]) == 3


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
    said = read_sentences(ROOT / "paper/sentences.yaml")
    assert supported(said["study_phase_and_mlp_lower"], cells)[0]
    assert not supported(said["study_phase_and_mlp_higher"], cells)[0]
    assert supported(said["study_persistent_higher"], cells)[0]
    for name, predicate in said.items():
        if name.startswith("study_"):
            assert "there is no" not in supported(predicate, cells)[1]


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
    for claim in closed_loop.CLAIMS:
        for short in ("difference", "detectable"):
            assert rf"\cell{{tab:closed_loop_study/claim/{claim}/{short}}}" in source


def test_the_audit_reaches_the_run_on_the_other_machine(read, shipped):
    config, _ = read
    there = open_runs(shipped / closed_loop.STUDIES / HARD / "runs/libero_mlp_rollout/manifest.json")
    said = " ".join(lookup(config, "tab:closed_loop_study/MLP/success").split())
    for run_there in there:
        assert f"run {run_there.run_id} of the build closed_loop" in said


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
