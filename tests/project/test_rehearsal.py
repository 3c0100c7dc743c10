"""Rehearsals: what fits, what does not and why, how many repeats a unit has; the plan reads them."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import asdict, replace

import pytest

from conftest import ROOT
from ghost.errors import GhostError
from ghost.files import read_json
from ghost.project import rehearsal
from ghost.project.first_units import episodes, first, repeats, training_samples
from ghost.project.jobs import Job
from ghost.project.plan import START_S, Place, cost
from ghost.project.prices import Prices
from ghost.project.rehearsal import code_of, rehearse
from ghost.project.rehearsed import (
    DOES_NOT_FIT,
    FITS,
    KEPT,
    NOT_TRIED,
    Rehearsed,
    behind,
    keep,
    read_rehearsals,
    size,
    table,
)
from ghost.study.builds import load
from ghost.study.parts import Part

PAPER = load({"scale": "paper"})
WIDTHS = (
    "tokens",
    "d_token",
    "hidden",
    "d_context",
    "d_latent",
    "batch_size",
    "horizon",
    "layers",
    "heads",
    "max_steps",
)


def test_a_rehearsal_has_the_widths_of_the_build_and_few_of_everything():
    small = first(PAPER)
    for experiment in PAPER.experiments:
        here = small.experiment(experiment.name)
        assert here.settings.keys() == experiment.settings.keys()
        for key in WIDTHS:
            assert here.settings.get(key) == experiment.settings.get(key), (experiment.name, key)
        assert len(here.seeds) == 1
    assert small.experiment("libero_demos").settings["attempts"] == 2
    assert len(small.experiment("libero_demos").settings["tasks"]) == 10  # their episodes differ in length
    assert small.experiment("libero_mlp_rollout").settings["tasks"] == [5]
    assert small.data.parts[-2:] == ("rehearsals", "paper")


def test_repeats_are_counted_from_the_study():
    assert repeats(PAPER, "mlp") == 300 * 175  # 5,600 samples in batches of 32
    assert repeats(PAPER, "dit") == 150 * 100  # 800 time steps in batches of 8
    assert training_samples(PAPER, "single_cups") == 600
    assert repeats(PAPER, "mlp_offline") == 1430 / 80
    assert repeats(PAPER, "ml10_switching") == 20
    assert repeats(PAPER, "ml10_ghost") == 40 * 25  # epochs, and episodes of the demonstrations
    assert repeats(PAPER, "libero_mlp_rollout") == 1  # an episode is an episode
    assert (episodes(first(PAPER), "libero_features"), episodes(PAPER, "libero_features")) == (10, 460)
    assert repeats(PAPER, "libero_mlp") == 60 * -(-460 * 520 // 256)  # at most: no episode is longer than 520 steps
    assert repeats(PAPER, "libero_mlp", 2000) == 60 * -(-460 * 200 // 256)  # episodes as long as those rehearsed
    assert repeats(PAPER, "single_cups") == 300 * 480 // 32  # a fifth of the samples is held back
    assert repeats(PAPER, "latency") == 100


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder whose builds are the project's."""
    for name in ("config", "workflow", "requirements.lock", "data"):
        (tmp_path / name).symlink_to(ROOT / name) if name != "data" else (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src")]))
    return tmp_path


@pytest.mark.slow
def test_a_row_with_a_broken_setting_is_named_and_the_others_are_tried(here, capsys, monkeypatch):
    broken = {"transformer": {"heads": 3}}  # 16 dims do not divide by 3
    config = load({"scale": "smoke", "experiments": broken})
    said, code = rehearse(config, ["mlp", "mlp_offline", "transformer", "transformer_offline"])
    assert code == 1
    rows = {line.split()[0]: line for line in said.splitlines() if line.startswith(("mlp", "transformer"))}
    assert re.match(r"mlp +fits +0\.\d+ s \(", rows["mlp"])
    assert re.match(r"mlp_offline +fits ", rows["mlp_offline"])
    assert re.match(r"transformer +does not fit +.*(divi|heads)", rows["transformer"])
    assert re.match(r"transformer_offline +not tried +transformer: ", rows["transformer_offline"])
    assert said.splitlines()[-1].startswith("4 fits, 1 does not fit, 1 not tried; on ")
    kept = read_rehearsals(config)
    assert kept["mlp"].repeats == 2 * 5  # epochs, batches
    assert 0 < kept["mlp"].calls_s < 1
    assert kept["mlp"].flops > 1e8
    assert kept["mlp"].unit_bytes > 1000
    assert "transformer" not in kept
    assert "mlp" in read_rehearsals(load({"scale": "smoke"}))
    assert "mlp" not in read_rehearsals(load({"scale": "smoke", "experiments": {"mlp": {"hidden": 32}}}))
    capsys.readouterr()
    again, _ = rehearse(config, ["mlp", "mlp_offline"])  # what was rehearsed is found again
    assert capsys.readouterr().out == ""
    assert re.search(r"^mlp_offline +fits ", again, re.MULTILINE)
    monkeypatch.setattr(rehearsal, "code_of", lambda config, name: "other" if name == "mlp" else code_of(config, name))
    rehearse(config, ["mlp", "mlp_offline"])  # other code, and what rests on it
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["mlp", "mlp_offline"]


@pytest.mark.slow
def test_a_cache_too_large_for_the_disk_and_memory_too_small_are_named(here, monkeypatch):
    config = load({"scale": "smoke"})
    usage = shutil.disk_usage(here)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10_000))
        said, code = rehearse(config, ["dual_arm_features"])
    assert code == 1
    assert re.search(r"dual_arm_features +does not fit .* its files take 0\.[1-9] MB, 0\.0 MB are free", said)
    assert size(31e9) == "31.0 GB"
    monkeypatch.setattr(rehearsal, "memory_mb", lambda: 10.0)
    said, _ = rehearse(config, ["dark_room_demos"])
    assert re.search(r"dark_room_demos +does not fit .* it needs [\d,]+ MB of memory, there are 10", said)


def test_what_cannot_be_rehearsed_is_one_line(monkeypatch):
    with pytest.raises(GhostError, match="no experiment 'mpl'; did you mean mlp"):
        rehearse(PAPER, ["mpl"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(GhostError, match="there is no srun here"):
        rehearse(PAPER, ["mlp"], slurm=True)


ROW = Rehearsed("mlp", "train", FITS, device="a CPU", start_s=5.0, each_s=(0.9, 1.0, 1.2), measured=3, repeats=100.0)


def test_the_table_counts_the_verdicts():
    rows = [
        ROW,
        replace(ROW, experiment="dit", state=DOES_NOT_FIT, why="by layers"),
        Rehearsed("x", "train", NOT_TRIED),
    ]
    said = table(rows).splitlines()
    assert re.match(r"mlp +fits +1 s \(0\.9 to 1\.2\) +100 +100 s ", said[2])
    assert said[3].endswith("by layers")
    assert said[-1] == "1 fits, 1 does not fit, 1 not tried; on a CPU"


def test_the_plan_predicts_from_rehearsals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = replace(ROW, calls_s=0.01, flops=1e11, behind=behind(PAPER, "mlp"))
    keep(PAPER, [row])
    assert read_json(KEPT / "paper.json")[0] == {**asdict(row), "each_s": [0.9, 1.0, 1.2]}
    assert replace(row, fixed_s=3.0).unit_s == row.unit_s + 3
    assert replace(row, fixed_s=3.0, teach_s=100.0).on_a_gpu_s(10.0) == pytest.approx(row.on_a_gpu_s(10.0) + 3 + 1)
    prices = Prices(PAPER)
    found = prices.price("mlp")
    assert (found.unit_s, found.start_s, found.low, found.high) == (100.0, 5.0, 0.9, 1.2)
    one, two, site = Part("p", (1,), 1), Part("p", (1, 2), 2), Place(8, 128, tflops=10.0)
    job = Job("train", ("mlp",), frozenset(), frozenset(), limit_s=1)
    on_cpu = cost(job, one, PAPER, prices, site)
    assert (on_cpu.wall_s, on_cpu.source, on_cpu.at_most) == (START_S + 105, "rehearsed on a CPU", False)
    assert on_cpu.high_s == pytest.approx(START_S + 5 + 100 * 1.2)
    assert cost(job, two, PAPER, prices, site).wall_s == START_S + 5 + 2 * 100  # a process starts once
    gpu = replace(job, gpus=1)
    on_gpu = cost(gpu, one, PAPER, prices, site)  # a hundred times as fast in products, and 0.01 s for each update
    assert on_gpu.wall_s == pytest.approx(START_S + 5 + 100 * (0.01 + 0.01))
    assert on_gpu.source == "rehearsed on a CPU, for a GPU of 10 TFLOP/s (0.0 h on the CPU)"
    bound = cost(gpu, one, PAPER, prices, Place(8, 128))  # the site does not say how fast its GPUs are
    assert (bound.wall_s, bound.at_most) == (START_S + 105, True)
    assert bound.source == "rehearsed on a CPU; a GPU takes less"
