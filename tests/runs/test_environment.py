"""The packages that are really there, beside the lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata

import pytest

from conftest import ROOT, declaration
from ghost.files import sha256
from ghost.runs import environment
from ghost.runs.code import libraries
from ghost.runs.records import open_runs

LOCK = ROOT / "requirements.lock"
MODULES = ["ghost.steps.simulate", "ghost.simulations.switch_speed"]
STEP = """
import json, sys
from pathlib import Path
from ghost.data.results import Outcome
from ghost.runs.driver import Plan, execute
execute(lambda job: Plan(lambda unit: Outcome([])), sys.argv[1], Path(sys.argv[2]))
"""


def test_what_is_installed_is_what_the_library_says():
    theirs = {environment.plain(dist.metadata["Name"]): dist.version for dist in metadata.distributions()}
    assert environment.installed() == theirs


def test_this_environment_is_that_of_the_lock():
    assert environment.differences(LOCK) == ()
    assert environment.lock_sha256(LOCK) == sha256(LOCK)


@pytest.fixture
def packages(tmp_path):
    """An environment in the folder names of its packages."""
    for name in ("numpy-2.0.dist-info", "torch-2.13.0+cpu.dist-info", "Zc.Lockfile-4.0-py3.11.egg-info", "x.dist-info"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        ("# head\nnumpy==2.0\ntorch==2.13.0\nzc.lockfile==4.0\n", ()),
        ("numpy==2.1\ntorch==2.13.0\n", ("numpy 2.0 (lock: 2.1)",)),
        ("numpy==2.0\nscipy==1.0\n", ("scipy missing (lock: 1.0)",)),
        ("numpy==2.0 --hash=sha256:00\nscipy==1.0 ; sys_platform == 'no system' --hash=sha256:00\n", ()),
        ("numpy==2.1 ; sys_platform != 'no system' --hash=sha256:00\n", ("numpy 2.0 (lock: 2.1)",)),
    ],
)
def test_a_package_that_is_another_or_missing_differs(packages, tmp_path, lock, expected):
    (tmp_path / "lock").write_text(lock)
    environment.differences.cache_clear()
    assert environment.differences(tmp_path / "lock", (str(packages),)) == expected


def run_with(tmp_path, *folders) -> dict:
    """The record of a run by an interpreter that finds packages in these folders first."""
    path = os.pathsep.join([*map(str, folders), str(ROOT / "src"), str(ROOT / "tests")])
    manifest = tmp_path / f"runs/tiny{len(folders)}/manifest.json"
    command = [sys.executable, "-c", STEP, json.dumps(declaration(seeds=[7], modules=MODULES)), str(manifest)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})
    return open_runs(manifest)[0].record()


def test_a_record_names_the_lock_only_if_its_packages_were_there(packages, tmp_path):
    """As with `--sdm conda`: another interpreter runs the step than the one that made .venv."""
    usual, other = run_with(tmp_path), run_with(tmp_path, packages)
    assert usual["lock_sha256"] == sha256(LOCK)
    assert usual["environment"]["differs"] == []
    assert other["lock_sha256"] == other["environment"]["packages_sha256"] != usual["environment"]["packages_sha256"]
    assert other["run_id"] != usual["run_id"]
    assert other["environment"]["lock"] == "requirements.lock"
    (differing,) = [text for text in other["environment"]["differs"] if text.startswith("numpy")]
    assert differing.startswith("numpy 2.0 (lock: ")
    assert other["versions"]["numpy"] == "2.0"


def test_the_packages_behind_a_step_are_known_also_those_imported_in_functions():
    rollout = libraries("ghost.steps.rollout", "ghost.decoders.mlp", "ghost.backbones.libero_standin")
    assert {"mujoco", "robosuite", "libero", "torch"} <= rollout
    assert {"lerobot", "transformers"} <= libraries("ghost.steps.finetune", "ghost.backbones.groot")
    simulate = libraries(*MODULES)
    assert "numpy" in simulate
    assert not simulate & {"mujoco", "robosuite", "libero", "lerobot"}
