"""`ghost plan`: the jobs of Snakemake's graph, and their cost."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import shutil

import pytest

from conftest import ROOT, call, copy_project
from ghost.errors import GhostError
from ghost.project import job_times
from ghost.project.job_times import JobTime
from ghost.project.jobs import Job, before, read_jobs
from ghost.project.plan import (
    LIMIT,
    START_S,
    UNKNOWN,
    Cost,
    Place,
    cost,
    lines,
    on_this_machine,
    plan,
    price,
    price_all,
    targets,
)
from ghost.project.prices import Price
from ghost.runs.records import digest
from ghost.study.builds import load
from ghost.study.declarations import Artefact
from ghost.study.parts import Part

CLUSTER = Place(8, 128)


@pytest.fixture
def here(root, monkeypatch):
    monkeypatch.chdir(root)


def test_jobs_are_those_of_snakemakes_graph_with_the_slurm_profile(here):
    environment = dict(os.environ)
    jobs, grain = read_jobs(["data/smoke/cells/tab_lightweight.jsonl"], {"scale": "smoke"})
    assert dict(os.environ) == environment  # the Snakefile changes it
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
    """From the rehearsals that the repository has; jobs without one count with measured units or their time limit."""
    said = plan("paper", load({"scale": "paper"}), gpus=8, cores=128).splitlines()
    chain_h, took_h = (float(re.search(r"([\d.]+) h$", line)[1]) for line in said[-2:])
    assert said[-2].startswith("critical path, at most: make_demos")
    assert chain_h < 8
    assert took_h < 8
    assert said[-1].startswith("on 8 GPUs and 128 cores, at most: ")
    assert took_h >= chain_h
    (prices,) = (line for line in said if line.startswith("prices: "))
    rehearsed, measured, limits = map(int, re.findall(r"(\d+) (?:jobs )?by", prices))
    assert rehearsed > 400
    assert limits < 30  # the price of a job that nobody has measured is its limit
    assert measured < 30
    asked = r"memory of train: asks for 60000 MB; the largest peak so far is \d+ MB, .*"
    assert any(re.fullmatch(asked, line) for line in said)


@pytest.mark.slow
def test_ten_thousand_units_are_planned_in_half_a_minute(tmp_path):
    """In a process of its own, as a user has it, by its CPU time: other work on the machine does not count."""
    folder = copy_project(tmp_path / "project")
    many = {name: {"seeds": 1000} for name in ("mlp", "cvae", "neural_ode", "transformer", "diffusion")}  # and tests
    (folder / "config/many.yaml").write_text(json.dumps({"extends": "paper", "experiments": many}))
    earlier = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = call(folder, "ghost", "plan", "paper", "--scale", "many").stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - earlier.ru_utime - earlier.ru_stime < 30
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
        assert cost(job, Part("p", (1,), 16), smoke, Known(), CLUSTER).wall_s == START_S + expected
    on_gpu = Job("x", ("mlp",), frozenset(), frozenset(), gpus=1, limit_s=50)  # slower on a CPU than the GPU may be
    bound = cost(on_gpu, Part("p", (1,), 16), smoke, Known(), CLUSTER)
    assert (bound.wall_s, bound.source, bound.at_most) == (50, LIMIT, True)


def test_on_this_machine_jobs_start_fast_and_light_rules_have_a_price(here):
    known = (JobTime("train", "smoke", "a CPU", 9, 0.5), JobTime("plot", "laptop", "a CPU", 9, 3.0))
    smoke, place = load({"scale": "smoke"}), Place(0, 2, here=True, known=known)
    jobs, grain = read_jobs(["all"], {"scale": "smoke"}, cores=2)
    assert not grain
    names = {job.name: job for job in jobs}
    timed, trained = (on_this_machine(names[name], smoke, place) for name in ("simulate training_time", "train mlp"))
    assert (timed.cpus, trained.cpus, trained.gpus) == (2, 1, 0)  # nothing may run beside what is timed
    assert not any("_part" in job.rule for job in jobs)  # one job an experiment
    chosen = [trained, names["plot switch_speed"], names["summarize fig_switch_speed"]]

    class Known:
        def price(self, name):
            return Price(10.0, "smoke", start_s=99.0)

    assert cost(chosen[0], Part("p", (1, 2), 2), smoke, Known(), place).wall_s == 0.5 + 2 * 10
    found = price_all(chosen[1:], smoke, grain, place)
    assert [found[job].wall_s for job in chosen[1:]] == [3.0, 0.0]
    nothing = dataclasses.replace(chosen[0], wildcards=("switch_speed",), rule="simulate")
    assert cost(nothing, Part("p", (1,), 1), smoke, Nothing(), place).source == UNKNOWN


class Nothing:
    def price(self, name):
        return None


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
def test_a_pilot_says_its_cost_and_runs_the_whole_chain(tmp_path):
    folder = copy_project(tmp_path / "project")
    told = call(folder, "ghost", "pilot", "mlp_offline", "--scale", "smoke").stdout.splitlines()
    assert told[0] == "mlp_offline at smoke scale: 4 jobs, 4 to run, 0 cached"
    assert told[-1] == "snakemake data/smoke/runs/mlp_offline/manifest.json --config scale=smoke"
    assert not (folder / "data/smoke/runs").exists()
    call(folder, "ghost", "pilot", "mlp_offline", "--scale", "smoke", "--run")
    made = {path.parent.name for path in (folder / "data/smoke/runs").glob("*/manifest.json")}
    assert made == {"dual_arm", "dual_arm_features", "mlp", "mlp_offline"}
    again = call(folder, "ghost", "pilot", "mlp_offline", "--scale", "smoke", "--slurm").stdout.splitlines()
    assert again[0] == "mlp_offline at smoke scale: 8 jobs, 0 to run, 8 cached"  # each seed is a part there
    assert again[-1].startswith("snakemake --profile slurm data/smoke/runs/mlp_offline/")
    kept = call(folder, "ghost", "plan", "--scale", "smoke", "--keep").stdout
    assert "data/bench/jobs.json: 4 rules of data/smoke, " in kept
    rules = {row.rule: row for row in job_times.read(folder / job_times.BENCH) if row.build == "smoke"}
    assert rules.keys() == {"make_demos", "cache_features", "train", "evaluate"}
    assert all(0 <= row.each_s < 60 and row.jobs == 1 for row in rules.values())


def test_a_job_with_several_files_counts_once(tmp_path, monkeypatch):
    """Snakemake has a record for each file of a job, begun one after the other."""
    monkeypatch.chdir(tmp_path)  # where nothing is built
    for name, log, start, end in (("a", "x", 1.0, 3.0), ("b", "x", 1.00003, 3.0), ("c", "y", 1.0, 7.0)):
        record = {"rule": "plot", "log": [f"logs/smoke/plot/{log}.log"], "starttime": start, "endtime": end}
        (tmp_path / name).write_text(json.dumps(record))
    (found,) = job_times.measured(load({"scale": "smoke"}, ROOT), tmp_path)
    assert (found.rule, found.jobs) == ("plot", 2)
    assert found.each_s == pytest.approx(4, abs=1e-3)


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
