import yaml

from ghost.experiments import ARTEFACTS
from ghost.stages import stages, stages_text


def test_dvc_yaml_is_in_step_with_the_table(root):
    """Edit the table, then run `ghost dvc`."""
    assert (root / "dvc.yaml").read_text() == stages_text()


def test_a_stage_per_built_artefact_and_the_paper():
    assert set(stages()) == {a.stage for a in ARTEFACTS if a.step} | {"paper"}


def test_a_stage_calls_snakemake_and_keeps_its_outputs(root):
    stage = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]["fig_switch_speed"]
    assert stage["cmd"].startswith("snakemake figures/switch_speed.pdf")
    assert {"figures/switch_speed.pdf": {"persist": True}} in stage["outs"]
    assert "src/ghost/simulations/switch_speed.py" in stage["deps"]
    assert "src/ghost/simulations/dwell_time.py" not in stage["deps"]
    for dependency in stage["deps"]:
        assert (root / dependency).exists()
