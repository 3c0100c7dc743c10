import json

import pytest

from conftest import ROOT, call
from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.evaluate import evaluate
from ghost.study.builds import load
from trained import SEEDS, declared, train_tiny


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return train_tiny(tmp_path_factory.mktemp("runs"))


def offline(seeds, name="ghost"):
    needs = ["features", name]
    return declared(f"{name}_offline", "evaluate", "ghost.evaluations.offline", {"split": "sample"}, seeds, needs)


def test_a_seed_is_evaluated_on_the_decoder_it_trained(made, tmp_path):
    needs = (made["features"], made["ghost"])
    execute(evaluate, offline(SEEDS), tmp_path / "both/manifest.json", needs)
    execute(evaluate, offline(SEEDS[1:]), tmp_path / "second/manifest.json", needs)
    both, (second,) = (open_runs(tmp_path / name / "manifest.json") for name in ("both", "second"))
    assert [run.seed for run in both] == SEEDS
    assert both[1].measured() == second.measured()
    assert both[0].value("all", "mse") != second.value("all", "mse")
    record = second.record()
    assert record["stand_ins"] == open_runs(made["ghost"])[0].record()["stand_ins"] != []
    assert list(record["inputs"]) == ["features/seed0", f"ghost/seed{SEEDS[1]}"]  # and not the other seed
    assert record["run_id"] == both[1].run_id  # whatever other seeds there are
    assert "ghost/evaluations/offline.py" in record["code"]["files"]
    assert "ghost/training/loop.py" not in record["code"]["files"]


def test_the_same_evaluation_has_the_same_bytes(made, tmp_path):
    needs = (made["features"], made["ghost"])
    for name in ("a", "b"):
        execute(evaluate, offline(SEEDS), tmp_path / name / "manifest.json", needs)
    assert (tmp_path / "a/manifest.json").read_bytes() == (tmp_path / "b/manifest.json").read_bytes()


def test_several_decoders_go_by_the_names_of_their_experiments(made, tmp_path):
    settings = {
        "split": "sample",
        "ghost": "ghost",
        "mlp": "mlp",
        "transitions": 5,
        "hold": 2,
        "shortest_interval": 2,
        "longest_interval": 3,
        "embedded": 20,
    }
    needs = ["features", "ghost", "mlp"]
    text = declared("switching", "evaluate", "ghost.evaluations.switching", settings, SEEDS[:1], needs)
    execute(evaluate, text, tmp_path / "manifest.json", (made["features"], made["ghost"], made["mlp"]))
    (run,) = open_runs(tmp_path / "manifest.json")
    assert run.value("swap", "inflation") > 0


def test_a_seed_that_was_not_trained_is_one_line(made, tmp_path):
    with pytest.raises(GhostError, match="ghost has no run with seed 5; its seeds are 42, 123"):
        execute(evaluate, offline([5]), tmp_path / "manifest.json", (made["features"], made["ghost"]))
    assert not (tmp_path / "manifest.json").exists()
    command = (
        "python",
        "-m",
        "ghost.steps.evaluate",
        "--experiment",
        offline([5]),
        "--out",
        str(tmp_path / "manifest.json"),
    )
    done = call(ROOT, *command, "--needs", str(made["features"]), str(made["ghost"]), check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_what_needs_no_training_has_no_needs(tmp_path):
    given = load({"scale": "smoke"}, ROOT).declaration("latency")
    given["settings"]["rounds"] = 1
    execute(evaluate, json.dumps(given), tmp_path / "manifest.json")
    (run,) = open_runs(tmp_path / "manifest.json")
    assert run.value("ghost", "parameters") == 2_315_746
    assert run.record()["stand_ins"] == []
    assert "ghost/decoders/cvae.py" in run.record()["code"]["files"]
