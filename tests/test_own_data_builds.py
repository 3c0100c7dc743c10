"""Two labs' data sets, from `ghost inspect` to the PDF, with no source edited; and the decoder that is taken away."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pypdf
import pytest

import labs
from conftest import call, copy_project
from ghost.data.features import FeatureCache
from ghost.data.lerobot import LeRobotDataset
from ghost.data.samples import Samples
from ghost.evaluations.predict import predict
from ghost.runs.records import open_runs
from ghost.training.checkpoint import load_decoder
from ghost.training.export import Exported

pytestmark = pytest.mark.slow
SIX = {"Ghost", "CVAE", "Neural_ODE", "MLP", "Transformer", "Diffusion"}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """Both builds, at the size of the tests."""
    folder = copy_project(tmp_path_factory.mktemp("labs") / "project")
    labs.write_filmed(folder / "filmed_set")
    labs.write_pictures(folder / "pictures_set")
    names = ("--state", "state", "--action", "actions")
    for name, columns in (("filmed", ()), ("pictures", names)):
        said = call(folder, "ghost", "inspect", f"{name}_set", *columns, "--write", name).stdout
        assert f"snakemake all --config scale={name}" in said
        path = folder / f"config/{name}.yaml"
        text = path.read_text().replace("extends: laptop", "extends: smoke")
        path.write_text(text.replace("test_share: 0.2", "test_share: 0.2\n  samples: 120"))
        call(folder, "snakemake", "all", "--cores", "2", "--config", f"scale={name}")
    return folder


def cells_of(project: Path, name: str) -> dict[str, dict]:
    lines = (project / f"data/{name}/cells.jsonl").read_text().splitlines()
    return {cell["id"]: cell for cell in map(json.loads, lines)}


@pytest.mark.parametrize(
    ("name", "tasks", "d_action", "constant"), [("filmed", labs.TASKS, 14, 1), ("pictures", ("push the block",), 7, 0)]
)
def test_six_decoders_are_compared_on_the_data_sets_own_tasks(project, name, tasks, d_action, constant):
    cells = cells_of(project, name)
    assert {cell.split("/")[1] for cell in cells if re.fullmatch(r"tab:decoders/\w+/test_mse", cell)} >= SIX
    assert cells["tab:data_set/tasks/number"]["value"] == len(tasks)
    assert cells["tab:data_set/d_action/number"]["value"] == d_action
    assert cells["tab:data_set/constant_action/number"]["value"] == constant
    shown = {cell["condition"] for key, cell in cells.items() if key.startswith("tab:per_task/")}
    assert shown == set(tasks)
    assert not {key.split("/")[0] for key in cells} & {"tab:lightweight", "tab:libero10"}  # the article's own
    stand_ins = {of for cell in cells.values() for of in cell["stand_ins"]}
    assert stand_ins == {"GR00T N1.5 backbone"}  # the pixels; the data set stands in for nothing
    text = "".join(page.extract_text() for page in pypdf.PdfReader(project / f"data/{name}/paper/ghost.pdf").pages)
    assert "Small Action Decoders" in text
    assert all(task.split()[0] in text for task in tasks)
    said = call(project, "ghost", "audit", "--verify", "--scale", name).stdout
    assert "consistent" in said


def test_a_second_build_has_nothing_to_do(project):
    assert "Nothing to be done" in call(project, "snakemake", "all", "-n", "--config", "scale=filmed").stdout


def test_a_build_is_read_where_its_data_set_is_not(project):
    moved = (project / "filmed_set").rename(project / "elsewhere")
    try:
        assert "tab:per_task" in call(project, "ghost", "list", "tables", "--scale", "filmed").stdout
    finally:
        moved.rename(project / "filmed_set")


def test_the_exported_decoder_gives_the_raw_actions_of_the_pipeline(project, tmp_path):
    runs = project / "data/filmed/runs"
    out = tmp_path / "mlp.onnx"
    call(project, "ghost", "export", str(runs / "mlp/manifest.json"), "--out", str(out))
    exported, cache = Exported(out), FeatureCache.open(runs / "dual_arm_features/manifest.json")
    run = open_runs(runs / "mlp/manifest.json")[0]
    assert exported.run == run.run_id
    assert exported.data["horizon"] == cache.sizes.horizon == 17
    assert exported.data["tasks"] == list(labs.TASKS)
    assert exported.normalisation.action.groups == {"left_arm": tuple(range(7)), "right_arm": tuple(range(7, 14))}
    assert exported.normalisation.action.names == tuple(f"joint_{k}" for k in range(14))
    chosen = np.arange(20)
    ours = cache.normalisation.action.undo(predict(load_decoder(run), Samples(cache, chosen), seed=0))
    source = LeRobotDataset.open(project / "filmed_set")
    for place in chosen:
        raw = source.episode(int(cache.episode[place])).state[[cache.timestep[place]]]
        action = exported.act(cache.tokens(chosen[[place]]), raw)[0]  # [H, 14]
        np.testing.assert_allclose(action, ours[place], rtol=1e-5, atol=1e-5 * np.abs(ours).max())
        np.testing.assert_allclose(action[:, labs.CONSTANT], labs.STUCK_AT)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["demos=/nope"], "demos: there is no folder '/nope'"),
        (["demos=lab/cups"], "as a name on the hub it needs demos_revision, a commit"),
        (["horizon=5"], "horizon is about a recorded data set, but `demos` names none"),
    ],
)
def test_a_wrong_data_set_fails_a_dry_run_with_one_line(project, given, message):
    done = call(project, "snakemake", "all", "-n", "--config", *given, check=False)
    assert done.returncode
    assert message in done.stdout + done.stderr
