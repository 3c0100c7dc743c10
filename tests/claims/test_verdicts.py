"""Each verdict, from a cell that deserves it."""

import json
from dataclasses import replace

import pytest

from ghost.claims.ledger import LEDGER, read_ledger
from ghost.claims.report import explain, overview
from ghost.claims.verdicts import VERDICTS, judge_all
from ghost.cli import claims as claims_command
from ghost.errors import GhostError
from ghost.study import ARTEFACTS


@pytest.fixture(scope="module")
def ledger(request):
    return read_ledger(request.config.rootpath / LEDGER)


def cell(identity, value, *, n=5, half=None, spread=None, **changes):
    made = {
        "id": identity,
        "shown": f"{value:g}" + (f" ± {spread:g}" if spread is not None else ""),
        "value": value,
        "unit": "",
        "estimator": "mean_std",
        "interval": None if half is None else [value - half, value + half],
        "n": n,
        "runs": ["r1"],
        "reduced": False,
        "stand_ins": [],
    }
    return {identity: {**made, **changes}}


def verdict(ledger, claim, cells):
    return next(v for v in judge_all(ledger, cells) if v.claim == claim)


MSE = "tab:lightweight/MLP/test_mse"  # published 0.0189 ± 0.0005 over five seeds


def test_averages_within_the_margin_are_equivalent_and_the_noise_is_named(ledger):
    found = verdict(ledger, MSE, cell(MSE, 0.0190, half=0.0005))
    assert found.verdict == "equivalent"
    assert "margin 0.00189" in found.reason
    assert "retraining, n = 5" in found.reason


def test_averages_apart_are_different_and_noisy_ones_undecided(ledger):
    assert verdict(ledger, MSE, cell(MSE, 0.0300, half=0.0005)).verdict == "different"
    assert verdict(ledger, MSE, cell(MSE, 0.0205, half=0.0050)).verdict == "not enough runs"
    assert verdict(ledger, MSE, cell(MSE, 0.0189, n=1)).verdict == "not enough runs"


def test_a_success_rate_carries_its_rollout_noise(ledger):
    rate = "tab:libero10/GRU_Phase/success"  # 75.0 % of 200 trials: a standard error of 3 points
    found = verdict(ledger, rate, cell(rate, 75.0, half=1.0, unit="%"))
    assert "rollouts of one model, n = 200" in found.reason
    assert found.verdict == "not enough runs"  # 200 trials cannot show five points
    assert verdict(ledger, rate, cell(rate, 40.0, half=1.0, unit="%")).verdict == "different"


def test_the_standard_error_is_of_what_the_interval_is_over(ledger):
    """A mean over 60 episodes of three runs has an interval over three runs, so Student's of two degrees of freedom."""
    latency, three = "tab:meta_rl/Ghost/latency", {"n": 60, "runs": ["r1", "r2", "r3"]}
    found = verdict(ledger, latency, cell(latency, 10.0, half=4.3027, estimator="over_episodes", **three))
    assert "standard error 1 here (retraining, n = 60)" in found.reason
    gain = "tab:libero10/gain/ghost_pg_over_mlp"
    found = verdict(ledger, gain, cell("tab:libero10/Ghost_PG/gain", 13.0, half=2, estimator="rate_difference", n=200))
    assert "here (retraining and rollouts, n = 200)" in found.reason


def test_what_is_not_the_papers_own_is_not_comparable(ledger):
    for doubt in ({"stand_ins": ["backbone"]}, {"reduced": True}):
        assert verdict(ledger, MSE, cell(MSE, 0.0189, half=0.0001, **doubt)).verdict == "not comparable"
    latency = "tab:groot_distill/Ghost/latency_ms"
    assert "RTX 5090" in verdict(ledger, latency, cell(latency, 0.41)).reason


def test_a_stand_in_can_never_pass_for_a_reproduction(ledger):
    """Every claim met to the last digit, on a stand-in: none is identical or equivalent but settings of the study."""
    cells = {}
    for claim in ledger.claims.values():
        for identity in claim.cell:
            cells |= cell(identity, claim.number.value, half=1e-9, spread=1e-9, stand_ins=["backbone"])
    for found in judge_all(ledger, cells):
        assert found.verdict not in ("identical", "equivalent", "different") or found.claim.startswith("setting:")


def test_counts_compare_in_their_units_and_survive_a_smaller_scale(ledger):
    count = cell("tab:groot_distill/Ghost/paper_params", 2.315746, unit="M", estimator="millions", reduced=True)
    assert verdict(ledger, "tab:groot_distill/Ghost/exact_params", count).verdict == "identical"
    assert verdict(ledger, "tab:groot_distill/Ghost/params", count).verdict == "identical"
    off = cell("tab:groot_distill/Ghost/paper_params", 2.315747, unit="M", estimator="millions")
    assert verdict(ledger, "tab:groot_distill/Ghost/exact_params", off).verdict == "different"


def test_exact_numbers_agree_to_their_digits(ledger):
    steps = "fig:switch_speed/ghost_n5/steps_to_converge"
    assert verdict(ledger, steps, cell(steps, 2.0, estimator="value")).verdict == "identical"
    assert verdict(ledger, steps, cell(steps, 3.0, estimator="value")).verdict == "different"
    bound = "fig:diagnostic/learned/switch/control_steps"
    assert verdict(ledger, bound, cell(bound, 1.0, estimator="largest")).verdict == "identical"


def test_p_values_agree_when_they_say_the_same(ledger):
    p = "tab:lightweight/MLP/p"
    assert verdict(ledger, p, cell(p, 0.02, estimator="paired_p")).verdict == "equivalent"
    assert verdict(ledger, p, cell(p, 0.30, estimator="paired_p")).verdict == "different"


def test_inconsistent_wins_and_says_why(ledger):
    found = verdict(ledger, "tab:lightweight/CVAE/p", cell("tab:lightweight/CVAE/p", 0.003))
    assert found.verdict == "inconsistent"
    assert "computed 0 to 0.002344" in found.reason


def test_relations_are_judged_on_our_cells(ledger):
    arm = "tab:groot_distill/{}/arm_mse"
    cells = cell(arm.format("DiT"), 0.05) | cell(arm.format("Ghost"), 0.1)
    assert verdict(ledger, "relation:groot/arm", cells).verdict == "equivalent"
    cells = cell(arm.format("DiT"), 0.2) | cell(arm.format("Ghost"), 0.1)
    assert verdict(ledger, "relation:groot/arm", cells).verdict == "different"
    assert verdict(ledger, "relation:groot/arm", {}).verdict == "not attempted"


def declared_cells():
    """A cell of some value for each that the study declares."""
    made = {}
    for artefact in ARTEFACTS:
        for known in artefact.cells:
            shown = "1 to 2" if known.estimator == "range_of" else "1 ± 0.5"
            made |= cell(f"{artefact.id}/{known.name}", 1.0, half=0.5, estimator=known.estimator, shown=shown)
    return made


def test_only_premises_are_not_attempted_and_each_has_its_reason(ledger):
    """What the article takes from others. Every other number has a cell of ours, or a value of the study."""
    premises = {claim.id for claim in ledger.claims.values() if claim.judge == "premise"}
    missing = {found.claim for found in judge_all(ledger, declared_cells()) if found.verdict == "not attempted"}
    assert missing == premises == {identity for identity in ledger.claims if identity.startswith("premise:")}
    assert all(len(ledger.claims[identity].note) > 20 for identity in premises)


def test_every_cell_that_a_claim_names_is_declared(ledger):
    known = {f"{artefact.id}/{known.name}" for artefact in ARTEFACTS for known in artefact.cells}
    assert {name for claim in ledger.claims.values() for name in claim.cell} <= known


def test_a_range_agrees_at_both_ends_or_lies_within(ledger):
    """Published: 0.005 to 0.038."""
    identity = "tab:multi_task/range/mse"

    def judged(shown):
        found = cell(identity, float(shown.split()[0]), estimator="range_of", shown=shown)
        return verdict(ledger, identity, found).verdict

    assert judged("0.0052 to 0.0379") == "identical"
    assert judged("0.0052 to 0.0290") == "equivalent"
    assert judged("0.0052 to 0.0400") == "different"
    assert judged("0.0020 to 0.0290") == "different"


def test_a_setting_that_differs_says_why(ledger):
    found = verdict(ledger, "setting:libero.env_seeds", {})
    assert (found.verdict, found.ours) == ("different", "3")
    assert found.reason.endswith(
        "; the same seed gives the same episodes to the bit here, so each evaluation has its own"
    )
    assert verdict(ledger, "setting:libero.first_env_seed_runs", {}).ours == "1"


def test_a_relation_whose_cell_has_no_value_lacks_runs(ledger):
    """It was attempted: a cell is there."""
    arm = "tab:groot_distill/{}/arm_mse"
    cells = cell(arm.format("DiT"), 0.05) | cell(arm.format("Ghost"), 0.1)
    cells[arm.format("Ghost")]["value"] = None
    found = verdict(ledger, "relation:groot/arm", cells)
    assert (found.verdict, found.reason) == ("not enough runs", "tab:groot_distill/Ghost/arm_mse has no value yet")
    cells = {}
    for row in ("Ghost", "CVAE", "Neural_ODE", "MLP", "Transformer", "Diffusion"):
        cells |= cell(f"tab:lightweight/{row}/test_mse", 0.02)  # of one run: no deviation
    assert verdict(ledger, "relation:lightweight/lowest_error", cells).verdict == "different"
    noise = cell("tab:multi_task/boundary/mse", 0.03) | cell("tab:multi_task/steady/mse", 0.03)
    relation = replace(ledger.relations["multi_task/boundary_is_noise"], of="cells")
    alone = replace(ledger, relations={"noise": relation})
    found = judge_all(alone, noise | cell("tab:loss_ablation/ghost/test_mse", 0.02))[-1]
    assert (found.verdict, found.reason) == ("not enough runs", "tab:loss_ablation/ghost/test_mse has no deviation yet")
    spread = cell("tab:loss_ablation/ghost/test_mse", 0.02, spread=0.001)
    assert judge_all(alone, noise | spread)[-1].verdict == "equivalent"


def test_a_relation_without_published_numbers_is_judged_on_our_cells_alone(ledger):
    p = "tab:ablation/ten_tasks/{}/p"
    cells = cell(p.format("mse"), 0.4) | cell(p.format("arm_mse"), 0.06)
    assert verdict(ledger, "relation:ablation/ten_tasks", cells).verdict == "equivalent"
    cells = cell(p.format("mse"), 0.4) | cell(p.format("arm_mse"), 0.04)
    assert verdict(ledger, "relation:ablation/ten_tasks", cells).verdict == "different"
    assert verdict(ledger, "relation:ablation/ten_tasks", {}).verdict == "not attempted"


def test_every_verdict_can_be_explained(ledger, root, monkeypatch):
    monkeypatch.chdir(root)
    verdicts = judge_all(ledger, {})
    assert all(found.reason for found in verdicts)
    for found in verdicts[::60]:
        assert f"verdict    {found.verdict}" in explain(found.claim, ledger, verdicts)
    assert "line 465" in explain("tab:lightweight/CVAE/p", ledger, verdicts)
    assert explain("tab:meta_rl", ledger, verdicts).count("\n") == 18
    with pytest.raises(GhostError, match="did you mean tab:lightweight/CVAE/p"):
        explain("tab:lightweight/CVAEE/p", ledger, verdicts)
    total = [int(number) for number in overview(ledger, verdicts).splitlines()[-1].split()[1:]]
    assert sum(total) == len(verdicts) == len(ledger.claims) + len(ledger.relations)


def test_the_command_fails_on_the_verdicts_that_it_is_given(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    monkeypatch.setattr("ghost.claims.report.read_cells", lambda path: {})
    monkeypatch.setattr("ghost.claims.report.gpu_models", lambda manifests: {})
    assert claims_command(scale="paper", fail_on=("equivalent",)) == 0
    assert claims_command(scale="paper", fail_on=("inconsistent",)) == 1
    assert claims_command(scale="paper") == 1  # two settings of ours differ: the env_seeds of the ensemble
    capsys.readouterr()
    claims_command("tab:lightweight/CVAE/p", scale="paper", json=True)
    assert {found["verdict"] for found in json.loads(capsys.readouterr().out)} <= set(VERDICTS)
    with pytest.raises(GhostError, match="no verdict 'diferent'; did you mean different"):
        claims_command(fail_on=("diferent",))
