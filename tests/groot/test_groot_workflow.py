"""`snakemake --config backbone=groot`: from a recorded data set and a tiny checkpoint to a table, with two jobs."""

from __future__ import annotations

import json
import re
import sys

import pytest
from groot_experiments import CAMERAS

from conftest import call, copy_project
from ghost.backbones.groot_environment import lock
from ghost.data.features import FeatureCache
from ghost.files import sha256
from ghost.runs.records import open_runs

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
TABLE = "data/smoke/paper/generated/tab_loss_ablation.tex"
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
    "dit": {"steps": 2},
}


def configuration(recorded, tiny, python=sys.executable, **sizes) -> list[str]:
    asked = {"checkpoint": str(tiny), "python": str(python)}
    experiments = json.dumps({**SIZES, **sizes})
    settings = ("scale=smoke", "backbone=groot", f"groot={json.dumps(asked)}", f"demos={recorded}")
    return ["--set-scatter", "shards=3", "--config", *settings, f"experiments={experiments}"]


@pytest.fixture(scope="module")
def project(tmp_path_factory, recorded, tiny):
    folder = copy_project(tmp_path_factory.mktemp("project"))
    call(folder, "snakemake", TABLE, *configuration(recorded, tiny))
    return folder


def test_from_features_to_a_table(project):
    text = (project / TABLE).read_text()
    cells = [
        json.loads(line) for line in (project / "data/smoke/cells/tab_loss_ablation.jsonl").read_text().splitlines()
    ]
    errors = [cell["value"] for cell in cells if cell["id"].endswith("test_mse")]
    assert len(errors) == 4
    assert all(0 < error < 2 for error in errors)
    assert all(cell["shown"].replace("±", r"\pm") in text for cell in cells if cell["id"].endswith("test_mse"))


def test_the_records_say_what_the_features_come_from(project, tiny):
    runs = project / "data/smoke/runs"
    record = open_runs(runs / "dual_arm_features/manifest.json")[0].record()
    facts = record["facts"]
    assert facts["checkpoint"]["name"] == "tiny"
    for part in ("checkpoint", "processor"):
        assert re.fullmatch("[0-9a-f]{64}", facts[part]["sha256"])
        assert "revision" in facts[part]
    assert "token_seed" in facts["token_rule"]
    assert "min-max" in facts["actions"]["normalisation"]
    assert (facts["dtype"], facts["attention"]) == ("float32", "sdpa")
    assert record["stand_ins"] == ["GR00T N1.5 weights", "dual-arm data set"]  # tiny, and not the paper's episodes
    needed = [open_runs(runs / name / "manifest.json")[0] for name in ("dual_arm", "dit")]
    assert record["inputs"] == {run.name: {"run_id": run.run_id, "sha256": run.content} for run in needed}
    assert record["versions"]["lerobot"] == "0.4.4"
    assert "snakemake" not in record["versions"]
    assert record["lock_sha256"] == sha256(lock())
    learnt = open_runs(runs / "ghost/manifest.json")[0].record()
    assert "lerobot" not in learnt["versions"]  # nothing behind the features runs there
    assert learnt["facts"] == {}
    assert learnt["lock_sha256"] == sha256(project / "requirements.lock")
    assert learnt["stand_ins"] == record["stand_ins"]
    cache = FeatureCache.open(runs / "dual_arm_features/manifest.json")
    assert cache.predicted_action([0]).shape == (1, 17, 32)


def test_two_jobs_made_the_shards(project):
    assert {path.name for path in (project / "logs/smoke/cache_features_part").iterdir()} == {
        "dual_arm_features.seed0_1of2.log",
        "dual_arm_features.seed0_2of2.log",
    }
    logs = [path.read_text() for path in (project / "logs/smoke/cache_features_part").iterdir()]
    assert all(re.search(r"^\[100%\] (\d+)/\1 shards", text, re.MULTILINE) for text in logs)
    assert all(text.count("attention is SDPA") == 1 for text in logs)  # the model was loaded once
    assert "attention" not in (project / "logs/smoke/cache_features/dual_arm_features.log").read_text()


def test_nothing_is_to_be_done_again_but_what_depends_on_a_camera(project, recorded, tiny):
    again = call(project, "snakemake", TABLE, "-n", *configuration(recorded, tiny))
    assert "Nothing to be done" in again.stdout + again.stderr
    one = {"dual_arm_features": {**SIZES["dual_arm_features"], "cameras": [CAMERAS[0]]}}
    planned = call(project, "snakemake", TABLE, "-n", *configuration(recorded, tiny, **one)).stdout
    rules = set(re.findall(r"^(?:local)?rule (\w+):", planned, re.MULTILINE))
    assert {"finetune", "cache_features_part", "cache_features", "train", "evaluate", "tabulate"} <= rules
    assert "make_demos" not in rules


def test_a_missing_environment_is_one_line(project, recorded, tiny):
    done = call(project, "snakemake", TABLE, *configuration(recorded, tiny, python="nowhere/python"), check=False)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if "GR00T environment" in line]
    assert len(lines) == 1
    assert "nowhere/python is missing; `make .venv-groot/ready` makes it" in lines[0]
