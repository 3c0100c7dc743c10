"""The declarations of LIBERO-10: how often each policy is trained and evaluated, and that its table says so."""

import pytest

from ghost.claims.ledger import LEDGER, read_ledger
from ghost.study import ARTEFACTS, EXPERIMENTS, builds, find_artefact
from ghost.study.libero import ENSEMBLES, OWN_HEAD, POLICIES, SINGLE, TOGETHER, VARIANTS

DECLARED = {experiment.name: experiment for experiment in EXPERIMENTS}
CELLS = {f"{artefact.id}/{cell.name}": cell for artefact in ARTEFACTS for cell in artefact.cells}


def test_every_policy_is_trained_five_times_at_the_papers_size(root):
    config = builds.load({"scale": "paper"}, root)
    seeds = {experiment.name: experiment.seeds for experiment in config.experiments}
    for trained in (POLICIES, VARIANTS):
        assert {seeds[name] for name in trained} == {(42, 123, 999, 7, 2024)}
        assert {seeds[f"{name}_rollout"] for name in trained} == {(42, 123, 999, 7, 2024)}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_an_ensemble_is_evaluated_three_times(name):
    """A run for each env_seed; 0 are the official init states, in which all policies act."""
    evaluated = DECLARED[f"{name}_ensemble_rollout"]
    assert evaluated.seeds == (0, 1, 2)
    assert "env_seed" not in evaluated.settings
    assert DECLARED[f"{name}_rollout"].settings["env_seed"] == 0


def test_every_row_says_over_how_many_trainings_and_trials_it_is():
    table = find_artefact("tab:libero10")
    heads = [head.plain for head in table.table.head]
    rows = [row for group in table.table.groups for row in group]
    assert len(rows) == len(SINGLE) + len(TOGETHER) + len(OWN_HEAD)
    assert sum(map(len, table.within(()).table.groups)) == len(SINGLE) + len(TOGETHER)
    for column, estimator in (("Trainings", "runs"), ("Trials", "trials")):
        named = [row[heads.index(column)][0] for row in rows]
        assert {CELLS[f"tab:libero10/{name}"].estimator for name in named} == {estimator}
    assert CELLS["tab:libero10/Ghost_PZ_ensemble/trainings"].experiment == "libero_ghost_pz"
    assert CELLS["tab:libero10/Ghost_PZ_ensemble/runs"].experiment == "libero_ghost_pz_ensemble_rollout"


def test_the_articles_phase_3_is_the_second_object(root):
    """Its 9.1 and 3.6 % are of the second object's manipulation, not of our phase with the number 3."""
    claims = read_ledger(root / LEDGER).claims.values()
    for printed, end in (("9.1", "succeeded"), ("3.6", "failed")):
        (claim,) = [
            claim for claim in claims if claim.printed == printed and any(at.startswith("602.") for at in claim.at)
        ]
        cell = CELLS[claim.cell[0]]
        assert (cell.metric, cell.condition, cell.unit) == ("second_object_percent", f"T8/{end}", claim.unit)
