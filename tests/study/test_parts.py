"""Which parts an experiment has: every unit is in one of them, whatever the grain."""

from __future__ import annotations

import pytest

from ghost.errors import GhostError
from ghost.study.builds import load
from ghost.study.parts import check_grain, parts_of, units_of, uses_gpu

PAPER, SMOKE = load({"scale": "paper"}), load({"scale": "smoke"})
FINE = {"seeds": 1, "episodes": 100, "attempts": 100, "shards": 50}


def names(config, experiment, grain):
    return [part.name for part in parts_of(config, experiment, grain)]


def test_without_a_grain_an_experiment_is_one_job():
    assert all(len(parts_of(PAPER, experiment.name, {})) == 1 for experiment in PAPER.experiments)


def test_every_seed_and_every_hundred_episodes_at_the_papers_sizes():
    for experiment in PAPER.experiments:
        parts = parts_of(PAPER, experiment.name, FINE)
        noun, units = units_of(PAPER, experiment.name)
        assert max(part.units for part in parts) <= FINE[noun]
        for seed in experiment.seeds:
            of_seed = [part for part in parts if seed in part.seeds]
            assert [part.number for part in of_seed] == list(range(1, of_seed[0].shares + 1))
            assert sum(part.units for part in of_seed) >= units
    assert names(PAPER, "libero_mlp_rollout", FINE)[:3] == ["seed42_1of2", "seed42_2of2", "seed123_1of2"]
    assert names(PAPER, "mlp", FINE) == ["seed42", "seed123", "seed999", "seed7", "seed2024"]
    assert units_of(PAPER, "libero_mlp_misdirected") == ("episodes", 2 * 3 * 20)
    assert units_of(PAPER, "libero_demos") == ("attempts", 500)
    assert units_of(PAPER, "dual_arm_features") == ("shards", -(-(5600 + 1430 + 1000) // 256))
    assert units_of(PAPER, "dual_arm") == ("seeds", 1)


@pytest.mark.parametrize(("seeds", "expected"), [(2, ["seed42-123", "seed999-7", "seed2024"]), (5, ["seed42-2024"])])
def test_several_seeds_a_job(seeds, expected):
    assert names(PAPER, "mlp", {"seeds": seeds}) == expected


def test_a_further_seed_is_a_further_part():
    more = load({"scale": "smoke", "experiments": {"mlp": {"seeds": 3}}})
    before, after = parts_of(SMOKE, "mlp", FINE), parts_of(more, "mlp", FINE)
    assert after[:2] == before
    assert [part.seeds for part in after[2:]] == [(999,)]


def test_a_unit_that_does_not_exist_is_one_line():
    with pytest.raises(GhostError, match="grain: no unit 'episode'; did you mean episodes"):
        check_grain({"episode": 3})


def test_gpus_are_for_what_uses_them():
    groot = load({"scale": "smoke", "backbone": "groot"})
    using = [experiment.name for experiment in PAPER.experiments if uses_gpu(PAPER, experiment.name)]
    assert {PAPER.experiment(name).step for name in using} == {"train", "evaluate"}
    assert [name for name in using if PAPER.experiment(name).step == "evaluate"] == ["dit_offline", "latency"]
    assert uses_gpu(groot, "dual_arm_features")
    assert uses_gpu(groot, "dit")
