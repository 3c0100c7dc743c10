"""`snakemake --profile slurm all` on a real one-node Slurm: whole, with faults, through outages and preemption."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from one_node import OneNode, ask, obstacle, wait_for

from conftest import call, copy_project, repeatable, small_laptop
from ghost.files import read_json
from ghost.runs.records import open_runs
from ghost.study.parts import GRAIN

pytestmark = pytest.mark.cluster
HERE = Path(__file__).parent
LITERAL = ("snakemake", "--profile", "slurm", "all")
SPLIT = ("libero_mlp_rollout", "mlp_offline", "dark_room_ghost", "learned_potential")  # with what they need: all steps
WHOLE = "GHOST_WHOLE_GRAIN"  # set: the whole DAG with one unit a job, in half an hour; else the part behind SPLIT
TIMED = ("latency", "training_time")  # a clock decides what they measure
STEPS = {"make_demos", "cache_features", "train", "train_agent", "evaluate", "rollout", "simulate"}
ROLLOUT = re.compile(r"^rule rollout:\n((?:    .*\n)+)Shell command: (.*)$", re.MULTILINE)  # in a dry run
FAULTY = ("switch_speed", "dwell_time", "ghost_mechanism", "diagnostic")  # their runs fail once: fault.sh


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    if reason := obstacle():
        pytest.skip(reason)
    started = OneNode(tmp_path_factory.mktemp("slurm"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory, root_folder) -> dict[str, str]:
    """The site's file of this cluster: looks at the queue every second, a line of its own, a scratch folder."""
    folder = tmp_path_factory.mktemp("site")
    settings = yaml.safe_load((root_folder / "profiles/slurm/site.yaml").read_text())
    settings |= {"poll_seconds": 1, "node_mb": 90000, "scratch": str(folder), "grain": {}}
    settings["setup"] = "export GHOST_LINE=$SLURM_JOB_PARTITION"
    settings["gpu"]["arguments"] = "--nice=1"
    (folder / "site.yaml").write_text(yaml.safe_dump(settings))
    return {"GHOST_SITE": str(folder / "site.yaml")}


@pytest.fixture(scope="module")
def fine(site, tmp_path_factory) -> dict[str, str]:
    """The same site with one unit of work a job."""
    file = tmp_path_factory.mktemp("fine") / "site.yaml"
    settings = yaml.safe_load(Path(site["GHOST_SITE"]).read_text())
    file.write_text(yaml.safe_dump({**settings, "grain": dict.fromkeys(GRAIN, 1)}))
    return {"GHOST_SITE": str(file)}


@pytest.fixture(scope="module")
def root_folder() -> Path:
    return HERE.parents[1]


def start(folder: Path, site: dict[str, str], *command: str) -> subprocess.Popen[str]:
    """As `call`, but does not wait."""
    environment = {
        **os.environ,
        **site,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "src"),
        "PYTHONHASHSEED": "0",
    }
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ended_well(process: subprocess.Popen[str], seconds: float = 300) -> str:
    """Its output. If it hangs: SIGINT, which also cancels its jobs."""
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(2)
        said, _ = process.communicate()
        pytest.fail(f"hangs:\n{said}")
    assert process.returncode == 0, said
    return said


def jobs_of(folder: Path) -> list[dict[str, str]]:
    """Every job that ran in a folder, oldest first: Slurm's own words."""
    blocks = ask("scontrol", "show", "job").split("\n\n")
    listed = [dict(re.findall(r"(\w+)=(\S+)", block)) for block in blocks]
    return [job for job in listed if job.get("WorkDir") == str(folder)]


def megabytes(text: str) -> float:
    """Slurm writes 4000M, but 62.50G for 64000M."""
    return float(text[:-1]) * {"M": 1, "G": 1024}[text[-1]]


def states(folder: Path, seen: Path, experiment: str) -> list[tuple[str, float]]:
    """State and memory of each job of an experiment, as fault.sh has listed them."""
    listed = seen / f"{experiment}.jobs"
    jobs = {job["JobId"]: job for job in jobs_of(folder)}
    ids = dict.fromkeys(listed.read_text().split()) if listed.exists() else ()
    return [(jobs[number]["JobState"], megabytes(jobs[number]["MinMemoryNode"])) for number in ids]


def test_every_fault_is_retried_and_the_results_are_the_same(node, site, whole_build, tmp_path):
    """Over time, over memory, cancelled, exit code 3, and the node lost: one for each experiment.

    It mostly waits, and comes first, while GR00T's tests use the cores.
    Slurm lets a requeued job wait for two minutes; hurrying it (`scontrol update StartTime=now`) crashed slurmctld.
    """
    folder = small_laptop(tmp_path / "faults")
    rules = folder / "workflow/rules/runs.smk"
    step = '"OMP_NUM_THREADS={threads} {params.python}'
    assert step in rules.read_text()
    seen = tmp_path / "seen"
    fault = f'"bash tests/cluster/fault.sh {{wildcards.experiment}} {seen} && {step[1:]}'
    rules.write_text(rules.read_text().replace(step, fault))
    cells = [f"data/laptop/cells/fig_{name}.jsonl" for name in FAULTY]
    process = start(folder, site, *LITERAL[:-1], *cells)
    wait_for(lambda: all("COMPLETED" in dict(states(folder, seen, name)) for name in FAULTY), 240)
    assert (seen / "learned_potential").exists()
    node.kill_node()
    wait_for(lambda: "down" in ask("sinfo", "-h", "-o", "%T"), 120)
    node.start_node()
    ended_well(process)
    for name in cells:
        assert (folder / name).read_bytes() == (whole_build / name).read_bytes()
    assert states(folder, seen, "dwell_time") == [("FAILED", 2000), ("COMPLETED", 4000)]
    assert states(folder, seen, "diagnostic") == [("CANCELLED", 2000), ("COMPLETED", 4000)]
    assert states(folder, seen, "ghost_mechanism") == [("TIMEOUT", 2000), ("COMPLETED", 4000)]
    assert states(folder, seen, "switch_speed")[0][0] in ("OUT_OF_MEMORY", "FAILED")
    assert states(folder, seen, "switch_speed")[1] == ("COMPLETED", 4000)
    assert states(folder, seen, "learned_potential") == [("COMPLETED", 2000)]  # the same job, requeued
    restarts = {job["JobId"]: job["Restarts"] for job in jobs_of(folder)}
    assert restarts[(seen / "learned_potential.jobs").read_text().split()[0]] == "1"


def test_a_preempted_job_runs_again_without_using_a_retry(node, site, tmp_path):
    """It waits as long for its job in the queue."""
    folder = copy_project(tmp_path / "preempted")
    command = ("snakemake", "--profile", "slurm", "--snakefile", "tests/cluster/gpu.smk", "train.txt", "--retries", "0")
    process = start(folder, site, *command)
    wait_for(lambda: [job for job in jobs_of(folder) if job["JobState"] == "RUNNING"])
    ask("sbatch", "--partition", "urgent", "--mem", "90000", "--output", "/dev/null", "--wrap", "sleep 2")
    ended_well(process)
    (job,) = jobs_of(folder)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")


def test_the_literal_command_gives_what_a_local_run_gives(node, site, whole_build, tmp_path):
    folder = small_laptop(tmp_path / "whole")
    said = ended_well(start(folder, site, *LITERAL), 900)
    assert re.search(r"(\d+) of \1 jobs done", said)
    assert repeatable(folder) == repeatable(whole_build)
    assert (folder / "paper/ghost.pdf").exists() or shutil.which("latexmk") is None
    jobs = {job["JobId"]: job for job in jobs_of(folder)}
    manifests = list((folder / "data/laptop/runs").glob("*/manifest.json"))
    assert len(jobs) == len(manifests)  # the light rules are local
    for manifest in manifests:
        record = json.loads(next(manifest.parent.glob("seed*/run.json")).read_text())
        job = jobs[record["slurm_job_id"]]
        experiment, step = manifest.parent.name, record["step"]
        assert job["Comment"] in (f"rule_{step}", f"rule_{step}_wildcards_{experiment}")  # an array, or one job
        assert job["Partition"] == ("gpu" if step == "train" or experiment in ("latency", "dit_offline") else "cpu")
        assert record["slurm_node"] == ask("hostname", "-s")
        assert record["peak_memory_mb"] > 10
        assert record["wall_s"] >= 0
        assert record["cpu_s"] >= 0
        assert record["cpus"] == int(job["NumCPUs"])
        name = f"{job['ArrayJobId']}_{job['ArrayTaskId']}" if "ArrayJobId" in job else f"{experiment}/{job['JobId']}"
        assert (folder / f"logs/slurm/rule_{step}/{name}.log").exists()
    arrays = {job["ArrayJobId"] for job in jobs.values() if "ArrayJobId" in job}
    submissions = len(arrays) + sum("ArrayJobId" not in job for job in jobs.values())
    assert submissions < 0.8 * len(jobs)  # how many are ready together depends on how fast the others end
    again = call(folder, *LITERAL, **site)
    assert "nothing to be done" in again.stderr


def test_rehearsals_are_jobs_with_the_resources_of_their_rules(node, site, tmp_path):
    folder = copy_project(tmp_path / "rehearsed")
    said = ended_well(start(folder, site, "ghost", "rehearse", "mlp", "switch_speed", "--scale", "smoke", "--slurm"))
    assert "4 fits, 0 does not fit, 0 not tried; on " in said.splitlines()[-1]
    jobs = {(job["Partition"], megabytes(job["MinMemoryNode"]), job["NumCPUs"]) for job in jobs_of(folder)}
    assert jobs == {("cpu", 2000, "1"), ("cpu", 16000, "8"), ("cpu", 32000, "8"), ("gpu", 12000, "4")}


def test_one_unit_a_job_gives_what_one_job_gives(node, fine, whole_build, tmp_path):
    """All steps that make runs; then a seed more, which is one training, and another grain, which is nothing to do."""
    folder = small_laptop(tmp_path / "fine")
    targets = [f"data/laptop/runs/{name}/manifest.json" for name in SPLIT]
    whole = WHOLE in os.environ
    ended_well(start(folder, fine, *LITERAL[:-1], *(["all"] if whole else targets)), 3600 if whole else 900)
    made = sorted((folder / "data/laptop/runs").glob("*/manifest.json"))
    if whole:
        assert repeatable(folder) == repeatable(whole_build)
        assert len(made) == len(list((whole_build / "data/laptop/runs").glob("*/manifest.json")))
    steps = {read_json(path.parent / f"seed{open_runs(path)[0].seed}/run.json")["step"] for path in made}
    assert steps >= STEPS if whole else steps == STEPS
    for path in made:
        if path.parent.name in TIMED:
            continue
        assert path.read_bytes() == (whole_build / path.relative_to(folder)).read_bytes()
    jobs = jobs_of(folder)
    trained = sum(job["Comment"].startswith("rule_train_part") for job in jobs)
    assert trained > 50 if whole else trained == 4  # two seeds of two decoders
    assert sum("ArrayJobId" in job for job in jobs) >= 8
    record = open_runs(folder / "data/laptop/runs/mlp/manifest.json")[0].record()
    (job,) = (job for job in jobs if job["JobId"] == record["slurm_job_id"])
    assert (job["Partition"], job["Comment"][:15]) == ("gpu", "rule_train_part")
    more = ("--config", "experiments={mlp: {seeds: 3}}")
    ended_well(start(folder, fine, *LITERAL[:-1], targets[1], *more), 300)
    before = {job["JobId"] for job in jobs}
    new = Counter(job["Comment"].split("_wildcards")[0] for job in jobs_of(folder) if job["JobId"] not in before)
    assert (new["rule_train_part"], new["rule_train"]) == (1, 1)
    assert "nothing to be done" in call(folder, "snakemake", targets[1], *more).stderr.lower()


def test_rules_get_what_the_profile_says(node, site, tmp_path):
    folder = copy_project(tmp_path / "gpu")
    ended_well(start(folder, site, "snakemake", "--profile", "slurm", "--snakefile", "tests/cluster/gpu.smk", "all"))
    for step, partition, memory, limit in (
        ("cache_features", "gpu", 32000, "08:00:00"),
        ("train", "gpu", 12000, "1-00:00:00"),
        ("rollout", "cpu", 32000, "12:00:00"),
        ("simulate", "cpu", 2000, "00:30:00"),
    ):
        text = (folder / f"{step}.txt").read_text()
        assert f"Partition={partition}" in text
        assert megabytes(re.search(r"MinMemoryNode=(\S+)", text)[1]) == memory
        assert f"TimeLimit={limit}" in text
        visible = re.search(r"^CUDA_VISIBLE_DEVICES=[01]$", text, re.MULTILINE)
        assert bool(visible) == (partition == "gpu")
        assert ("Nice=1 " in text) == (partition == "gpu")  # the site's own argument
        assert f"GHOST_LINE={partition}" in text  # the site's own line
        assert f"TMPDIR={Path(site['GHOST_SITE']).parent}" in text


def test_a_dry_run_with_groot_shows_server_simulators_and_gpu_of_each_rollout(node, site, tmp_path):
    """A lab has filled in its three paths, in a build that extends config/groot.yaml; nothing is smaller."""
    folder = copy_project(tmp_path / "groot")
    for name in (
        "models/config.json",
        "models/model.safetensors",
        "models/eagle/config.json",
        "demos/meta/info.json",
        "assets/a.xml",
    ):
        (folder / "lab" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "lab" / name).write_text("{}")
    lab = {"extends": "groot", "groot": {"checkpoint": "lab/models", "python": sys.executable}}
    lab |= {"libero_demos": "lab/demos", "libero_assets": "lab/assets"}
    (folder / "config/mylab.yaml").write_text(yaml.safe_dump(lab))
    table = ("data/mylab/paper/tab_libero10.pdf", "-n", "-p", "--config", "scale=mylab")
    done = call(folder, "snakemake", "--profile", "slurm", *table, **site)
    rollouts = ROLLOUT.findall(done.stdout + done.stderr)
    assert len(rollouts) == 14  # six policies, two ensembles, four misdirected, two heads
    for job, command in rollouts:
        assert re.search(r"^    resources: .*mem_mb=32000, .*gpu=1, cpus_per_task=8$", job, re.MULTILINE)
        assert f" GHOST_LIBERO_ASSETS=lab/assets GHOST_SERVE={sys.executable} MUJOCO_GL=" in command
        assert '"backbone":"groot"' in command
        assert '"reduced":{}' in command


def test_retries_used_up_name_the_job_and_its_log(node, site, tmp_path):
    folder = copy_project(tmp_path / "broken")
    target = "data/smoke/runs/switch_speed/manifest.json"
    command = ("snakemake", "--profile", "slurm", target, "--retries", "1", "--config", "scale=smoke")
    process = start(folder, site, *command, "experiments={switch_speed: {dt: -1}}")
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "switch_speed: dt must be positive, got -1.0" in said
    assert re.search(r"SLURM-job '\d+' failed", said)
    assert len(jobs_of(folder)) == 2


def test_a_dead_controller_is_waited_for(node, site, tmp_path):
    """Killed while jobs run: none is forgotten, and the run ends well."""
    folder = copy_project(tmp_path / "outage")
    process = start(folder, site, "snakemake", "--profile", "slurm", "--snakefile", "tests/cluster/gpu.smk", "all")
    saved = node.state / "controller/job_state"
    wait_for(lambda: saved.exists() and str(folder).encode() in saved.read_bytes())
    node.kill("slurmctld")
    try:
        process.wait(timeout=25)
        pytest.fail(f"ended without a controller:\n{process.communicate()[0]}")
    except subprocess.TimeoutExpired:
        node.start_controller()
    said = ended_well(process)
    assert said.count("The Slurm controller does not answer") >= 1
    last = {job["Comment"]: job["JobState"] for job in sorted(jobs_of(folder), key=lambda job: int(job["JobId"]))}
    assert list(last.values()) == ["COMPLETED"] * 4
