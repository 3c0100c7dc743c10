"""The profile for PBS: its scripts against a PBS that runs the jobs here, and a part of the DAG through it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
import yte

from conftest import ROOT, SMOKE, call, copy_project

PROFILE = ("--profile", "profiles/pbs")


@pytest.fixture
def pbs(tmp_path, monkeypatch) -> Path:
    """The folder of the jobs; qsub, qstat and qdel are on the PATH, and Snakemake asks every second."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    site = {**yaml.safe_load((ROOT / "profiles/pbs/site.yaml").read_text()), "poll_seconds": 1, "jobs": 2}
    (tmp_path / "site.yaml").write_text(
        yaml.safe_dump({**site, "account": "lab 7", "setup": "export MARK='a $HOME b'"})
    )
    monkeypatch.setenv("GHOST_SITE", str(tmp_path / "site.yaml"))
    monkeypatch.setenv("PBS_JOBS", str(jobs))
    monkeypatch.setenv("GHOST_PBS_CPU", "workq")
    monkeypatch.setenv("GHOST_PBS_GPU", "gpu")
    monkeypatch.setenv("PATH", f"{ROOT / 'tests/cluster/pbs'}:{os.environ['PATH']}")
    return jobs


def submit(*arguments: str) -> str:
    command = [ROOT / "profiles/pbs/submit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def status(job: str) -> str:
    return subprocess.run(
        [ROOT / "profiles/pbs/status", job], capture_output=True, text=True, check=True
    ).stdout.strip()


def until(state: str, job: str) -> list[str]:
    """What `status` says until it says this."""
    said = [status(job)]
    end_s = time.monotonic() + 60
    while said[-1] != state and time.monotonic() < end_s:
        time.sleep(0.05)
        said.append(status(job))
    assert said[-1] == state
    return said


def test_the_profile_asks_for_what_the_slurm_profile_asks_for(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GHOST_SITE", raising=False)
    asked = yte.process_yaml((ROOT / "profiles/pbs/config.yaml").read_text(), require_use_yte=True)
    monkeypatch.delenv("GHOST_SITE")
    slurm = yte.process_yaml((ROOT / "profiles/slurm/config.yaml").read_text(), require_use_yte=True)
    assert asked["set-resources"].keys() == slurm["set-resources"].keys()
    assert asked["set-resources"]["train"] == slurm["set-resources"]["train"]
    assert asked["set-scatter"] == slurm["set-scatter"]
    assert (os.environ["GHOST_PBS_CPU"], os.environ["GHOST_PBS_GPU"]) == ("workq", "gpu")
    assert (asked["retries"], asked["latency-wait"]) == (slurm["retries"], slurm["latency-wait"])
    monkeypatch.setattr(sys, "argv", ["snakemake", *PROFILE])
    default = yte.process_yaml((ROOT / "profiles/default/config.yaml").read_text(), require_use_yte=True)
    assert not default.keys() & asked.keys()


def test_a_job_asks_for_its_resources_and_says_how_it_ended(pbs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "job.sh"
    script.write_text(
        '#!/bin/sh\necho "mark $MARK"\nfor _ in $(seq 600); do [ -e go ] && exit; sleep 0.1; done; exit 1\n'
    )
    monkeypatch.setenv("GHOST_PBS_ACCOUNT", "lab 7")
    monkeypatch.setenv("GHOST_PBS_SETUP", "export MARK='a b'")
    job = submit("cache_features", "2", "8", "64000", "480", "1", str(script))
    assert {status(job) for _ in range(6)} == {"running"}  # also where the server does not answer
    (tmp_path / "go").touch()
    until("success", job)
    (folder,) = pbs.iterdir()
    asked = (folder / "asked").read_text().strip()
    assert asked == (
        "-N cache_features -q gpu -A lab 7 -l select=1:ncpus=8:mem=64000mb:ngpus=1 -l walltime=28800 -j oe -o logs/pbs/"
    )
    assert (folder / "output").read_text() == "mark a b\n"


def test_without_account_gpu_and_setup(pbs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nexit 3\n")
    job = submit("simulate", "4", "1", "2000", "30", "0", str(script))
    until("failed", job)
    asked = (next(pbs.iterdir()) / "asked").read_text()
    assert "-A" not in asked
    assert "select=1:ncpus=4:mem=2000mb -l walltime=1800 " in asked


def test_a_job_is_running_while_the_server_does_not_answer(pbs, monkeypatch):
    assert status("99.here") == "running"  # qstat fails: there is no such job


def test_jobs_are_cancelled(pbs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    jobs = [submit("train", "1", "1", "2000", "30", "0", str(script)) for _ in range(2)]
    subprocess.run([ROOT / "profiles/pbs/cancel", *jobs], check=True)
    assert (tmp_path / "deleted").read_text().split() == jobs
    for job in jobs:
        until("failed", job)


@pytest.mark.slow
def test_a_part_of_the_dag_through_pbs(pbs, tmp_path):
    folder = copy_project(tmp_path / "project")
    target = "data/smoke/runs/switch_speed/manifest.json"
    said = call(folder, "snakemake", *PROFILE, target, *SMOKE)
    assert "1 of 1 jobs done" in said.stderr
    assert (folder / target).exists()
    (job,) = pbs.iterdir()
    asked = (job / "asked").read_text()
    assert asked.startswith("-N simulate -q workq -A lab 7 -l select=1:ncpus=1:mem=2000mb -l walltime=1800 ")
    assert "export MARK='a $HOME b'" in (job / "script").read_text()
    wrong = ("experiments={switch_speed: {dt: -1.0}}", "scale=smoke")
    failed = call(folder, "snakemake", *PROFILE, target, "--config", *wrong, check=False)
    assert failed.returncode != 0
    assert "dt must be positive, got -1.0" in failed.stderr
    asked = sorted((job / "asked").read_text().split("mem=")[1].split("mb")[0] for job in pbs.iterdir())
    assert asked == ["2000", "2000", "4000", "6000"]  # one job, then three attempts at the next
