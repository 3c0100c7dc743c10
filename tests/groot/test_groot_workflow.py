"""A lab's own build with GR00T: from recorded data and a tiny checkpoint to the report, and every question about it."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from groot_experiments import CAMERAS

import labs
from conftest import call, copy_project
from ghost.backbones.groot_environment import lock
from ghost.data.features import FeatureCache
from ghost.files import sha256
from ghost.runs.records import open_runs

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
DATA = "data/mylab"
LAB = ("--scale", "mylab")
DEMOS, CHECKPOINT = "recordings/cups", "weights/tiny"
SIZES = {
    "dual_arm_features": {
        "tokens": 8,
        "d_token": 64,
        "train_episodes": 12,
        "train_per_task": [4] * 10,
        "test_per_task": [2] * 10,
        "train_timesteps": 10,
        "test_timesteps": 6,
        "samples_per_shard": 16,
    },
    "dit": {"steps": 3},
}


def configuration(*settings, **sizes) -> list[str]:
    """What the command line says on top of the lab's file: two updates and not three, two jobs for the shards."""
    experiments = json.dumps({"dit": {"steps": 2}, **sizes})
    return ["--set-scatter", "shards=3", "--config", "scale=mylab", f"experiments={experiments}", *settings]


@pytest.fixture(scope="module")
def project(tmp_path_factory, recorded, tiny):
    folder = copy_project(tmp_path_factory.mktemp("project"))
    shutil.copytree(recorded, folder / DEMOS)
    shutil.copytree(tiny, folder / CHECKPOINT)
    own = {"extends": "smoke", "backbone": "groot", "demos": DEMOS, "experiments": SIZES}
    own["groot"] = {"checkpoint": CHECKPOINT, "python": sys.executable}
    (folder / "config/mylab.yaml").write_text(yaml.safe_dump(own))
    (folder / "figures").mkdir(exist_ok=True)
    for name in ("paper/ghost.pdf", "figures/switch_speed.pdf"):  # the laptop's
        (folder / name).write_text("of the laptop")
    call(folder, "snakemake", "all", *configuration())
    return folder


def planned(project, *asked) -> dict[str, set[str]]:
    """The jobs of a dry run: rule -> experiments."""
    said = call(project, "snakemake", "all", "-n", *asked).stdout
    jobs: dict[str, set[str]] = {}
    for rule, job in re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", said, re.MULTILINE):
        found = re.search(r"wildcards: .*?experiment=(\w+)", job)
        jobs.setdefault(rule, set()).add(found[1] if found else "")
    return jobs


def run_ids(project, name) -> list[str]:
    return [run.run_id for run in open_runs(project / DATA / f"runs/{name}/manifest.json")]


def test_from_features_to_a_table(project):
    text = (project / DATA / "paper/generated/tab_loss_ablation.tex").read_text()
    lines = (project / DATA / "cells/tab_loss_ablation.jsonl").read_text().splitlines()
    cells = [json.loads(line) for line in lines]
    errors = [cell["value"] for cell in cells if cell["id"].endswith("test_mse")]
    assert len(errors) == 4
    assert all(0 < error < 2 for error in errors)
    assert all(cell["shown"].replace("±", r"\pm") in text for cell in cells if cell["id"].endswith("test_mse"))


def test_the_records_say_what_the_features_come_from(project, tiny):
    runs = project / DATA / "runs"
    record = open_runs(runs / "dual_arm_features/manifest.json")[0].record()
    facts = record["facts"]
    for part in ("checkpoint", "processor"):
        assert re.fullmatch("[0-9a-f]{64}", facts[part]["sha256"])
    assert "token_seed" in facts["token_rule"]
    assert "meta/normalisation.json" in facts["actions"]["normalisation"]
    assert (facts["dtype"], facts["attention"]) == ("float32", "sdpa")
    assert record["stand_ins"] == ["GR00T N1.5 weights", "dual-arm data set"]  # tiny, and not the paper's episodes
    needed = [open_runs(runs / name / "manifest.json")[0] for name in ("dual_arm", "dit")]
    assert record["inputs"] == {run.name: {"run_id": run.run_id, "sha256": run.content} for run in needed}
    assert record["versions"]["lerobot"] == "0.4.4"
    assert {"torch", "transformers"} <= record["versions"].keys()
    assert record["environment"]["differs"] == []
    assert record["lock_sha256"] == sha256(lock())
    learnt = open_runs(runs / "ghost/manifest.json")[0].record()
    assert "lerobot" not in learnt["versions"]  # nothing behind the features runs there
    assert learnt["versions"]["torch"]
    played = open_runs(runs / "libero_mlp_rollout/manifest.json")[0].record()
    assert {"mujoco", "robosuite", "hf-libero"} <= played["versions"].keys()
    assert record["outside"] == learnt["outside"] == {}
    assert [list(run.record()["outside"]) for run in needed] == [["path"], ["checkpoint"]]
    assert learnt["facts"] == {}
    assert learnt["lock_sha256"] == sha256(project / "requirements.lock")
    assert learnt["stand_ins"] == record["stand_ins"]
    cache = FeatureCache.open(runs / "dual_arm_features/manifest.json")
    assert cache.predicted_action([0]).shape == (1, 17, 32)
    assert cache.normalisation.mode == "limits"


def test_two_jobs_made_the_shards(project):
    folder = project / "logs/mylab/cache_features_part"
    logs = {path.name: path.read_text() for path in folder.glob("dual_arm_*")}
    assert logs.keys() == {"dual_arm_features.seed0_1of2.log", "dual_arm_features.seed0_2of2.log"}
    assert all(re.search(r"^\[100%\] (\d+)/\1 shards", text, re.MULTILINE) for text in logs.values())
    assert all(text.count("attention is SDPA") == 1 for text in logs.values())  # the model was loaded once
    assert "attention" not in (project / "logs/mylab/cache_features/dual_arm_features.log").read_text()


def test_a_data_set_of_other_tasks_and_dimensions_has_its_own_table(project):
    """14 actions, 3 tasks: fine-tuned, encoded, learnt and tested, with one file of configuration."""
    labs.write_filmed(project / "recordings/arms")
    lab = yaml.safe_load((project / "config/mylab.yaml").read_text())
    sizes = {"dual_arm_features": {"tokens": 8, "d_token": 64}, "dit": {"steps": 1}}
    own = {**lab, "demos": "recordings/arms", "max_seeds": 1, "experiments": sizes, "split": {"samples": 60}}
    (project / "config/arms.yaml").write_text(yaml.safe_dump(own))
    table = "data/arms/paper/generated/tab_per_task.tex"
    call(project, "snakemake", table, "--config", "scale=arms")
    cells = [json.loads(line) for line in (project / "data/arms/cells/tab_per_task.jsonl").read_text().splitlines()]
    assert {cell["condition"] for cell in cells} == set(labs.TASKS)
    assert all(cell["value"] > 0 for cell in cells)
    assert {of for cell in cells for of in cell["stand_ins"]} == {"GR00T N1.5 weights"}
    cache = FeatureCache.open(project / "data/arms/runs/dual_arm_features/manifest.json")
    assert cache.action_mask.sum() == 14
    predicted = cache.normalisation.action.undo(cache.predicted_action(range(5)))  # [5, 17, 14], in the robot's units
    assert predicted.shape == (5, 17, 14)
    tuned = open_runs(project / "data/arms/runs/dit/manifest.json")[0].record()["settings"]
    assert (tuned["test_share"], tuned["train_episodes"]) == (0.2, 0)


def test_nothing_is_to_be_done_again_but_what_depends_on_a_camera(project):
    assert planned(project, *configuration()) == {}
    one = {"dual_arm_features": {"cameras": [CAMERAS[0]]}}
    rules = planned(project, *configuration(**one)).keys()
    assert {"finetune", "cache_features_part", "cache_features", "train", "evaluate", "tabulate"} <= rules
    assert "make_demos" not in rules


def test_every_question_is_answered_about_the_build_as_it_was_made(project, tmp_path):
    cell = call(project, "ghost", "audit", "tab:lightweight/CVAE/test_mse", *LAB).stdout
    assert "stand-in: GR00T N1.5 weights" in cell
    assert "dit: finetune" in cell
    assert re.search(r"packages +numpy .*python 3.11.*torch 2", cell)
    assert call(project, "ghost", "audit", "--verify", *LAB).stdout.startswith("consistent")
    judged = json.loads(call(project, "ghost", "claims", "tab:lightweight/", "--json", *LAB, check=False).stdout)
    assert "not comparable" in {verdict["verdict"] for verdict in judged}
    said = call(project, "ghost", "bundle", "--out", str(tmp_path / "lab.zip"), *LAB).stdout
    assert re.search(r"\d+ files, \d+ cells, \d+ runs", said)
    packed = set(zipfile.ZipFile(tmp_path / "lab.zip").namelist())
    assert {"config/smoke.yaml", "config/mylab.yaml", f"{DATA}/build.json"} <= packed
    assert any(name.startswith(f"{DATA}/runs/dit/seed") for name in packed)


def test_only_true_obstacles_are_in_the_way(project):
    """The build is small and rests on stand-ins. Nothing in it is stale, missing or of another environment."""
    *obstacles, total = call(project, "ghost", "ready", *LAB, check=False).stdout.splitlines()
    assert total == f"{len(obstacles)} in the way"
    doubt = r"(stand-in: [^;]*|reduced scale|\d+ of \d+ runs|undefined|not built|not run|none)"
    true = rf"(fig|tab):\S+: {doubt}(; {doubt})*|paper/\S+: the cells do not support .*"
    assert [line for line in obstacles if not re.fullmatch(true, line)] == []


def test_the_report_of_the_laptop_is_untouched(project):
    for name in ("paper/ghost.pdf", "figures/switch_speed.pdf"):
        assert (project / name).read_text() == "of the laptop"
    assert not (project / "data/laptop").exists()
    assert (project / DATA / "paper/ghost.pdf").exists() == (shutil.which("latexmk") is not None)


@contextmanager
def changed_in_place(path: Path) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(before + b"\0")
    yield
    path.write_bytes(before)


def test_a_file_that_is_changed_in_place_reruns_what_depends_on_it(project):
    with changed_in_place(next((project / DEMOS).rglob("data/**/*.parquet"))):
        jobs = planned(project, *configuration())
        verified = call(project, "ghost", "audit", "--verify", *LAB, check=False)
    assert jobs["make_demos"] == {"dual_arm"}
    assert {
        "finetune",
        "cache_features_part",
        "cache_features",
        "train",
        "evaluate",
        "tabulate",
        "audit",
    } <= jobs.keys()
    assert not {"simulate", "rollout", "train_agent"} & jobs.keys()
    assert {"mlp", "ghost", "dual_cups"} <= jobs["train"]
    others = ("libero", "ml10", "ml45", "dark_room")
    assert not [name for name in jobs["train"] | jobs["evaluate"] if name.startswith(others)]
    said = f"is stale: the content of dual_arm.path, {DEMOS}, has changed since"
    assert verified.returncode == 1
    assert verified.stdout.splitlines()[:-1] == [f"inputs   {DATA}/runs/dual_arm/seed0/run.json: {said}"]
    with changed_in_place(project / CHECKPOINT / "model.safetensors"):
        jobs = planned(project, *configuration())
    assert "make_demos" not in jobs
    assert jobs["finetune"] == {"dit"}
    assert planned(project, *configuration()) == {}


def test_a_missing_environment_or_folder_is_one_line(project):
    for asked, said in (
        ("groot={python: nowhere/python}", "nowhere/python is missing; `make .venv-groot/ready` makes it"),
        ("demos=/nope", "demos: there is no folder '/nope'"),
    ):
        done = call(project, "snakemake", "all", "-n", *configuration(asked), check=False)
        assert done.returncode != 0
        assert len([line for line in (done.stdout + done.stderr).splitlines() if said in line]) == 1
        assert "Traceback" not in done.stdout + done.stderr


def test_the_same_data_and_weights_elsewhere_are_the_same_runs(project, tmp_path):
    before = {name: run_ids(project, name) for name in ("dual_arm", "dit")}
    data = shutil.move(project / DEMOS, tmp_path / "data")
    weights = shutil.move(project / CHECKPOINT, tmp_path / "other")
    moved = configuration(f"demos={data}", f"groot={{checkpoint: {weights}}}")
    assert planned(project, *moved)["make_demos"] == {"dual_arm"}
    call(project, "snakemake", f"{DATA}/runs/dit/manifest.json", *moved)
    assert {name: run_ids(project, name) for name in before} == before
    assert planned(project, *moved) == {}  # what was made from them is as it was
    assert call(project, "ghost", "audit", "--verify", *LAB).stdout.startswith("consistent")
