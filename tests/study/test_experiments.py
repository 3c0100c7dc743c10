import dataclasses
import importlib
from functools import partial

import pytest

from ghost.errors import GhostError
from ghost.report.estimators import COMPARISONS, ESTIMATORS
from ghost.runs.settings import read_settings
from ghost.steps.train import split_settings
from ghost.study import ARTEFACTS, EXPERIMENTS, find_artefact
from ghost.study.declarations import Artefact, Cell, check

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
        check([*EXPERIMENTS, next(row for row in EXPERIMENTS if row.name == "switch_speed")], ARTEFACTS)
    with pytest.raises(GhostError, match="artefact 'fig:method' stands twice"):
        check(EXPERIMENTS, [*ARTEFACTS, Artefact("fig", "method")])
    cell = Cell("a", "switch_speed", "dt")
    with pytest.raises(GhostError, match="cell of fig:x 'a' stands twice"):
        check(EXPERIMENTS, [Artefact("fig", "x", "plot", (cell, cell))])
    row = dataclasses.replace(EXPERIMENTS[0], seeds=(1, 1))
    with pytest.raises(GhostError, match="seed of"):
        check([row], [])


def test_a_cell_of_an_unknown_experiment_is_refused():
    with pytest.raises(GhostError, match="did you mean switch_speed"):
        check(EXPERIMENTS, [Artefact("fig", "x", "plot", (Cell("a", "swich_speed", "dt"),))])


def test_a_need_must_stand_above():
    first = dataclasses.replace(EXPERIMENTS[0], needs=(EXPERIMENTS[1].name,))
    with pytest.raises(GhostError, match="which does not stand above it"):
        check([first, EXPERIMENTS[1]], [])


def test_every_row_makes_settings_of_its_module():
    for row in EXPERIMENTS:
        module = importlib.import_module(row.module)
        make = partial(_split, module) if row.step in ("train", "train_agent") else module.Settings
        if row.step != "cache_features":  # its settings are the backbone's and the drawing's, taken apart by the step
            read_settings({"name": row.name, "settings": row.settings}, make)


def _split(module, **given):
    """A training's row holds the decoder's settings and the training's."""
    return split_settings(given, module)


def test_every_built_artefact_has_its_sources(root):
    for artefact in ARTEFACTS:
        for name in artefact.sources:
            assert (root / name).exists(), name
        for module in artefact.modules if artefact.step else ():
            importlib.import_module(module)


def test_every_estimator_is_known():
    assert {cell.estimator for a in ARTEFACTS for cell in a.cells} <= set(ESTIMATORS) | set(COMPARISONS)


def test_lookup_suggests_near_names():
    assert find_artefact("fig:method").label == "method"
    with pytest.raises(GhostError, match="did you mean fig:switch_speed"):
        find_artefact("fig:swich_speed")
