import json

import numpy as np
import pytest

from conftest import make_runs
from ghost.audit.run_list import listed, marks, not_run, processor, software, thinned
from ghost.data.results import Outcome
from ghost.errors import GhostError
from ghost.runs.records import UNITS, open_runs
from ghost.study import EXPERIMENTS


def test_a_curve_is_thinned_between_its_ends():
    curve = np.linspace(1, 0, 1001)
    kept = thinned(curve)
    assert len(kept) == 60
    assert (kept[0], kept[-1]) == (1, 0)
    assert kept == sorted(kept, reverse=True)
    assert thinned(np.array([1 / 3, np.nan, np.inf])) == [0.3333, None, None]
    assert thinned(np.array([2.0])) == [2.0]


def test_a_long_training_takes_no_more_of_the_page_than_a_short_one(tmp_path):
    """The page of 300 runs stays below 8 MB: figures and cells take 3 MB, a record 6 kB, and four curves this."""
    curves = {f"training/{name}": np.random.default_rng(0).normal(size=100_000) for name in "dbca"}
    run = make_runs(tmp_path / "runs/tiny/manifest.json", lambda seed: Outcome([], curves))[0]
    shown = listed(run, run.record())
    assert shown["length"] == 100_000
    assert list(shown["curves"]) == ["a", "b", "c", "d"]  # in this order each time: the page is verified by its bytes
    assert len(json.dumps(shown["curves"])) < 4000


def test_a_run_that_stopped_early_says_so(tmp_path):
    """The tiny experiment asks for three epochs."""
    manifest = tmp_path / "runs/tiny/manifest.json"
    (short, whole) = make_runs(manifest, lambda seed: Outcome([], {"training/loss": np.ones(2 if seed == 7 else 3)}))
    assert "stopped early" in listed(short, short.record())["marks"]
    assert "stopped early" not in listed(whole, whole.record())["marks"]


def test_marks_are_those_of_the_record(tiny_manifest):
    record = open_runs(tiny_manifest)[0].record()
    plain = {**record, "dirty_sha256": None, "environment": {"differs": []}}
    assert marks(plain, 0) == []
    assert marks({**plain, "stand_ins": ["a", "b"], "reduced": {"x": 1}}, 0) == ["stand-in: a, b", "reduced scale"]
    assert marks({**plain, "dirty_sha256": "0" * 64, "environment": {"differs": ["torch"]}}, 0) == [
        "packages differ from the lock",
        "uncommitted code",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Intel(R) Xeon(R) Processor @ 2.50GHz", "Intel Xeon 2.50GHz"),
        ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", "Intel Core i7-8700 3.20GHz"),
        ("AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763 64-Core"),
        ("Neoverse-N1", "Neoverse-N1"),
        ("CPU", "CPU"),
        ("", ""),
    ],
)
def test_a_processor_is_named_without_what_all_have(name, shown):
    assert processor(name) == shown


def test_the_cost_of_a_run_is_that_of_its_units(tiny_manifest):
    run = open_runs(tiny_manifest)[0]
    record = {**run.record(), "cpu_s": 36.0, "wall_s": 72.0, "gpus": []}
    assert listed(run, record)["cost"] == "0.0100 CPU h"
    on_gpus = {**record, "gpus": [{"model": "A100", "uuid": "1"}] * 2}
    assert listed(run, on_gpus)["cost"] == "0.0100 CPU h, 0.0400 GPU h"
    assert listed(run, on_gpus)["device"] == "A100, A100"
    units = run.folder / f"seed{run.seed}" / UNITS  # two episodes, of which other jobs did some
    units.write_text("unit,address,start,wall_s\na,0,x,3600\nb,1,x,1800\n")
    assert listed(run, record)["cost"] == "1.5000 CPU h"
    for wrong in ("nan", "long"):
        units.write_text(f"unit,address,start,wall_s\na,0,x,{wrong}\n")
        with pytest.raises(GhostError, match=r"units\.csv has a"):
            listed(run, record)


def test_versions_are_those_of_simulators_and_models():
    record = {
        "versions": {"python": "3.11", "numpy": "2", "mujoco": "3.3", "torch": "2.13"},
        "facts": {
            "checkpoint": {"sha256": "a" * 64, "name": "nvidia/GR00T-N1.5-3B", "revision": "0123456789"},
            "assets": {"sha256": "b" * 64},
            "dtype": "bfloat16",
        },
    }
    assert software(record) == [
        "mujoco 3.3",
        "torch 2.13",
        "checkpoint nvidia/GR00T-N1.5-3B 01234567",
        "assets bbbbbbbb",
    ]


def test_what_was_not_run_is_listed(tiny_manifest):
    """None of the study's runs is there."""
    missing = not_run(open_runs(tiny_manifest), EXPERIMENTS)
    assert sum(row["n"] for row in missing) == sum(len(experiment.seeds) for experiment in EXPERIMENTS)
