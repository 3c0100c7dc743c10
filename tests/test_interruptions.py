"""The head process killed at random moments, and two people who start at once: the same report in the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import call, copy_project, repeatable, small_laptop
from ghost.project.snapshots import METADATA, record_path

pytestmark = pytest.mark.cluster


def start(folder: Path, *command: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "src"),
        "PYTHONHASHSEED": "0",
    }
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipe)


def finished_runs(folder: Path) -> dict[str, str]:
    """Start times of the runs whose manifest is there, and which Snakemake knows to be complete."""
    found = {}
    for manifest in (folder / "data/laptop/runs").glob("*/manifest.json"):
        record = folder / record_path(str(manifest.relative_to(folder)))
        if record.exists() and not (folder / ".snakemake/incomplete" / record.name).exists():
            for run in manifest.parent.glob("seed*/run.json"):
                found[str(run)] = json.loads(run.read_text())["start"]
    return found


def test_killed_five_times_and_nothing_that_was_complete_is_done_twice(tmp_path, whole_build):
    folder = small_laptop(tmp_path / "killed")
    chance = random.Random(7)
    kept: dict[str, str] = {}
    kills = 0
    records = len([record for record in (whole_build / METADATA).rglob("*") if record.is_file()])
    for jobs in sorted(chance.sample(range(1, records - 10), 5)):
        process = start(folder, "snakemake", "all")
        while process.poll() is None and len(list((folder / METADATA).rglob("*"))) < jobs:
            time.sleep(0.02)
        time.sleep(chance.random())
        if process.poll() is None:
            process.kill()  # the head alone: its jobs end with it
            kills += 1
        process.communicate()
        kept |= finished_runs(folder)
        call(folder, "snakemake", "--unlock")
    assert kills == 5
    assert kept  # else nothing was tested
    call(folder, "snakemake", "all")
    assert repeatable(folder) == repeatable(whole_build)
    now = finished_runs(folder)
    assert {run: now[run] for run in kept} == kept
    assert "nothing to be done" in call(folder, "snakemake", "all").stderr


def test_two_who_start_at_once_do_not_spoil_it(tmp_path, whole_build):
    folder = small_laptop(tmp_path / "two")
    target = "data/laptop/cells/fig_diagnostic.jsonl"
    both = [start(folder, "snakemake", target) for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert 0 in [process.returncode for process in both], said
    for process, text in zip(both, said, strict=True):
        assert process.returncode == 0 or "Directory cannot be locked" in text
    assert (folder / target).read_bytes() == (whole_build / target).read_bytes()
    assert "nothing to be done" in call(folder, "snakemake", target).stderr


def test_the_second_user_is_told_that_somebody_is_at_work(tmp_path):
    folder = copy_project(tmp_path / "second")
    target = "data/laptop/runs/learned_potential/manifest.json"
    first = start(folder, "snakemake", target, "--config", "experiments={learned_potential: {epochs: 100000}}")
    while first.poll() is None and not (folder / "logs/laptop/simulate/learned_potential.log").exists():
        time.sleep(0.02)
    second = call(folder, "snakemake", "all", check=False)
    restored = call(folder, "ghost", "restore", check=False)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert second.returncode == 1
    assert "no other Snakemake process is trying to create the same files" in second.stderr
    assert "Traceback" not in second.stderr
    assert restored.returncode == 2
    assert "Snakemake is running here" in restored.stderr


def test_two_dvc_repro_of_one_stage_end_with_one_result(tmp_path):
    folder = copy_project(tmp_path / "dvc")
    both = [start(folder, "dvc", "repro", "fig_switch_speed") for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert 0 in [process.returncode for process in both], said
    for process, text in zip(both, said, strict=True):
        told = "Unable to acquire lock" in text or "is busy" in text or "Directory cannot be locked" in text
        assert process.returncode == 0 or told, text
    assert "didn't change, skipping" in call(folder, "dvc", "repro", "fig_switch_speed").stdout
