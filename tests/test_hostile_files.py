"""Every reader of files that a pull, a download or an edit can bring, on damaged ones (tests/hostile.py)."""

from __future__ import annotations

import dataclasses
import importlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from conftest import ROOT, declaration, make_runs
from ghost.audit import affected, compare, lookup
from ghost.audit.affected import Query
from ghost.audit.build import Build
from ghost.backbones.groot_files import ASSETS, check_files, check_weights, read_config
from ghost.benches import read_pairs, summaries
from ghost.claims.article import read_numbers
from ghost.claims.consistency import predicate
from ghost.claims.ledger import read_ledger
from ghost.claims.sentences import read_sentences, supported
from ghost.claims.verdicts import judge_all
from ghost.data import recorded
from ghost.data.features import FeatureCache, Sizes
from ghost.data.lerobot import LeRobotDataset
from ghost.data.lerobot_writer import Recording
from ghost.data.results import Measured, Outcome
from ghost.data.trajectories import Windows
from ghost.decoders import mlp
from ghost.files import read_json, sha256, write_json, write_text
from ghost.project import job_times, prices, rehearsed
from ghost.project.dvc import parts
from ghost.project.snapshots import KEPT, METADATA, record_path, restore, snapshot_path, take
from ghost.report.appendix import doubts
from ghost.report.cells import read_cells
from ghost.runs.driver import Driver, Job, Plan
from ghost.runs.records import open_runs
from ghost.runs.units import Made, Store
from ghost.study import builds
from ghost.training.checkpoint import load_decoder, save_decoder
from hostile import STRANGE, Damage, damages, tree, withstand
from lerobot_v2 import write_version
from trained import write_cache


def relisted(manifest: Path) -> None:
    """The manifest lists the sha256 that its files have now: an attacker can hash, too."""
    listing = read_json(manifest)
    for run in listing["runs"]:
        run["files"] = {name: sha256(manifest.parent / name) for name in run["files"]}
    write_json(manifest, listing)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """The manifest of two runs with values, trajectories and a trained decoder."""
    manifest = tmp_path_factory.mktemp("runs") / "runs/tiny/manifest.json"
    lengths, reward = np.array([3, 2]), np.zeros((2, 3), np.float32)
    arrays = {name: np.zeros((2, 3, 2), np.float32) for name in ("observation", "context", "action")}

    def outcome(seed: int) -> Outcome:
        measured = [Measured("train", "loss", seed / 10, 5), Measured("a, b", "mse", float("nan"), 1)]
        return Outcome(measured, {**arrays, "reward": reward, "length": lengths})

    make_runs(manifest, outcome)
    return manifest


def use_runs(manifest: Path) -> None:
    for run in open_runs(manifest):
        run.record()
        run.measured()
        run.arrays()
        run.verified()
        Windows(run, length=2, stride=1).batch(torch.zeros(1, dtype=torch.int64))


@given(damages)
def test_a_manifest(runs, damage):
    with damage.of(runs):
        withstand(lambda: use_runs(runs))


@given(damages)
def test_a_record(runs, damage):
    with damage.of(runs.parent / "seed7/run.json"):
        withstand(lambda: use_runs(runs))


@pytest.mark.parametrize("name", ["measured.csv", "arrays.safetensors"])
@given(damage=damages)
def test_a_file_of_a_run(runs, name, damage):
    content = runs.read_bytes()
    with damage.of(runs.parent / "seed7" / name, lambda: relisted(runs)):
        withstand(lambda: use_runs(runs))
    runs.write_bytes(content)


@pytest.fixture(scope="module")
def pulled(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pulled")
    make_runs(folder / "build/runs/tiny/manifest.json", lambda seed: Outcome([]), seeds=[7])
    (folder / "outside").mkdir()
    (folder / "outside/x").write_text("letter")
    return folder


@pytest.mark.parametrize("name", ["run.json", "units.csv"])
@given(damage=damages)
def test_what_a_step_finds_again_after_a_pull(pulled, name, damage):
    manifest = pulled / "build/runs/tiny/manifest.json"
    shutil.rmtree(pulled / "build/units", ignore_errors=True)
    kept = tree(manifest.parent)
    if name == "units.csv":
        (manifest.parent / "seed7/units.csv").write_text("unit,address,start,wall_s\na,0,2026,1.5\nb,1,2026,2.5\n")
    job = Job.open(json.dumps(declaration(seeds=[7])), manifest, [], [])
    driver = Driver(job, Plan(lambda unit: Outcome([])))
    with damage.of(manifest.parent / "seed7" / name):
        withstand(lambda: driver.find(driver.declared(7)))
    assert tree(manifest.parent).items() >= kept.items()
    assert tree(pulled / "outside") == {"x": b"letter"}
    assert {path.name for path in pulled.iterdir()} == {"build", "outside"}


@given(damages)
def test_the_listing_of_a_unit(tmp_path_factory, damage):
    store = Store(tmp_path_factory.getbasetemp() / "units")
    kept = store.find_or_do("episode", {"seed": 1}, lambda folder: Made({"success": True}))
    with damage.of(store.folder / "episode" / f"{kept.address}.json"):
        withstand(lambda: store.find("episode", {"seed": 1}))


CELL = {
    **dict.fromkeys(("experiment", "metric", "condition", "estimator", "unit"), "mse"),
    **dict.fromkeys(("against", "against_condition", "against_metric"), ""),
    **{"id": "tab:x/a", "shown": "0.5 ± 0.1", "value": 0.5, "interval": [0.4, 0.6], "n": 5, "unpaired": [7]},
    **{"sha256": None, "runs": ["0" * 16], "stand_ins": ["data"], "reduced": False},
}


@given(damages)
def test_cells(tmp_path_factory, damage):
    path = tmp_path_factory.getbasetemp() / "cells.jsonl"
    path.write_text("".join(json.dumps({**CELL, "id": f"tab:x/{k}"}) + "\n" for k in "abc"))

    def use() -> None:
        cells = read_cells(path)
        supported("mean('tab:x/a') < 2 * std('tab:x/b')", cells)
        for cell in cells.values():
            doubts(cell)

    with damage.of(path):
        withstand(use)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A folder with the configurations, a snapshot and the file that it lists."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("config", "workflow/schemas"):
        shutil.copytree(ROOT / name, folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        config = builds.load({})
        part = parts(config)["run_switch_speed"]
        write_text(Path(part.targets[0]), "{}")
        known = {"rule": "simulate", "input": [], "log": [], "params": [], "record_format_version": 6}
        write_json(record_path(part.targets[0]), dict.fromkeys(KEPT) | known)
        take(part, config)
    return folder


@pytest.fixture(scope="module")
def kept(project):
    """The build of the snapshot, read once: it is not what is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        config = builds.load({})
        known = parts(config)
        patch.setattr("ghost.project.snapshots.parts", lambda _: known)
        yield config


@given(damages)
def test_a_snapshot(project, kept, damage):
    path = project / snapshot_path(parts(kept)["run_switch_speed"], kept)
    shutil.rmtree(project / METADATA, ignore_errors=True)
    with damage.of(path):
        said = withstand(lambda: restore(kept))
    assert (said is None) != (project / METADATA).exists()
    assert {each.name for each in project.iterdir()} <= {"config", "workflow", "data", ".snakemake"}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A small build as `ghost audit` reads it, and a copy to compare it with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tests/audit")
        patch.chdir(tmp_path_factory.mktemp("build"))
        small = importlib.import_module("small_build")
        config = small.small_build()
        small.write_paper(main="Ours is \\cell{tab:lightweight/CVAE/test_mse}. \\holds{worse}{So it is.}")
        shutil.copytree(config.data, "other")
        yield config


AUDITED = ("cells.jsonl", *(f"runs/cvae_offline/{name}" for name in ("manifest.json", "seed42/run.json")))


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
@given(damage=damages)
def test_an_audit(build, name, damage):
    cell = "tab:lightweight/CVAE/test_mse"
    with damage.of(build.data / name):
        withstand(lambda: lookup.lookup(build, cell, full=True))
        withstand(lambda: lookup.as_json(build, cell))
        withstand(lambda: lookup.lookup(build, "0.0281", full=False))
        withstand(lambda: affected.report(Build.open(build), affected.affected(Build.open(build), Query(host="node1"))))
        withstand(lambda: compare.report(compare.compare(build.data, Path("other"))))


@pytest.fixture(scope="module")
def features(tmp_path_factory) -> Path:
    rng, n = np.random.default_rng(0), 6
    arrays = {
        "state": rng.normal(size=(n, 3)).astype(np.float32),
        "action": rng.normal(size=(n, 2, 4)).astype(np.float32),
        "action_mask": np.array([1, 1, 1, 0], np.uint8),
        **{name: np.arange(n) % 2 for name in ("task", "phase", "episode", "timestep")},
        **{f"split/sample/{part}": np.arange(3) + 3 * k for k, part in enumerate(("train", "test"))},
    }
    sizes = {"tokens": 2, "d_token": 3, "d_state": 3, "horizon": 2, "d_action": 4}
    tokens = rng.normal(size=(n, 2, 3)).astype(np.float16)
    manifest = tmp_path_factory.mktemp("features") / "runs/features/manifest.json"
    return write_cache(manifest, arrays, tokens, 4, {"sizes": sizes, "task_names": ["a", "b"]})


@pytest.mark.parametrize("name", ["shards.json", "arrays.safetensors", "tokens/00000.npy", "manifest.json"])
@given(damage=damages)
def test_a_feature_cache(features, name, damage):
    content = features.read_bytes()
    path = features if name == "manifest.json" else features.parent / "seed7" / name

    def use() -> None:
        cache = FeatureCache.open(features)
        cache.tokens(np.arange(len(cache)))
        for indices in (*cache.split("sample"), *cache.split("sample", ("a",))):
            cache.action[indices], cache.tokens(indices)

    with damage.of(path, (lambda: None) if path == features else (lambda: relisted(features))):
        withstand(use)
    features.write_bytes(content)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    manifest = tmp_path_factory.mktemp("trained") / "runs/trained/manifest.json"
    sizes = Sizes(tokens=2, d_token=3, d_state=2, horizon=2, d_action=2)
    decoder = mlp.Decoder(mlp.Settings(hidden=2, d_context=2, d_latent=2, layers=1), sizes)
    path = manifest.parent / "seed7/model.safetensors"
    make_runs(manifest, lambda seed: Outcome([]), seeds=[7])
    save_decoder(path, "ghost.decoders.mlp", decoder, decoder.state_dict())
    listing = read_json(manifest)
    listing["runs"][0]["files"]["seed7/model.safetensors"] = sha256(path)
    write_json(manifest, listing)
    return manifest


@given(damages)
def test_a_checkpoint(checkpoint, damage):
    content = checkpoint.read_bytes()
    with damage.of(checkpoint.parent / "seed7/model.safetensors", lambda: relisted(checkpoint)):
        withstand(lambda: load_decoder(open_runs(checkpoint)[0]))
    checkpoint.write_bytes(content)


@pytest.fixture(scope="module", params=["v2.1", "v3.0"])
def dataset(request, tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)

    def column(n: int, d: int) -> np.ndarray:
        return rng.normal(size=(n, d)).astype(np.float32)

    made = [
        Recording(task, {"observation.state": column(n, 2), "action": column(n, 2), "phase": np.arange(n)})
        for n, task in ((3, "pick"), (4, "place"))
    ]
    folder = tmp_path_factory.mktemp("data") / "set"
    write_version(request.param, folder, made, fps=10, robot="test")
    return folder


@pytest.mark.parametrize("file", range(4))
@given(damage=damages)
def test_a_lerobot_data_set(dataset, file, damage):
    names = sorted(path for path in dataset.rglob("*") if path.suffix in (".json", ".jsonl", ".parquet"))
    names = [path for path in names if path.name != "stats.json"]

    def use() -> None:
        found = LeRobotDataset.open(dataset)
        for index in range(len(found)):
            found.episode(index)
            found.instruction(index)

    with damage.of(names[file % len(names)]):
        withstand(use)


@pytest.mark.slow
@given(damages, st.integers(0, 3))
def test_a_recorded_data_set_writes_into_its_own_folder(dataset, damage, file):
    names = sorted(path for path in dataset.rglob("*") if path.suffix in (".json", ".jsonl", ".parquet"))
    run = dataset.parent / "run"
    with damage.of(names[file % len(names)]):
        withstand(lambda: recorded.make(recorded.Settings(str(dataset)), seed=0, folder=run))
    assert {path.name for path in dataset.parent.iterdir()} <= {"set", "run"}
    shutil.rmtree(run, ignore_errors=True)


@given(damages)
def test_a_configuration(project, damage):
    with damage.of(project / "config/smoke.yaml"):
        withstand(lambda: builds.load({"scale": "smoke"}, project).declaration("mlp"))


ASKED = ("scale", "workers", "max_seeds", "demos", "backbone", "camera_ready", "x")
VALUES = st.one_of(st.sampled_from(STRANGE), st.text(max_size=20), st.integers(), st.floats())


@given(
    st.dictionaries(st.sampled_from(ASKED), VALUES, max_size=2), st.sampled_from(["epochs", "hidden", "seeds"]), VALUES
)
def test_settings_on_the_command_line(project, asked, setting, value):
    withstand(lambda: builds.load({**asked, "experiments": {"mlp": {setting: value}}}, project))


LEDGER = """\
claims:
- {id: 'tab:x/a', printed: 0.5 ± 0.1, at: ['1.1', {'2.2': '0.5'}], judge: statistical, cell: 'tab:x/a', unit: '%'}
- {id: 'setting:epochs', printed: '200', at: ['3.1'], judge: exact, study: mlp.epochs * 1}
- {id: 'tab:x/b', printed: '1.0', at: ['4.1'], judge: significance, cell: ['tab:x/b']}
relations:
- {id: order, line: 7, says: a is below b, holds: mean('tab:x/a') < mean('tab:x/b')}
derived:
- {claim: 'tab:x/b', rule: twice a, from: printed('tab:x/a') * 2}
noise: {'tab:x': {kind: retraining, runs: 5}}
margins: {points: 1.0, percent: 5.0}
non_results:
- {name: years, reason: not a result, pattern: '20\\d\\d'}
"""
SENTENCES = "order: mean('tab:x/a') < mean('tab:x/b')\nnear: abs(mean('tab:x/a') - 0.5) < 0.1 and not 1 > 2\n"


@given(damages)
def test_the_ledger(tmp_path_factory, damage):
    path = tmp_path_factory.getbasetemp() / "claims.yaml"
    path.write_text(LEDGER)
    cells = {f"tab:x/{name}": {**CELL, "id": f"tab:x/{name}", "stand_ins": []} for name in "ab"}
    with damage.of(path):
        withstand(lambda: judge_all(read_ledger(path), cells))


@given(damages)
def test_sentences(tmp_path_factory, damage):
    path = tmp_path_factory.getbasetemp() / "sentences.yaml"
    path.write_text(SENTENCES)
    with damage.of(path):
        withstand(lambda: [supported(holds, {"tab:x/a": CELL}) for holds in read_sentences(path).values()])


WORDS = (
    "1 0 9 9e99 'a' 'tab:x/a' mean std means abs len max min sum ( ) [ ] , + - * / ** << < > == and or not . : = {} x"
)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join) | st.text(max_size=30))
def test_an_expression(text):
    withstand(lambda: predicate(text, {"tab:x/a": [0.5, 0.1]}))


@pytest.mark.parametrize(
    ("name", "read"),
    [("bench/cache.csv", lambda path: summaries(read_pairs(path))), ("article_numbers.csv", read_numbers)],
)
@given(damage=damages)
def test_a_list_of_numbers(tmp_path_factory, name, read, damage):
    source = ROOT / ("data" if name.startswith("bench") else "paper") / name
    path = tmp_path_factory.getbasetemp() / source.name
    path.write_text("\n".join(source.read_text().split("\n")[:8]) + "\n")
    with damage.of(path):
        withstand(lambda: read(path))


@pytest.fixture(scope="module")
def groot(tmp_path_factory) -> Path:
    """The files of a checkpoint and of its processor that are read before GR00T's own classes see them."""
    folder = tmp_path_factory.mktemp("groot")
    for name in ASSETS:
        write_json(folder / "eagle" / name, {"auto_map": {"AutoProcessor": "p.Eagle", "AutoTokenizer": ["t.A", None]}})
    head = {"max_seq_len": 64, "action_horizon": 16}
    write_json(
        folder / "config.json",
        {"backbone_cfg": {}, "action_head_cfg": head, "action_horizon": 16, "action_dim": 32},
    )
    (folder / "model.safetensors").write_bytes(
        save({"weight": np.zeros((2, 2), np.float32), "bias": np.zeros(2, np.float32)})
    )
    return folder


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "eagle/config.json"])
@given(damage=damages)
def test_a_checkpoint_of_groot(groot, name, damage):
    def use() -> None:
        check_files(groot, groot / "eagle")
        read_config(groot, horizon=8)
        check_weights(groot, torch.nn.Linear(2, 2))

    with damage.of(groot / name):
        withstand(use)


PAPER = builds.load({"scale": "paper"}, ROOT)
BENCHES = {
    "rehearsals/paper.json": rehearsed.Rehearsed(
        "mlp", "train", "fits", each_s=(0.1, 0.2, 0.3), measured=3, flops=1e9, behind=rehearsed.behind(PAPER, "mlp")
    ),
    "units.json": prices.Measurement(
        *("mlp", "train", "other", "seeds", 2.0, 3, 400.0, "a CPU", False),
        {**PAPER.experiment("mlp").settings, "epochs": 1},
        {"dual_arm_features.tokens": {"here": 64, "paper": 64}},
    ),
    "jobs.json": job_times.JobTime("plot", "smoke", "a CPU", 9, 1.5),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Path:
    """A folder in which something was rehearsed and measured."""
    folder = tmp_path_factory.mktemp("bench")
    for name, row in BENCHES.items():
        (folder / "data/bench" / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / "data/bench" / name, json.dumps([asdict(row)]))
    return folder


def use_bench(folder: Path) -> None:
    known = prices.Prices(PAPER, folder)
    for row in known.rehearsed.values():
        rehearsed.line(row)
        assert row.on_a_gpu_s(19.5) >= 0 if row.flops else True
    dataclasses.replace(known, config=dataclasses.replace(PAPER, scale="x")).price("mlp")
    for measured in known.kept:
        ratio = known.ratio("mlp", measured)
        assert ratio is None or ratio > 0
    assert (job_times.of_rule(job_times.read(folder / job_times.BENCH), "plot", "smoke") or 0) >= 0


def test_what_was_rehearsed_and_measured_is_read(bench):
    use_bench(bench)
    known = prices.Prices(PAPER, bench)
    assert known.price("mlp").rehearsed
    assert known.ratio("mlp", known.kept[0]) == 300


@pytest.mark.parametrize("name", BENCHES)
@given(damage=damages)
def test_rehearsals_and_measured_units(bench, name, damage):
    with damage.of(bench / "data/bench" / name):
        withstand(lambda: use_bench(bench))


def test_the_damage_is_real():
    """A reader without checks does not withstand it."""
    done = [Damage(False, kind, 1, value, 0).to(b'{"a": {"b": 1}}', ".json") for kind in range(5) for value in range(9)]
    broken = 0
    for content in done:
        try:
            int(json.loads(content)["a"]["b"])
        except (KeyError, TypeError, ValueError):
            broken += 1
    assert broken > 10
