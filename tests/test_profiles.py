"""The profiles: what each asks for, and what their overlap does."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
import yte
from snakemake.cli import parse_args
from snakemake.utils import available_cpu_count

from conftest import call, copy_project
from ghost.study import EXPERIMENTS


def read(root: Path, name: str, *arguments: str, monkeypatch) -> dict:
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "argv", ["snakemake", *arguments])
    with (root / "profiles" / name / "config.yaml").open() as handle:
        return yte.process_yaml(handle, require_use_yte=True)


@pytest.mark.parametrize("place", ["checkout", "slurm-x"])
def test_all_cores_of_this_machine_but_no_limit_on_a_cluster(root, tmp_path, monkeypatch, place):
    """The default profile is read last and wins: its cores would be a limit on the threads of all Slurm jobs."""
    checkout = tmp_path / place
    checkout.symlink_to(root)
    monkeypatch.chdir(checkout)
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)

    def cores(*arguments: str) -> int | None:
        command = [str(checkout / ".venv/bin/snakemake"), "--snakefile", str(checkout / "Snakefile"), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        return parse_args(None)[1].cores

    assert cores("all") == available_cpu_count()
    for arguments in (("--config", "note=slurm"), ("--profile", "none")):
        assert cores("all", *arguments) == available_cpu_count()
    for arguments in (("--profile", "slurm", "--", "all"), ("--profile=slurm",), ("--profile", str(root / "slurm"))):
        assert cores(*arguments) is None
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "slurm")
    assert cores("all") is None


def test_the_two_profiles_share_no_key(root, monkeypatch):
    default = read(root, "default", "--profile", "slurm", monkeypatch=monkeypatch)
    assert not default.keys() & read(root, "slurm", monkeypatch=monkeypatch).keys()


def test_memory_and_time_grow_with_the_attempt(root, monkeypatch):
    asked = read(root, "slurm", monkeypatch=monkeypatch)
    for resources in (asked["default-resources"], *asked["set-resources"].values()):
        of_one = r"(\{'dit': \d+\}\.get\(wildcards\.get\('experiment'\), )?\d+\)?"  # one experiment needs more
        assert re.fullmatch(rf"(min\({of_one} \* attempt, 180000\)( if .* else )?)+", resources["mem_mb"])
        assert re.fullmatch(r"(min\(\d+ \* attempt, 1440\)( if .* else )?)+", resources["runtime"])


def test_every_step_that_makes_runs_says_what_it_needs(root, monkeypatch):
    asked = read(root, "slurm", monkeypatch=monkeypatch)["set-resources"]
    steps = {experiment.step for experiment in EXPERIMENTS} - {"read_bench", "read_study"}
    assert {step for step in steps if {step, f"{step}_part"} <= asked.keys()} == steps


def test_a_site_file_of_ones_own(root, monkeypatch, tmp_path):
    own = tmp_path / "site.yaml"
    own.write_text("account: lab7\ngpu: {partition: big, qos: long, type: a100}\ngrain: {episodes: 10}\n")
    monkeypatch.setenv("GHOST_SITE", str(own))
    asked = read(root, "slurm", monkeypatch=monkeypatch)
    assert asked["ghost-slurm-gpu-arguments"] == "--partition=big --qos=long"
    assert asked["ghost-slurm-gpu-type"] == "a100"
    assert asked["ghost-slurm-cpu-arguments"] == "--partition=cpu"  # as in the project's own file
    assert asked["default-resources"]["slurm_account"] == "lab7"
    assert asked["set-scatter"] == {"episodes": 10}
    assert asked["set-resources"]["rollout_part"]["runtime"] == "min(30 * attempt, 1440)"


def test_a_site_says_how_many_gpus_a_fine_tuning_has(root, monkeypatch, tmp_path):
    own = tmp_path / "site.yaml"
    own.write_text("gpu: {finetune: 4}\n")
    assert read(root, "slurm", monkeypatch=monkeypatch)["set-resources"]["finetune_part"]["gpu"] == 1
    monkeypatch.setenv("GHOST_SITE", str(own))
    asked = read(root, "slurm", monkeypatch=monkeypatch)["set-resources"]
    assert asked["finetune_part"]["gpu"] == 4
    assert asked["finetune"]["gpu"] == "1 if input.get('parts') else 4"
    assert asked["finetune_part"]["cpus_per_task"] == 32  # they decode the pictures
    assert [step for step, has in asked.items() if "gpu" in has] == ["finetune", "finetune_part"]


def test_a_site_without_gpus_and_without_a_grain(root, monkeypatch, tmp_path):
    own = tmp_path / "site.yaml"
    own.write_text("gpu: {partition: ''}\ngrain: {}\n")
    monkeypatch.setenv("GHOST_SITE", str(own))
    asked = read(root, "slurm", monkeypatch=monkeypatch)
    assert not {"ghost-slurm-gpu-arguments", "set-scatter"} & asked.keys()


@pytest.mark.slow
def test_the_plan_is_shown_where_there_is_no_slurm(tmp_path):
    folder = copy_project(tmp_path / "project")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "bash", "sh", "env", "uname", "which"):
        (tools / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    path = f"{Path(sys.executable).parent}:{tools}"
    done = call(folder, "snakemake", "--profile", "slurm", "all", "-n", "--config", "scale=smoke", PATH=path)
    said = done.stdout + done.stderr
    assert re.search(r"simulate +6", said)
    assert re.search(r"train_part +\d{2}", said)  # one job a seed
    assert "mem_mb=12000" in said
    assert "gpu=1" in said
