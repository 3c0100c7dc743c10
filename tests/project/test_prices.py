"""What a unit costs: from which measurements, and how they are scaled."""

from __future__ import annotations

import dataclasses
import json

import pytest

from conftest import make_runs
from ghost.data.results import Measured, Outcome
from ghost.project.prices import Measurement, Prices, keep, measurements
from ghost.study.builds import load

PAPER = load({"scale": "paper"})


def measured(name: str, build: str = "there", unit_s: float = 2.0, reduced=None, **changes) -> Measurement:
    """Of an experiment at the paper's sizes, with some settings that are other ones."""
    experiment = PAPER.experiment(name)
    unit = {"rollout": "episodes", "cache_features": "shards"}.get(experiment.step, "seeds")
    settings = {**experiment.settings, **changes}
    return Measurement(name, experiment.step, build, unit, unit_s, 3, 400.0, "a CPU", False, settings, reduced or {})


def prices(tmp_path, *known: Measurement, config=PAPER) -> Prices:
    (tmp_path / "data/bench").mkdir(parents=True)
    (tmp_path / "data/bench/units.json").write_text(json.dumps([dataclasses.asdict(each) for each in known]))
    return Prices(config, tmp_path)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (measured("mlp"), 2.0),
        (measured("mlp", epochs=1), 2.0 * 300),
        (measured("mlp", hidden=128), None),  # another width: another piece of work
        (measured("mlp", reduced={"dual_arm_features.d_token": {"here": 256, "paper": 2048}}), None),
        (measured("libero_mlp", reduced={"libero_demos.attempts": {"here": 10, "paper": 50}}), 2.0 * 5),
        (measured("libero_mlp", epochs=6, reduced={"libero_demos.tasks": {"here": [5], "paper": [*range(10)]}}), 200.0),
        (measured("mlp_offline", reduced={"mlp.epochs": {"here": 1, "paper": 300}}), 2.0),  # the test is the same
        (measured("libero_mlp_rollout", trials=1, tasks=[5]), 2.0),  # an episode is an episode
        (measured("libero_mlp_rollout", max_steps=260), 4.0),
    ],
)
def test_only_amounts_are_scaled(tmp_path, known, expected):
    found = prices(tmp_path, known).price(known.experiment)
    assert found is None if expected is None else found.unit_s == pytest.approx(expected)
    if found:
        assert found.source.startswith("there on a CPU")
        assert ("times" in found.source) == (expected != 2.0)


def test_two_sizes_tell_the_beginning_from_the_rest(tmp_path):
    """20 s to begin with, 2 s an epoch."""
    known = prices(tmp_path, measured("mlp", unit_s=22.0, epochs=1), measured("mlp", unit_s=30.0, epochs=5))
    found = known.price("mlp")
    assert found.unit_s == pytest.approx(20 + 2 * 300)
    assert found.source == "there on a CPU, from two sizes, the larger times 60"


def test_an_episode_with_a_smaller_policy_is_the_second_choice(tmp_path):
    small = {"libero_mlp.hidden": {"here": 16, "paper": 512}}
    known = prices(tmp_path, measured("libero_mlp_rollout", reduced=small))
    assert known.price("libero_mlp_rollout").source == "there on a CPU, with inputs of another size"
    better = dataclasses.replace(known, root=tmp_path / "more")
    (tmp_path / "more/data/bench").mkdir(parents=True)
    both = [measured("libero_mlp_rollout", reduced=small), measured("libero_mlp_rollout", unit_s=3.0)]
    (tmp_path / "more/data/bench/units.json").write_text(json.dumps([dataclasses.asdict(each) for each in both]))
    assert better.price("libero_mlp_rollout").unit_s == 3.0


def test_what_is_smaller_here_counts_too(tmp_path):
    small = load({"scale": "paper", "experiments": {"dual_arm_features": {"d_token": 256}}})
    assert prices(tmp_path, measured("mlp"), config=small).price("mlp") is None


def test_a_build_says_what_its_own_units_took(tmp_path):
    """Its own runs come before what others measured."""
    name = "switch_speed"
    settings = dict(PAPER.experiment(name).settings)
    manifest = tmp_path / f"data/paper/runs/{name}/manifest.json"
    make_runs(manifest, lambda seed: Outcome([Measured("all", "x", 1.0)]), name=name, settings=settings, seeds=[0, 1])
    (found,) = measurements(tmp_path / "data/paper")
    assert (found.experiment, found.unit, found.units, found.build) == (name, "seeds", 2, "paper")
    known = prices(tmp_path, measured(name, unit_s=99.0))
    own = dataclasses.replace(known.config, scale="paper")
    assert Prices(own, tmp_path).price(name).unit_s == found.unit_s
    assert keep(tmp_path / "data/paper", tmp_path / "data/bench/units.json").endswith(", 2 in all")
    assert found.unit_s in [each["unit_s"] for each in json.loads((tmp_path / "data/bench/units.json").read_text())]
