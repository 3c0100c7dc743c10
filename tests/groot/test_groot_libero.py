"""GR00T in the closed loop of LIBERO-10, from a filmed data set in the public format to a PDF: one call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import numpy as np
import pytest
import yaml

from conftest import ROOT, call, copy_project
from ghost.data.features import FeatureCache
from ghost.libero.sensing import Senses
from ghost.report.tex import available
from ghost.runs.records import open_runs

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
DATA = "data/loop"
TASK = 5
POLICIES = ("mlp", "ghost_pg", "ghost_pz", "dit", "dit4")
TABLE = f"{DATA}/paper/tab_libero10.pdf"
MARKS = {"GR00T N1.5 weights", "LIBERO assets"}  # the tiny checkpoint, and the primitives
READ = "import sys, pypdf; print(*(page.extract_text() for page in pypdf.PdfReader(sys.argv[1]).pages))"
OWN = {
    "extends": "smoke",
    "backbone": "groot",
    "libero_demos": "recordings/libero",
    "max_seeds": 1,
    "leave_out": ["libero_mlp_phase", "libero_gru_phase", "libero_ghost", "libero_*_ensemble_rollout", "*_misdirected"],
    "experiments": {
        "libero_features": {"tokens": 8, "d_token": 64, "stride": 8, "pixels": 56, "samples_per_shard": 16},
        "libero_dit": {"steps": 2, "batch_size": 4},
    },
}


@pytest.fixture(scope="module")
def project(tmp_path_factory, tiny):
    if not find_library("OSMesa"):
        pytest.skip("no OpenGL here: apt-get install libosmesa6")
    if not available():
        pytest.skip("no TeX here")
    folder = copy_project(tmp_path_factory.mktemp("project"))
    film = [ours(), str(ROOT / "tests/libero/filmed.py"), str(folder / OWN["libero_demos"])]
    opengl = {**os.environ, "MUJOCO_GL": "osmesa", "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([*film, "v2.1", str(TASK), "2"], env=opengl, check=True, capture_output=True)
    shutil.copytree(tiny, folder / "weights/tiny")
    own = {**OWN, "groot": {"checkpoint": "weights/tiny", "python": sys.executable}}
    (folder / "config/loop.yaml").write_text(yaml.safe_dump(own))
    call(folder, "snakemake", TABLE, "--config", "scale=loop", MUJOCO_GL="osmesa")
    return folder


def ours() -> str:
    """The interpreter of our own environment: GR00T's has no simulator."""
    return str(Path(shutil.which("snakemake")).with_name("python"))


def plain(text: str) -> str:
    """Without spaces, which a PDF does not keep."""
    return "".join(text.split()).replace("’", "'")


def run_of(project, name):
    return open_runs(project / DATA / f"runs/{name}/manifest.json")[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_rollout_rests_on_no_other_stand_in(project, policy):
    """Backbone and demonstrations are real but for the tiny checkpoint; the assets are the primitives."""
    run = run_of(project, f"libero_{policy}_rollout")
    assert set(run.record()["stand_ins"]) == MARKS
    assert run.value("all", "success") in (0.0, 1.0)


def test_the_table_in_the_pdf_has_a_row_for_each_policy_and_no_other_stand_in(project):
    """Every printed number is that of its cell, and no cell rests on a stand-in for backbone or demonstrations."""
    lines = (project / DATA / "cells/tab_libero10.jsonl").read_text().splitlines()
    cells = {cell["id"].removeprefix("tab:libero10/"): cell for cell in map(json.loads, lines)}
    assert set().union(*(cell["stand_ins"] for cell in cells.values())) == MARKS
    printed = plain(call(project, ours(), "-c", READ, TABLE).stdout)
    rows = {"MLP": "MLP", "Ghost_PG": "Ghost PG", "Ghost_PZ": "Ghost PG, persistent"}
    rows |= {"GR00T_head": "GR00T's head, 8 steps", "GR00T_head_4": "GR00T's head, 4 steps"}
    for name, title in rows.items():
        row = plain(f"{title}{cells[f'{name}/params']['shown']}{'yes' if 'PG' in title else 'no'}")
        assert row in printed
        assert plain(cells[f"{name}/success"]["shown"]) in printed.partition(row)[2][:40]
    assert not [word for word in ("GRU", "Vanilla", "ensemble") if word in printed]
    assert plain("stand-in for GR00T N1.5 weights, LIBERO assets: not comparable with published numbers") in printed
    assert plain("ghost audit tab:libero10 --scale loop") in printed


def test_the_cache_carries_what_the_loop_needs(project):
    features = run_of(project, "libero_features")
    cache, senses = FeatureCache.of(features), Senses.of(features)
    assert cache.predicted_action([0]).shape == cache.action[:1].shape == (1, 16, 7)
    assert senses.cameras == ("observation.images.image", "observation.images.wrist_image")
    assert senses.convention.opens == 1  # IPEC's
    assert set(cache.phase) <= set(range(8))
    raw = senses.command(cache.action[0])
    assert set(np.sign(raw[:, 6])) <= {-1.0, 1.0}
    assert cache.normalisation is not None


def test_the_head_learns_from_the_episodes_that_decoders_learn_from(project):
    settings = run_of(project, "libero_dit").record()["settings"]
    assert (settings["train_episodes"], settings["test_episodes"]) == (0, 1)
    assert (settings["crop"], settings["pixels"], settings["jitter"]) == (0.95, 56, True)


def test_eight_and_four_steps_are_one_checkpoint(project):
    eight, four = (run_of(project, name) for name in ("libero_dit", "libero_dit4"))
    weights = "checkpoint/model.safetensors"
    assert eight.path(weights).read_bytes() == four.path(weights).read_bytes()
    steps = [
        json.loads(run.path("checkpoint/config.json").read_text())["action_head_cfg"]["num_inference_timesteps"]
        for run in (eight, four)
    ]
    assert steps == [8, 4]


def test_the_head_acts_from_pictures_and_its_steps_matter(project):
    """The two heads see the same trial; what they do differs by the steps of the flow alone."""
    rows = [run_of(project, f"libero_{name}_rollout").table("episodes.csv")[0] for name in ("dit", "dit4", "mlp")]
    assert len({row["start"] for row in rows}) == 1
    assert [row["phases"] for row in rows[:2]] == ["", ""]
