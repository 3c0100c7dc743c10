import dataclasses
import importlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from ghost.data.sampling import Draw, WholeEpisodes
from ghost.errors import GhostError
from ghost.libero import episodes as libero
from ghost.report.estimators import COMPARISONS, ESTIMATORS
from ghost.report.over_cells import OVER_CELLS
from ghost.runs.settings import read_settings
from ghost.study import ARTEFACTS, EXPERIMENTS, find_artefact
from ghost.study.ablation import DUAL
from ghost.study.declarations import Artefact, Cell, check
from ghost.training.loop import Training

FIGURES = [
    "ghost_mechanism",
    "method",
    "diagnostic",
    "switch_speed",
    "meta_rl",
    "metaworld_alignment",  # ours: the paper has it in words
    "attractor_emergence",
    "e2e_trajectory",
    "attractor_basins",
    "ablation_paired",
    "libero_per_task",
    "libero_complexity",
    "dwell_time",
    "growth",  # ours, as tab:benchmarks is
]
TABLES = [
    "theory_method_map",
    "meta_rl",
    "groot_distill",
    "multi_task",
    "lightweight",
    "loss_ablation",
    "ablation",
    "libero10",
    "attractor_tradeoff",
    "benchmarks",
]


def test_the_papers_labels_are_declared():
    assert {a.label for a in ARTEFACTS if a.kind == "fig"} == set(FIGURES)
    assert {a.label for a in ARTEFACTS if a.kind == "tab"} == set(TABLES)


def test_a_doubled_name_is_refused():
    with pytest.raises(GhostError, match=r"experiment 'switch_speed' stands twice"):
        check([*EXPERIMENTS, next(e for e in EXPERIMENTS if e.name == "switch_speed")], ARTEFACTS)
    with pytest.raises(GhostError, match="artefact 'fig:method' stands twice"):
        check(EXPERIMENTS, [*ARTEFACTS, Artefact("fig", "method")])
    cell = Cell("a", "switch_speed", "dt")
    with pytest.raises(GhostError, match="cell of fig:x 'a' stands twice"):
        check(EXPERIMENTS, [Artefact("fig", "x", "plot", (cell, cell))])
    doubled = dataclasses.replace(EXPERIMENTS[0], seeds=(1, 1))
    with pytest.raises(GhostError, match="seed of"):
        check([doubled], [])


def test_a_cell_of_an_unknown_experiment_is_refused():
    with pytest.raises(GhostError, match="did you mean switch_speed"):
        check(EXPERIMENTS, [Artefact("fig", "x", "plot", (Cell("a", "swich_speed", "dt"),))])


def test_a_need_must_stand_above():
    first = dataclasses.replace(EXPERIMENTS[0], needs=(EXPERIMENTS[1].name,))
    with pytest.raises(GhostError, match="which does not stand above it"):
        check([first, EXPERIMENTS[1]], [])


def test_every_experiment_makes_settings_of_its_module():
    for experiment in EXPERIMENTS:
        module = importlib.import_module(experiment.module)
        kinds = [libero.Settings if experiment.step == "rollout" else module.Settings]
        if experiment.step in ("train", "train_agent"):
            kinds.append(Training)
        if experiment.step == "cache_features":
            kinds.append(WholeEpisodes if "stride" in experiment.settings else Draw)
        read_settings(experiment.name, experiment.settings, *kinds)


def test_every_built_artefact_has_its_sources(root):
    for artefact in ARTEFACTS:
        for name in artefact.sources:
            assert (root / name).exists(), name
        for module in artefact.modules if artefact.step else ():
            importlib.import_module(module)


def test_every_estimator_is_known():
    assert {cell.estimator for a in ARTEFACTS for cell in a.cells} <= {*ESTIMATORS, *COMPARISONS, *OVER_CELLS}


def test_lookup_suggests_near_names():
    assert find_artefact("fig:method").label == "method"
    with pytest.raises(GhostError, match="did you mean fig:switch_speed"):
        find_artefact("fig:swich_speed")


def test_a_cell_knows_the_line_that_declares_it(root):
    declared = {f"{artefact.id}/{cell.name}": cell.declared for artefact in ARTEFACTS for cell in artefact.cells}
    for identity, written in {
        "tab:lightweight/CVAE/test_mse": 'Column("test_mse", "Test MSE"',
        "tab:lightweight/CVAE/p": "comparison(d.tested, PROPOSED.tested",
        "fig:switch_speed/gru_a0.30/ratio": 'values("switch_speed", GRUS[1:3], ".2f", "ratio")',
        "tab:multi_task/runs": "runs(PLAIN.tested)",
    }.items():
        name, _, line = declared[identity].partition(":")
        assert written in (root / name).read_text().splitlines()[int(line) - 1]
    here = Cell("a", "switch_speed", "dt")
    assert here.declared.startswith("tests/study/test_experiments.py:")
    assert dataclasses.replace(here, name="b").declared == here.declared
    artefact = Artefact("fig", "x", "plot", (here,))
    assert (
        artefact.declaration()
        == Artefact("fig", "x", "plot", (dataclasses.replace(here, declared="y:1"),)).declaration()
    )


ASKED = """
import json
from ghost.report.tables import latex
from ghost.study import EXPERIMENTS, find_artefact
from ghost.study.builds import load
table = find_artefact("tab:lightweight")
cells = {f"tab:lightweight/{cell.name}": {"id": f"tab:lightweight/{cell.name}", "shown": "1"} for cell in table.cells}
print(json.dumps({
    "modules": {experiment.name: experiment.modules for experiment in EXPERIMENTS},
    "seeds": {experiment.name: experiment.seeds for experiment in load({"scale": "smoke"}).experiments},
    "timed": next(experiment for experiment in EXPERIMENTS if experiment.name == "latency").settings["decoders"],
    "cells": {cell.name: cell.estimator for cell in table.cells},
    "latex": latex(table, cells),
}))
"""


def test_a_new_decoder_is_one_line_of_the_study(root, tmp_path):
    """From it come its training, its test, its place in the measurement of latency, its row and its comparison."""
    for name in ("src", "config", "workflow/schemas"):
        shutil.copytree(root / name, tmp_path / name)
    study = tmp_path / "src/ghost/study/offline.py"
    line = '    Decoder("MLP", "MLP", "mlp", {**WIDTHS, "layers": 3}),\n'
    assert study.read_text().count(line) == 1
    mine = '    Decoder("LSTM", "LSTM, two layers", "lstm", {"hidden": 64, "layers": 2}),\n'
    study.write_text(study.read_text().replace(line, line + mine))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run([sys.executable, "-c", ASKED], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["modules"]["lstm"] == ["ghost.steps.train", "ghost.decoders.lstm"]
    assert said["modules"]["lstm_offline"] == [
        "ghost.steps.evaluate",
        "ghost.evaluations.offline",
        "ghost.decoders.lstm",
    ]
    assert said["seeds"]["lstm"] == said["seeds"]["lstm_offline"] == [42, 123]
    assert said["timed"]["lstm"] == {"module": "ghost.decoders.lstm", "settings": {"hidden": 64, "layers": 2}}
    assert "ghost.decoders.lstm" in said["modules"]["latency"]
    assert {name for name, estimator in said["cells"].items() if estimator == "holm_p"} == {
        f"{name}/holm_p" for name in ("CVAE", "Neural_ODE", "MLP", "LSTM", "Transformer", "Diffusion")
    }
    row = next(line for line in said["latex"].splitlines() if line.startswith("LSTM, two layers &"))
    assert "---" not in row
    assert "prov:tab:lightweight/LSTM/d" in row


def test_two_phases_on_ten_tasks_differ_from_one_in_the_dynamics_alone():
    """Else a difference would not be due to them."""
    by_name = {experiment.name: experiment for experiment in EXPERIMENTS}
    one, two = by_name["ghost"], by_name["dual_ten_tasks"]
    assert {**one.settings, **DUAL} == two.settings
    assert one.seeds == two.seeds
    compared = {cell.name: cell for cell in find_artefact("tab:ablation").cells}["ten_tasks/arm_mse/p"]
    assert (compared.experiment, compared.against) == ("dual_ten_tasks_offline", "ghost_offline")
