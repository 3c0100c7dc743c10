"""`ghost audit --verify` on hand-written runs: what a run used must be what is there now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_build import OFFLINE, ROOT, SEEDS, small_build, write_run

import labs
from ghost.audit.verify import verify
from ghost.files import hashes, read_json, write_json
from ghost.study.builds import load

RECORD = "data/smoke/runs/cvae_offline/seed42/run.json"
USED = ("dual_arm_features/seed0", "cvae/seed42")


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small_build()


def evaluate(config, **changed) -> None:
    """The run of cvae_offline with seed 42, written anew."""
    write_run(config, "cvae_offline", 42, "evaluate", OFFLINE, {("all", "mse"): 0.1}, USED, **changed)


def said(config, record=RECORD) -> list[str]:
    """Problems of that run, but for its code, environment, commit and marks, which are made up."""
    found = [problem for problem in verify(config, ("runs",)) if problem.where == record and problem.kind != "marks"]
    made_up = ("is stale: its code", "is stale: its environment", "names the commit")
    return [f"{problem.kind}: {problem.says}" for problem in found if not problem.says.startswith(made_up)]


def test_a_run_whose_inputs_are_there_has_no_problem(config):
    assert said(config) == []


def test_an_input_that_was_trained_again(config):
    old = read_json(config.manifest("cvae"))["runs"][0]["run_id"]
    new = write_run(config, "cvae", 42, "train", "ghost.decoders.cvae", {}, settings={"epochs": 9})
    assert said(config) == [f"inputs: is stale: it used run {old} of cvae/seed42, which is {new} now"]


def test_an_input_with_the_same_id_and_other_files(config):
    listing = read_json(config.manifest("dual_arm_features"))
    listing["runs"][0]["files"]["seed0/measured.csv"] = "0" * 64
    write_json(config.manifest("dual_arm_features"), listing)
    assert said(config) == ["inputs: is stale: the files of dual_arm_features/seed0 have changed since"]


def test_an_input_that_is_gone(config):
    listing = read_json(config.manifest("cvae"))
    write_json(config.manifest("cvae"), {**listing, "runs": listing["runs"][1:]})
    assert said(config) == ["inputs: its input cvae/seed42 is gone"]


def test_a_plain_file_that_changed_or_is_gone(config, tmp_path):
    read = tmp_path / "read.csv"
    read.write_text("1")
    inputs = read_json(Path(RECORD))["inputs"] | {"read.csv": hashes(read)}
    evaluate(config, inputs=inputs)
    assert said(config) == ["inputs: used read.csv, which the study does not name"]
    reading = [replace(e, reads=("read.csv",)) if e.name == "cvae_offline" else e for e in config.experiments]
    config = replace(config, experiments=tuple(reading))
    assert said(config) == []
    read.write_text("2")
    (found,) = said(config)
    assert found.startswith("inputs: is stale: read.csv has changed since (was ")
    read.unlink()
    assert said(config) == ["inputs: its input read.csv is gone"]


@pytest.fixture
def recorded(config, tmp_path):
    """A build whose demonstrations come from a folder, and the run that was made from it."""
    labs.write_filmed(tmp_path / "set")
    config = load({"scale": "smoke", "demos": str(tmp_path / "set")}, ROOT)
    outside = config.outside("dual_arm")
    settings = {**config.experiment("dual_arm").settings, **outside}
    write_run(config, "dual_arm", 0, "make_demos", "ghost.data.recorded", {}, settings=settings, outside=outside)
    return config


DEMOS = "data/smoke/runs/dual_arm/seed0/run.json"


def test_a_folder_from_outside_that_changed_in_place_is_named(recorded, tmp_path):
    assert said(recorded, DEMOS) == []
    with (tmp_path / "set/meta/info.json").open("a") as file:
        file.write("\n")
    expected = f"inputs: is stale: the content of dual_arm.path, {tmp_path}/set, has changed since"
    assert said(recorded, DEMOS) == [expected]
    (problem,) = [each for each in verify(recorded, ("runs",)) if "dual_arm.path" in each.says]
    assert problem.remake == recorded.manifest("dual_arm")


def test_the_same_folder_elsewhere_is_no_problem_and_a_missing_one_removes_nothing(recorded, tmp_path):
    (tmp_path / "set").rename(tmp_path / "moved")
    expected = f"inputs: dual_arm.path: there is no folder '{tmp_path}/set' here to compare with"
    assert said(recorded, DEMOS) == [expected]
    (problem,) = [each for each in verify(recorded, ("runs",)) if "dual_arm.path" in each.says]
    assert problem.remake is None  # somewhere else it may be there
    assert said(load({"scale": "smoke", "demos": str(tmp_path / "moved")}, ROOT), DEMOS) == []


def test_an_environment_that_was_another_one_is_named(config, tmp_path):
    (tmp_path / "requirements.lock").write_text("numpy==0.1\n")
    differs = {"lock": "requirements.lock", "packages_sha256": "2" * 64, "differs": ["numpy 0.2 (lock: 0.1)"]}
    evaluate(config, environment=differs)
    found = {(problem.where, problem.says) for problem in verify(config, ("runs",))}
    assert (RECORD, "is stale: its environment differed from requirements.lock: numpy 0.2 (lock: 0.1)") in found
    changed = "is stale: its environment was another one; requirements.lock has changed since"
    assert (RECORD.replace("seed42", "seed123"), changed) in found
    (installed,) = [says for where, says in found if where == "requirements.lock"]
    assert installed.startswith("is not what is installed: numpy ")


def test_another_step_module_or_setting(config):
    evaluate(config, step="rollout", settings={"split": "episode"})
    assert said(config) == [
        "inputs: is stale: made by rollout with ghost.evaluations.offline,"
        " the study has evaluate with ghost.evaluations.offline",
        "inputs: is stale: split changed in the study or the configuration",
    ]


def test_a_run_that_hides_what_it_used(config):
    """Without its inputs a run would lose the marks that it inherits."""
    evaluate(config, inputs={})
    assert said(config) == ["inputs: used runs of nothing; the study has dual_arm_features, cvae"]


def test_a_record_of_another_seed(config):
    evaluate(config, seed=SEEDS[1])
    assert said(config) == [f"records: was swapped: this is the run of cvae_offline, seed {SEEDS[1]}"]
