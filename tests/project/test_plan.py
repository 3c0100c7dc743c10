"""`ghost plan`: what Snakemake's plan says, priced."""

from __future__ import annotations

import json
import shutil

import pytest

from conftest import call, copy_project
from ghost.errors import GhostError
from ghost.project import plan
from ghost.project.plan import Cost, Job, critical_path, price, targets
from ghost.study.builds import load
from ghost.study.declarations import Artefact

GPU_JOB = """\
    input: data/a.json, data/b.json
    output: data/runs/x/manifest.json
    wildcards: experiment=x
    threads: 2
    resources: tmpdir=/tmp, mem_mb=32000, gpu=1, cpus_per_task=4, slurm_partition=gpu, runtime=240
"""


def test_a_job_is_read_from_the_dry_run():
    job = plan._job("train", GPU_JOB)
    assert (job.name, job.cpus, job.gpus, job.limit_s) == ("train x", 4, 1, 240 * 60)
    assert job.inputs == {"data/a.json", "data/b.json"}
    assert price(job, Cost(7200, "limit")) == "at most 2.000 h on 4 CPUs and 1 GPU"
    assert price(job, Cost(3600, "recorded")) == "1.000 h on 4 CPUs and 1 GPU"


def test_the_critical_path_is_the_slowest_chain():
    def job(name: str, *inputs: str) -> Job:
        return Job(name, "", frozenset(inputs), frozenset([name]), 1, 0, 0)

    jobs = [job("quick"), job("slow"), job("middle", "quick", "slow"), job("aside", "quick"), job("end", "middle")]
    costs = {j.name: Cost({"slow": 50, "aside": 49}.get(j.name, 1), "recorded") for j in jobs}
    assert critical_path(jobs, costs) == (["slow", "middle", "end"], 52)
    assert critical_path([], {}) == ([], 0)


def test_what_cannot_be_planned_is_one_line(monkeypatch):
    with pytest.raises(GhostError, match="did you mean fig:diagnostic"):
        targets("fig:diagnostik", load({}))
    monkeypatch.setattr("ghost.project.plan.ARTEFACTS", (Artefact("tab", "later"),))
    with pytest.raises(GhostError, match="nothing builds it yet"):
        targets("tab:later", load({}))


@pytest.mark.slow
def test_limits_before_the_first_run_then_what_was_recorded(tmp_path):
    folder = copy_project(tmp_path / "project")
    ask = ("ghost", "plan", "fig:switch_speed", "--scale", "smoke")
    said = call(folder, *ask).stdout.splitlines()
    assert said[0] == "fig:switch_speed at smoke scale: 3 jobs, 3 to run, 0 cached"
    assert "  simulate switch_speed       at most 0.500 h on 1 CPU" in said
    assert "to pay, at most: 0.500 CPU hours, 0.000 GPU hours" in said
    assert said[-1].startswith("critical path: simulate switch_speed -> ")
    call(folder, "snakemake", "data/smoke/figures/switch_speed.pdf", "--config", "scale=smoke")
    record = folder / "data/smoke/runs/switch_speed/seed0/run.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"wall_s": 7200}))
    shutil.rmtree(folder / "data/smoke/figures")
    said = call(folder, *ask).stdout.splitlines()
    assert said[0] == "fig:switch_speed at smoke scale: 3 jobs, 2 to run, 1 cached"
    assert "  simulate switch_speed       cached" in said
    table = folder / "src/ghost/study/analytic.py"
    table.write_text(table.read_text().replace('"dt": 0.16,', '"dt": 0.15,'))
    said = call(folder, *ask).stdout.splitlines()
    assert "  simulate switch_speed       2.000 h on 1 CPU" in said
    assert "to pay: 2." in "\n".join(said)
