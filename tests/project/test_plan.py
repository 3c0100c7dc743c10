"""`ghost plan`: the jobs of Snakemake's graph, and their cost."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import time

import pytest

from conftest import call, copy_project
from ghost.errors import GhostError
from ghost.project.plan import LIMIT, START_S, Cost, Job, before, cost, lines, plan, price, read_jobs, targets
from ghost.project.prices import Price
from ghost.runs.records import digest
from ghost.study.builds import load
from ghost.study.declarations import Artefact
from ghost.study.parts import Part


@pytest.fixture
def here(root, monkeypatch):
    monkeypatch.chdir(root)
    for name in ("PATH", "PYTHONPATH"):  # the Snakefile changes them
        monkeypatch.setenv(name, os.environ.get(name, ""))


def test_jobs_are_those_of_snakemakes_graph_with_the_slurm_profile(here):
    jobs, grain = read_jobs(["data/smoke/cells/tab_lightweight.jsonl"], {"scale": "smoke"})
    assert grain == {"seeds": 1, "episodes": 100, "attempts": 100, "shards": 50}
    names = [job.name for job in jobs]
    assert names.index("make_demos dual_arm") < names.index("train_part cvae seed42") < names.index("train cvae")
    part, gathered = jobs[names.index("train_part cvae seed42")], jobs[names.index("train cvae")]
    assert (part.cpus, part.gpus, part.limit_s, part.memory_mb, part.is_light) == (4, 1, 120 * 60, 12000, False)
    assert (gathered.cpus, gathered.gpus, gathered.limit_s, gathered.memory_mb) == (1, 0, 30 * 60, 4000)
    assert "data/smoke/runs/dual_arm_features/manifest.json" in part.inputs
    assert gathered.outputs == {"data/smoke/runs/cvae/manifest.json"}
    assert [job.rule for job in jobs if job.is_light] == ["summarize"]
    with pytest.raises(GhostError, match="No rule to produce nowhere"):
        read_jobs(["nowhere"], {"scale": "smoke"})
    with pytest.raises(GhostError, match="no scale 'tiny'"):
        read_jobs(["all"], {"scale": "tiny"})


def test_the_papers_critical_path_is_shorter_than_a_working_day(here):
    """From the measured units that the repository has; jobs without one count with their time limit."""
    said = plan("paper", load({"scale": "paper"}), gpus=8, cores=128).splitlines()
    chain_h, took_h = (float(re.search(r"([\d.]+) h$", line)[1]) for line in said[-2:])
    assert said[-2].startswith("critical path, at most: make_demos")
    assert chain_h < 8
    assert said[-1].startswith("on 8 GPUs and 128 cores, at most: ")
    assert took_h >= chain_h
    (prices,) = (line for line in said if line.startswith("prices: "))
    rehearsed, measured, limits = map(int, re.findall(r"(\d+) (?:jobs )?by", prices))
    assert rehearsed + measured > 200
    assert limits > 0  # the price of a job that nobody has measured is its limit, and the plan says so
    asked = r"memory of train: asks for 12000 MB; the largest peak so far is \d+ MB, .*"
    assert any(re.fullmatch(asked, line) for line in said)


@pytest.mark.slow
def test_ten_thousand_units_are_planned_in_half_a_minute(here):
    many = {name: {"seeds": 1000} for name in ("mlp", "cvae", "neural_ode", "transformer", "diffusion")}  # and tests
    start_s = time.process_time()
    said = plan("paper", load({"scale": "paper", "experiments": many}))
    assert time.process_time() - start_s < 30
    assert int(re.search(r"(\d+) to run", said)[1]) > 10_000
    assert len(said.splitlines()) < 400  # parts are counted, not listed


def test_the_price_is_a_bound_where_nothing_is_recorded():
    job = Job("train", ("x",), frozenset(), frozenset(), cpus=4, gpus=1)
    assert price(job, Cost(7200, LIMIT, at_most=True)) == "at most 2.000 h on 4 CPUs and 1 GPU; time limit"
    assert price(job, Cost(3600, "laptop on a CPU")) == "1.000 h on 4 CPUs and 1 GPU; laptop on a CPU"


def test_episodes_share_the_cores_of_a_job_and_seeds_do_not():
    class Known:
        def price(self, name):
            return Price(10.0, "smoke")

    smoke = load({"scale": "smoke"})
    for name, expected in (("libero_mlp_rollout", 2 * 10), ("mlp", 16 * 10)):
        job = Job("x", (name,), frozenset(), frozenset(), cpus=8, limit_s=1)
        assert cost(job, Part("p", (1,), 16), smoke, Known()).wall_s == START_S + expected
    on_gpu = Job("x", ("mlp",), frozenset(), frozenset(), gpus=1, limit_s=50)  # slower on a CPU than the GPU may be
    bound = cost(on_gpu, Part("p", (1,), 16), smoke, Known())
    assert (bound.wall_s, bound.source, bound.at_most) == (50, LIMIT, True)


def test_jobs_that_differ_in_their_part_are_one_line():
    jobs = [Job("train_part", ("mlp", f"seed{k}"), frozenset(), frozenset([str(k)]), gpus=1) for k in range(3)]
    costs = {job: Cost(3600 * (k + 1), "paper") for k, job in enumerate(jobs)}
    assert lines(jobs, costs) == ["  train_part mlp    3 x 3.000 h on 1 CPU and 1 GPU; paper"]


def test_which_jobs_come_before():
    first = Job("a", (), frozenset(), frozenset(["x"]))
    second = Job("b", (), frozenset(["x", "elsewhere"]), frozenset(["y"]))
    assert before([first, second]) == {first: [], second: [first]}


def test_what_cannot_be_planned_is_one_line():
    with pytest.raises(GhostError, match="did you mean fig:diagnostic"):
        targets("fig:diagnostik", load({}))
    later = dataclasses.replace(load({}), artefacts=(Artefact("tab", "later"),))
    with pytest.raises(GhostError, match="nothing builds it yet"):
        targets("tab:later", later)


@pytest.mark.slow
def test_limits_before_the_first_run_then_what_was_recorded(tmp_path):
    folder = copy_project(tmp_path / "project")
    ask = ("ghost", "plan", "fig:switch_speed", "--scale", "smoke")
    said = call(folder, *ask).stdout.splitlines()
    assert said[0] == "fig:switch_speed at smoke scale: 3 jobs, 3 to run, 0 cached"
    assert any(re.fullmatch(r"  simulate switch_speed +at most 0\.500 h on 1 CPU; time limit", line) for line in said)
    assert "to pay, at most: 0.500 CPU hours, 0.000 GPU hours" in said
    assert said[-2].startswith("critical path, at most: simulate switch_speed -> ")
    call(folder, "snakemake", "data/smoke/figures/switch_speed.pdf", "--config", "scale=smoke")
    record = folder / "data/smoke/runs/switch_speed/seed0/run.json"
    slow = json.loads(record.read_text()) | {"wall_s": 7200, "cpu_s": 7200}
    record.write_text(json.dumps(slow | {"sha256": digest(slow)}))
    shutil.rmtree(folder / "data/smoke/figures")
    said = call(folder, *ask).stdout.splitlines()
    assert said[0] == "fig:switch_speed at smoke scale: 3 jobs, 2 to run, 1 cached"
    assert any(re.fullmatch(r"  simulate switch_speed +cached", line) for line in said)
    code = folder / "src/ghost/simulations/switch_speed.py"
    code.write_text(code.read_text() + "\nMORE = 1\n")
    said = call(folder, *ask).stdout.splitlines()
    assert any(re.fullmatch(r"  simulate switch_speed +2\.002 h on 1 CPU; smoke on .*", line) for line in said)
    assert "to pay: 2." in "\n".join(said)
