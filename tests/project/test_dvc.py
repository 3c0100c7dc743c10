import pytest
import yaml

from ghost.errors import GhostError
from ghost.project.dvc import find_stage, stages, stages_text
from ghost.study import ARTEFACTS, EXPERIMENTS


def test_dvc_yaml_is_in_step_with_the_table(root):
    """After a change of the study, run `ghost dvc`."""
    assert (root / "dvc.yaml").read_text() == stages_text()


def test_a_stage_per_experiment_built_artefact_and_the_paper():
    runs = {f"run_{row.name}" for row in EXPERIMENTS}
    assert set(stages()) == runs | {a.stage for a in ARTEFACTS if a.step} | {"paper"}


def test_an_unknown_stage_is_named():
    with pytest.raises(GhostError, match="no stage 'fig_swich_speed'; did you mean fig_switch_speed"):
        find_stage("fig_swich_speed")


def test_a_stage_calls_snakemake_and_keeps_its_outputs(root):
    stage = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]["fig_switch_speed"]
    assert stage["cmd"].startswith("snakemake figures/switch_speed.pdf")
    assert {"figures/switch_speed.pdf": {"persist": True}} in stage["outs"]
    assert stage["cmd"].endswith("&& ghost snapshot fig_switch_speed")
    assert "data/laptop/runs/switch_speed" in stage["deps"]
    assert "src/ghost/report/plots/switch_speed.py" in stage["deps"]


def test_a_stage_of_runs_keeps_their_folder_and_rests_on_its_own_code(root):
    stage = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]["run_switch_speed"]
    assert {"data/laptop/runs/switch_speed": {"persist": True}} in stage["outs"]
    assert "src/ghost/simulations/switch_speed.py" in stage["deps"]
    assert "src/ghost/simulations/dwell_time.py" not in stage["deps"]
    for dependency in stage["deps"]:
        assert (root / dependency).exists()
