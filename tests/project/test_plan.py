"""`ghost plan`: the jobs of Snakemake's graph, and their cost."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from conftest import call, copy_project
from ghost.errors import GhostError
from ghost.project.plan import Cost, Job, critical_path, price, read_jobs, targets
from ghost.runs.records import digest
from ghost.study.builds import load
from ghost.study.declarations import Artefact


def test_jobs_are_those_of_snakemakes_graph_with_the_slurm_profile(root, monkeypatch):
    monkeypatch.chdir(root)
    for name in ("PATH", "PYTHONPATH"):  # the Snakefile changes them
        monkeypatch.setenv(name, os.environ.get(name, ""))
    jobs = read_jobs(["data/smoke/cells/tab_lightweight.jsonl"], {"scale": "smoke"})
    names = [job.name for job in jobs]
    assert names.index("make_demos dual_arm") < names.index("train cvae") < names.index("evaluate cvae_offline")
    train = jobs[names.index("train cvae")]
    assert (train.cpus, train.gpus, train.limit_s, train.is_light) == (4, 1, 240 * 60, False)
    assert "data/smoke/runs/dual_arm_features/manifest.json" in train.inputs
    assert train.outputs == {"data/smoke/runs/cvae/manifest.json"}
    assert [job.rule for job in jobs if job.is_light] == ["summarize"]
    with pytest.raises(GhostError, match="No rule to produce nowhere"):
        read_jobs(["nowhere"], {"scale": "smoke"})
    with pytest.raises(GhostError, match="no scale 'tiny'"):
        read_jobs(["all"], {"scale": "tiny"})


def test_the_price_is_a_bound_where_nothing_is_recorded():
    job = Job("train", "x", frozenset(), frozenset(), cpus=4, gpus=1)
    assert price(job, Cost(7200, "limit")) == "at most 2.000 h on 4 CPUs and 1 GPU"
    assert price(job, Cost(3600, "recorded")) == "1.000 h on 4 CPUs and 1 GPU"


def test_the_critical_path_is_the_slowest_chain():
    def job(name: str, *inputs: str) -> Job:
        return Job(name, "", frozenset(inputs), frozenset([name]))

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
    slow = json.loads(record.read_text()) | {"wall_s": 7200}
    record.write_text(json.dumps(slow | {"sha256": digest(slow)}))
    shutil.rmtree(folder / "data/smoke/figures")
    said = call(folder, *ask).stdout.splitlines()
    assert said[0] == "fig:switch_speed at smoke scale: 3 jobs, 2 to run, 1 cached"
    assert "  simulate switch_speed       cached" in said
    table = folder / "src/ghost/study/analytic.py"
    table.write_text(table.read_text().replace('"dt": 0.16,', '"dt": 0.15,'))
    said = call(folder, *ask).stdout.splitlines()
    assert "  simulate switch_speed       2.000 h on 1 CPU" in said
    assert "to pay: 2." in "\n".join(said)
