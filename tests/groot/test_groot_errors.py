"""Checkpoints and processors that cannot be used: one line says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
from groot_experiments import finetune_experiment
from safetensors.numpy import load_file, save_file

from conftest import ROOT
from ghost.backbones.groot import Groot
from ghost.backbones.groot_files import find_files
from ghost.errors import GhostError

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
COMMIT = "0123456789abcdef" * 2 + "01234567"


@pytest.fixture
def copy(tmp_path, tiny):
    return shutil.copytree(tiny, tmp_path / "copy")


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def without_a_weight(folder):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["action_head.future_tokens.weight"]
    save_file(tensors, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "copy has no weights (*.safetensors)"),
        (lambda f: (f / "config.json").unlink(), "copy is not a checkpoint: it has no config.json"),
        (
            lambda f: (f / "config.json").write_text("{}"),
            "does not belong to a GR00T N1.5: it lacks backbone_cfg, action_",
        ),
        (lambda f: (f / "eagle/vocab.json").unlink(), "copy/eagle is not an Eagle processor: it has no vocab.json"),
        (lambda f: shutil.rmtree(f / "eagle"), "copy/eagle is not an Eagle processor: it has no added_tokens.json,"),
        (without_a_weight, "copy lacks 1 of the weights, action_head.future_tokens.weight among them"),
        (lambda f: (f / "model.safetensors").write_bytes(b"no"), "copy does not load as a GR00T N1.5: "),
        (
            lambda f: edit(f / "eagle/config.json", auto_map={"AutoConfig": "someone/else--code.Config"}),
            "names code from elsewhere (someone/else--code.Config), which is not run",
        ),
    ],
)
def test_a_damaged_checkpoint_is_one_line(copy, damage, message):
    damage(copy)
    with pytest.raises(GhostError) as error:
        Groot.load(copy, "new_embodiment")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_code_beside_the_processor_is_not_run(copy):
    (copy / "eagle/processing_eagle2_5_vl.py").write_text("raise SystemExit('foreign code')\n")
    Groot.load(copy, "new_embodiment")


@pytest.mark.parametrize(
    ("name", "revision", "message"),
    [
        ("/nowhere/groot", "", "groot.checkpoint: there is no folder '/nowhere/groot'"),
        ("nvidia/GR00T-N1.5-3B", "", "needs groot.revision, a commit (40 hex digits), got ''"),
        ("nvidia/GR00T-N1.5-3B", "main", "needs groot.revision, a commit (40 hex digits), got 'main'"),
    ],
)
def test_what_is_no_folder_needs_a_commit_of_the_hub(name, revision, message):
    with pytest.raises(GhostError) as error:
        find_files(name, revision, "checkpoint")
    assert message in str(error.value)


def command_line(python, experiment, demos, folder, **environment):
    """The step as Snakemake starts it; it must fail with an error of ours."""
    options = ("--experiment", experiment, "--needs", str(demos), "--out", str(folder / "manifest.json"))
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", **environment}
    command = [python, "-m", "ghost.steps.finetune", *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    return done


@pytest.mark.parametrize("offline", ["0", "1"])
def test_a_hub_that_does_not_answer_is_one_line(tmp_path, demos, offline):
    """Nothing listens at the endpoint, or the hub is switched off by its own variable."""
    experiment = finetune_experiment("nvidia/GR00T-N1.5-3B", revision=COMMIT)
    hub = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": offline}
    done = command_line(sys.executable, experiment, demos, tmp_path, **hub)
    assert done.stderr.splitlines()[-1] == (
        f"ghost: error: groot.checkpoint: nvidia/GR00T-N1.5-3B at {COMMIT} is not in the local cache and the hub does"
        " not answer; download it elsewhere and name the folder"
    )


def test_without_lerobot_it_is_one_line(tmp_path, tiny, demos):
    """In our own environment, where `snakemake` is."""
    ours = shutil.which("snakemake")
    assert ours is not None
    python = ours.replace("snakemake", "python")
    done = command_line(python, finetune_experiment(tiny), demos, tmp_path)
    assert (
        "GR00T runs in an environment of its own, and `make .venv-groot/ready` makes it" in done.stderr.splitlines()[-1]
    )
