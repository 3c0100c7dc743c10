"""The driver: what a run inherits, which inputs it has, and that a finished run is never done again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, call, declaration, make_runs
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.files import HOST, read_json, write_json
from ghost.runs.driver import Plan, Split, execute, paired
from ghost.runs.records import open_runs
from ghost.runs.units import Made


def nothing(seed):
    return Outcome([])


def starts(manifest):
    """When each run of a manifest was done, with a sub-second part: records say seconds."""
    return {
        run.seed: (manifest.parents[2] / f"units/simulate/{run.run_id}.json").stat().st_mtime_ns
        for run in open_runs(manifest)
    }


@pytest.fixture
def manifest(tmp_path):
    return tmp_path / "data/runs/tiny/manifest.json"


def test_two_seeds_more_run_two(manifest):
    done = []
    make_runs(manifest, lambda seed: done.append(seed) or nothing(seed), seeds=[1, 2])
    before, records = starts(manifest), {run.seed: run.record() for run in open_runs(manifest)}
    make_runs(manifest, lambda seed: done.append(seed) or nothing(seed), seeds=[1, 2, 3, 4])
    assert done == [1, 2, 3, 4]
    assert {seed: starts(manifest)[seed] for seed in (1, 2)} == before
    for run in open_runs(manifest)[:2]:
        assert run.record() == records[run.seed]


def test_a_seed_taken_away_and_put_back_runs_nothing(manifest):
    done = []
    for seeds in ([1, 2], [1], [2, 1]):
        runs = make_runs(manifest, lambda seed: done.append(seed) or nothing(seed), seeds=seeds)
        assert [run.seed for run in runs] == seeds
    assert done == [1, 2]


def test_a_setting_changed_back_finds_its_runs(manifest):
    done = []
    for epochs in (3, 4, 3):
        make_runs(manifest, lambda seed: done.append(seed) or nothing(seed), settings={"epochs": epochs}, seeds=[1])
    assert done == [1, 1]


def test_what_determines_a_run_makes_it_another_one(tmp_path, manifest):
    def run_id(**changes):
        (run,) = make_runs(manifest, nothing, seeds=[1], **changes)
        return run.run_id

    data = tmp_path / "data.csv"
    data.write_text("1")
    ids = [run_id(), run_id(settings={"epochs": 4}), run_id(name="other"), run_id(reads=[data])]
    ids.append(run_id(modules=["ghost.steps.simulate", "ghost.decoders.mlp"]))
    data.write_text("2")
    ids.append(run_id(reads=[data]))
    assert len(set(ids)) == len(ids)
    assert run_id(scale="laptop", reduced={"epochs": {"here": 3, "paper": 300}}) == ids[0]


def test_runs_that_a_pull_brought_are_not_done_again(manifest):
    done = []

    def outcome(seed):
        done.append(seed)
        return Outcome([Measured("all", "loss", seed)])

    make_runs(manifest, outcome, seeds=[1, 2])
    record = open_runs(manifest)[0].record()
    shutil.rmtree(manifest.parents[2] / "units")
    damaged = manifest.parent / "seed2/measured.csv"
    damaged.write_text(damaged.read_text().replace("2.0", "3.0"))
    runs = make_runs(manifest, outcome, seeds=[1, 2, 3])
    assert done == [1, 2, 2, 3]  # the damaged one and the new one
    assert runs[0].record() == record
    assert [run.value("all", "loss") for run in runs] == [1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(outputs=[]),
        lambda record: record.update(outputs={"../../../../secret": record["outputs"]["measured.csv"]}),
        lambda record: record.update(outputs={"measured.csv": {}}),
        lambda record: record.pop("wall_s"),
        lambda record: record.update(stand_ins=None),
    ],
)
def test_a_run_that_a_pull_brought_with_a_wrong_record_is_done_again(manifest, change):
    outcome = lambda seed: Outcome([Measured("all", "loss", seed)])  # noqa: E731
    make_runs(manifest, outcome, seeds=[1])
    shutil.rmtree(manifest.parents[2] / "units")
    path = manifest.parent / "seed1/run.json"
    record = read_json(path)
    change(record)
    write_json(path, record)
    (run,) = make_runs(manifest, outcome, seeds=[1])
    assert run.record()["outputs"].keys() == {"measured.csv", "arrays.safetensors"}


def test_a_folder_of_a_run_that_leads_elsewhere_deletes_nothing_there(manifest, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter").write_text("dear")
    manifest.parent.mkdir(parents=True)
    (manifest.parent / "seed1").symlink_to(tmp_path / "home")
    with pytest.raises(GhostError, match="'seed1' leads out of"):
        make_runs(manifest, nothing, seeds=[1])
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["letter"]


@pytest.mark.parametrize("name", ["a,b", "line\u2028break", 'new\n"line"'])
def test_names_of_units_come_back_from_a_pull_whatever_they_hold(manifest, name):
    def split(job):
        return Plan(lambda unit: Split({name: 1}, lambda folder, item: Made(item), lambda kept: Outcome([])))

    for _ in range(2):
        execute(split, json.dumps(declaration(seeds=[1])), manifest)
        units = manifest.parents[2] / "units"
        (listing,) = (units / "simulate").glob("*/arrays.safetensors")
        kept = read_json(units / f"simulate/{listing.parent.name}.json")
        assert [line[0] for line in kept["value"]["units"]] == [name]
        shutil.rmtree(units)


@pytest.mark.parametrize("name", ["units.csv", "run.json"])
@pytest.mark.parametrize("content", [b"\xff", b'"', b"", b"unit\n"])
def test_a_pulled_run_whose_record_is_damaged_is_done_again(manifest, name, content):
    done = []
    make_runs(manifest, lambda seed: done.append(seed) or nothing(seed), seeds=[1])
    shutil.rmtree(manifest.parents[2] / "units")
    (manifest.parent / "seed1" / name).write_bytes(content)
    (run,) = make_runs(manifest, lambda seed: done.append(seed) or nothing(seed), seeds=[1])
    assert done == [1, 1]
    assert run.record()["run_id"] == run.run_id


def test_an_edited_file_of_a_run_is_mended_when_the_step_runs_again(manifest):
    make_runs(manifest, lambda seed: Outcome([Measured("all", "loss", seed)]), seeds=[1])
    path = manifest.parent / "seed1/measured.csv"
    path.unlink()
    (manifest.parent / "seed1/stray.txt").write_text("of an older run")
    make_runs(manifest, nothing, seeds=[1])
    assert open_runs(manifest)[0].value("all", "loss") == 1
    assert not (manifest.parent / "seed1/stray.txt").exists()


# ----------------------------------------------------------------------------------------------------------- inputs


def test_stand_ins_and_reductions_are_inherited(tmp_path):
    """A test of a small model is a reduced test, whatever its own size; also through two steps."""
    first, second, third = (tmp_path / f"runs/{name}/manifest.json" for name in ("train", "evaluate", "again"))
    make_runs(
        first,
        lambda seed: Outcome([Measured("head", "parameters", 7)]),
        name="train",
        reduced={"epochs": {"here": 3, "paper": 300}},
        stand_ins=[{"of": "own"}, {"of": "found", "evidence": "head/parameters", "real": 8}],
    )
    make_runs(second, nothing, needs=[first], name="evaluate")
    (run, _) = make_runs(third, nothing, needs=[second], name="again")
    assert run.record()["reduced"] == {"train.epochs": {"here": 3, "paper": 300}}
    assert run.record()["stand_ins"] == ["found", "own"]


def test_a_run_names_the_runs_that_it_used_and_no_others(tmp_path):
    first, second = (tmp_path / f"runs/{name}/manifest.json" for name in ("train", "evaluate"))
    trained = make_runs(first, lambda seed: Outcome([Measured("all", "loss", seed)]), name="train", seeds=[1, 2])
    (run,) = make_runs(second, nothing, needs=[first], name="evaluate", seeds=[2])
    assert run.record()["inputs"] == {"train/seed2": {"run_id": trained[1].run_id, "sha256": trained[1].content}}
    make_runs(first, lambda seed: Outcome([Measured("all", "loss", seed)]), name="train", seeds=[1, 2, 3])
    (again,) = make_runs(second, lambda seed: 1 / 0, needs=[first], name="evaluate", seeds=[2])
    assert again.run_id == run.run_id  # another seed of its input changes nothing
    make_runs(first, lambda seed: Outcome([Measured("all", "loss", 9)]), name="train", seeds=[2], settings={})
    (other,) = make_runs(second, nothing, needs=[first], name="evaluate", seeds=[2])
    assert other.run_id != run.run_id


def test_inputs_pair_by_seed(tmp_path):
    one = make_runs(tmp_path / "runs/one/manifest.json", nothing, name="one", seeds=[0])
    many = make_runs(tmp_path / "runs/many/manifest.json", nothing, name="many", seeds=[1, 2])
    assert [run.name for run in paired(2, [one, many])] == ["one/seed0", "many/seed2"]
    with pytest.raises(GhostError, match="many has no run with seed 3; its seeds are 1, 2"):
        paired(3, [one, many])


# ------------------------------------------------------------------------------------------------------------ units


def square(folder, item):
    return Made(item * item)


def split_step(settings, done):
    def work(folder, item):
        done.append(item)
        return square(folder, item)

    def join(made):
        return Outcome([Measured(str(k), "square", kept.value) for k, kept in enumerate(made)])

    items = {f"item{k}": k for k in range(settings["count"])}
    return lambda job: Plan(lambda unit: Split(items, work, join, without=("count",)))


def test_more_items_do_just_the_new_ones(tmp_path):
    out, done = tmp_path / "runs/tiny/manifest.json", []
    for count in (2, 4, 3):
        given = declaration(settings={"count": count}, seeds=[0])
        execute(split_step({"count": count}, done), json.dumps(given), out)
        assert [m.value for m in open_runs(out)[0].measured()] == [k * k for k in range(count)]
    assert done == [0, 1, 2, 3]
    lines = (out.parent / "seed0/units.csv").read_text().splitlines()
    assert lines[0] == "unit,address,start,wall_s"
    assert [line.split(",")[0] for line in lines[1:]] == ["item0", "item1", "item2"]


def test_any_division_into_parts_gives_the_same_manifest(tmp_path):
    manifests = []
    for parts in (1, 2, 3):
        out, done = tmp_path / f"in{parts}/runs/tiny/manifest.json", []
        text = json.dumps(declaration(settings={"count": 5}, seeds=[0, 1]))
        for part in range(1, parts + 1):
            marker = tmp_path / f"{part}of{parts}.json"
            execute(split_step({"count": 5}, done), text, out, part=part, parts=parts, done=marker)
        execute(split_step({"count": 5}, done), text, out)
        assert sorted(done) == sorted([*range(5)] * 2)
        manifests.append(out.read_bytes())
    assert len(set(manifests)) == 1


def test_a_part_may_be_whole_runs(tmp_path):
    """One job a seed: each does its run, the last one finds them and says where each was done."""
    whole, out, done = tmp_path / "whole/runs/tiny/manifest.json", tmp_path / "parts/runs/tiny/manifest.json", []

    def step(job):
        def run(unit):
            done.append(unit.seed)
            return Outcome([Measured("all", "loss", unit.seed)])

        return Plan(run)

    execute(step, json.dumps(declaration()), whole)
    for seed in (8, 7):
        execute(step, json.dumps(declaration(seeds=[seed])), out, done=tmp_path / f"seed{seed}.json")
        assert not out.exists()
    assert done == [7, 8, 8, 7]
    execute(step, json.dumps(declaration()), out)
    assert len(done) == 4
    assert out.read_bytes() == whole.read_bytes()
    parts = [json.loads((tmp_path / f"seed{seed}.json").read_text()) for seed in (7, 8)]
    assert parts == [[run.run_id] for run in open_runs(out)]


# ----------------------------------------------------------------------------------------------------- command line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "--experiment is not JSON"),
        ("[1]", "--experiment lacks name, step"),
        (json.dumps(declaration(module="os.path")), "'os.path' is not a module of this project"),
        (json.dumps(declaration(needs=["train"])), "tiny needs 1 manifests, --needs names 0"),
        (json.dumps(declaration(settings={"hidden": 1})), "tiny: no setting 'hidden'"),
    ],
)
def test_a_bad_experiment_is_one_line(tmp_path, text, message):
    options = ("--experiment", text, "--out", str(tmp_path / "manifest.json"))
    done = call(ROOT, sys.executable, "-m", "ghost.steps.simulate", *options, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert message in done.stderr


def test_help_says_what_a_step_does():
    done = call(ROOT, sys.executable, "-m", "ghost.steps.rollout", "--help")
    assert "Let a trained policy act in LIBERO-10" in done.stdout
    assert "--experiment" in done.stdout


def test_a_killed_write_of_a_listing_leaves_nothing_for_long(tmp_path, tiny_manifest):
    """The next job of the step removes it, in the units and beside the manifest."""
    units = tiny_manifest.parents[2] / "units/simulate"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = [folder / f".x.{HOST}-{gone.pid}.tmp.json" for folder in (units, tiny_manifest.parent)]
    for path in left:
        path.write_text("half")
    make_runs(tiny_manifest, lambda seed: pytest.fail("done before"))
    assert not any(path.exists() for path in left)


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(tmp_path):
    """A limit on the size of files stands for it: the system refuses the write in the same way."""
    code = """
import json, resource, sys
from pathlib import Path
import numpy as np
from conftest import declaration
from ghost.runs.driver import Plan, execute
from ghost.errors import exit_on_error
from ghost.data.results import Measured, Outcome
outcome = Outcome([Measured("a", "b", 1.0)], {"curve": np.zeros(int(sys.argv[2]))})
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
run = lambda: execute(lambda job: Plan(lambda unit: outcome), json.dumps(declaration()), Path(sys.argv[1]))
exit_on_error(run)
"""
    manifest = tmp_path / "runs/tiny/manifest.json"

    def run(size, limit):
        command = [sys.executable, "-c", code, str(manifest), str(size), str(limit)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    for size, limit in ((10_000, 5_000), (1, 300)):  # the arrays do not fit; the listing does not
        full = run(size, limit)
        assert full.returncode == 2
        assert full.stderr.count("\n") == 1
        assert full.stderr.startswith(f"ghost: error: {tmp_path}")
        assert not list(tmp_path.rglob(".*"))
        assert not list((tmp_path / "units/simulate").glob("*.json"))
    assert run(1, 1_000_000).returncode == 0
    assert manifest.exists()
