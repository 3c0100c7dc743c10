"""Rollouts: every policy acts; workers, a kill and a resume change nothing; a crash is no result."""

import csv

import numpy as np
import pytest
from policies import POLICIES

from ghost.errors import GhostError
from ghost.libero import episodes as libero_episodes
from ghost.libero.conventions import find_convention
from ghost.libero.episodes import Episode, Settings, Trial, measured_of, trials
from ghost.libero.policy import Planned
from ghost.libero.sensing import Senses
from ghost.libero.tasks import Look
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps import rollout as step
from trained import declared

pytest_plugins = ("libero_fixtures",)

BASE = {"backbone": "libero_standin", "tasks": [5], "trials": 2, "max_steps": 12, "execute": 8, "env_seed": 0}


def run(libero_runs, name, out, seeds=(1,), **settings):
    given = {key: value for key, value in {**BASE, **settings}.items() if value is not None}
    text = declared(f"{name}_rollout", "rollout", "ghost.steps.rollout", given, list(seeds), ["features", name])
    execute(step.rollout, text, out, [libero_runs["features"], libero_runs[name]])
    return open_runs(out)


def episodes(runs):
    return [list(csv.DictReader(run.path("episodes.csv").open())) for run in runs]


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_acts(name, libero_runs, tmp_path):
    runs = run(libero_runs, name, tmp_path / "manifest.json", trials=1)
    (episode,) = episodes(runs)[0]
    assert episode["steps"] == "12"
    assert (episode["phases"] == "") == (name in ("mlp", "ghost"))
    assert {"LIBERO assets", "GR00T N1.5 backbone"} <= set(runs[0].record()["stand_ins"])
    assert runs[0].record()["facts"] == {"libero_assets": "primitives"}
    assert runs[0].value("T5", "success") in (0.0, 1.0)


@pytest.mark.slow
def test_two_workers_give_the_episodes_of_one(libero_runs, tmp_path, monkeypatch):
    one = run(libero_runs, "ghost_pz", tmp_path / "one/manifest.json")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    two = run(libero_runs, "ghost_pz", tmp_path / "two/manifest.json")
    assert one[0].files == two[0].files
    assert one[0].run_id == two[0].run_id


@pytest.mark.slow
def test_a_killed_run_goes_on_behind_its_last_episode(libero_runs, tmp_path, monkeypatch):
    whole = run(libero_runs, "mlp_phase", tmp_path / "whole/manifest.json")
    out, played, play = tmp_path / "killed/manifest.json", [], step.play

    def dies_at_the_second(*arguments):
        played.append(next(argument for argument in arguments if isinstance(argument, Trial)))
        if len(played) == 2:
            raise KeyboardInterrupt
        return play(*arguments)

    monkeypatch.setattr(step, "play", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        run(libero_runs, "mlp_phase", out)
    assert not out.exists()
    resumed = run(libero_runs, "mlp_phase", out)
    assert [trial.trial for trial in played] == [0, 1, 1]
    assert resumed[0].files == whole[0].files


@pytest.mark.slow
def test_more_trials_play_just_the_new_ones(libero_runs, tmp_path):
    out = tmp_path / "manifest.json"

    def starts(trials):
        run(libero_runs, "mlp", out, trials=trials)
        with (tmp_path / "seed1/units.csv").open() as lines:
            return {line["unit"]: (line["start"], line["wall_s"]) for line in csv.DictReader(lines)}

    one, three = starts(1), starts(3)
    assert list(three) == ["T5_000", "T5_001", "T5_002"]
    assert three["T5_000"] == one["T5_000"]
    units = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("units/rollout/*")}
    assert starts(1) == one
    assert starts(3) == three
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("units/rollout/*")} == units


@pytest.mark.slow
def test_a_crash_of_the_simulator_is_no_failed_trial(libero_runs, tmp_path, monkeypatch):
    def crash(*arguments):
        raise RuntimeError("mujoco: unstable")

    monkeypatch.setattr(step, "play", crash)
    with pytest.raises(RuntimeError, match="unstable"):
        run(libero_runs, "mlp", tmp_path / "manifest.json")
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.slow
def test_an_ensemble_has_all_seeds_and_a_run_for_each_env_seed(libero_runs, tmp_path):
    ensemble = {"seeds": (0, 1), "ensemble": True, "env_seed": None, "trials": 1}
    runs = run(libero_runs, "ghost_pg", tmp_path / "manifest.json", **ensemble)
    (first,), (second,) = episodes(runs)
    assert (first["training_seed"], first["env_seed"], first["init_state"]) == ("-1", "0", "0")
    assert (second["training_seed"], second["env_seed"], second["init_state"]) == ("-1", "1", "-1")
    assert first["start"] != second["start"]
    with pytest.raises(GhostError, match="ghost_pg has no run with seed 9"):
        run(libero_runs, "ghost_pg", tmp_path / "other/manifest.json", seeds=(9,))


@pytest.mark.slow
def test_another_env_seed_is_other_trials(libero_runs, tmp_path):
    """In the units' addresses and in the rows; and an env_seed of its own has more than 50 trials."""
    found = [episodes(run(libero_runs, "mlp", tmp_path / f"{seed}/manifest.json", env_seed=seed))[0] for seed in (0, 3)]
    assert [[row["env_seed"] for row in rows] for rows in found] == [["0", "0"], ["3", "3"]]
    assert len({row["start"] for rows in found for row in rows}) == 4
    assert [row["init_state"] for row in found[0]] == ["0", "1"]
    with pytest.raises(GhostError, match=r"51 trials a task: env_seed 0 has 50, .* another env_seed, such as 1"):
        run(libero_runs, "mlp", tmp_path / "many/manifest.json", trials=51)


@pytest.mark.slow
def test_equal_trials_are_refused(libero_runs, tmp_path, monkeypatch):
    """As when trial k started from init state 40 + k mod 10, and the seed had nothing to move."""
    monkeypatch.setattr(Trial, "init_state", 7)
    monkeypatch.setattr(Trial, "seeds", (1, 2))
    with pytest.raises(GhostError, match=r"T5: trials 0, 1 start alike \(start [0-9a-f]{16}\)"):
        run(libero_runs, "mlp", tmp_path / "manifest.json")
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.slow
def test_a_trial_that_starts_like_a_demonstration_is_refused(libero_runs, tmp_path, monkeypatch):
    first_attempt = int(np.random.default_rng([0, 5, 0]).integers(2**31))
    monkeypatch.setattr(Trial, "seeds", (first_attempt, 2))
    with pytest.raises(GhostError, match="trial T5_000 of env_seed 1 starts like a demonstration"):
        run(libero_runs, "mlp", tmp_path / "manifest.json", env_seed=1)
    assert not (tmp_path / "manifest.json").exists()


def test_a_misdirected_trial_is_told_the_wrong_thing_for_just_so_many_steps(monkeypatch):
    """A policy whose actions tell what it was told last, in an environment that never ends and notes what is done."""
    executed, plans = [], []

    class Telling:
        def __init__(self):
            self.senses = Senses(find_convention("ghost"), (), 64)

        def start(self, seed):
            pass

        def plan(self, raw, instruction):
            plans.append(len(executed))
            return Planned(np.full((16, 7), float("soup" in instruction)), 0)

    class Endless:
        start = "somewhere"

        def reset(self, init_state, seed):
            pass

        def look(self):
            return Look(*(np.zeros(shape) for shape in (3, (3, 3), 2, 2, (21, 9), 3)))

        def step(self, action):
            executed.append(bool(action[0]))

        def success(self):
            return False

        def render(self, camera):
            raise AssertionError

    monkeypatch.setattr(libero_episodes, "environment", lambda *which: Endless())
    settings = Settings("libero_standin", (), 1, 80, 8, env_seed=0, misdirect=((0, 1),), switch_at=(50,))
    (trial,) = trials(settings, 3)
    assert trial == Trial(1, 0, 0, 50, 0)
    episode = libero_episodes.play(settings, None, Telling(), 3, trial)
    assert executed == [True] * 50 + [False] * 30
    assert plans == [0, 8, 16, 24, 32, 40, 48, 50, 58, 66, 74]
    assert (episode.condition, episode.init_state, episode.steps) == ("T0-T1_N50", 0, 80)


def test_phases_of_successes_and_failures():
    def episode(trial, success, phases):
        return Episode("T8", 8, trial, 1, 0, trial, str(trial), 0, 0, success, success, 100, phases)

    found = [episode(0, True, "0 1 4 4"), episode(1, True, "0 0 0 4"), episode(2, False, "0 1 0 1")]
    rows = {(r.condition, r.metric): (r.value, r.n) for r in measured_of(found)}
    assert rows["T8", "success"] == (pytest.approx(2 / 3), 3)
    assert rows["T8/succeeded", "transitions"] == (1.5, 2)
    assert rows["T8/failed", "transitions"] == (3.0, 1)
    assert rows["T8/succeeded", "second_object_percent"] == (37.5, 2)
    assert rows["T8/failed", "share_of_phase_1"] == (0.5, 1)
    assert rows["T8", "subphases"] == (5, 1)
    assert rows["all", "success"] == (pytest.approx(2 / 3), 3)


def test_bad_settings_are_one_line():
    with pytest.raises(ValueError, match="tasks must be some of 0 to 9, got"):
        Settings("libero_standin", (10,), 1, 1, 1, 0)
    with pytest.raises(ValueError, match="belong together"):
        Settings("libero_standin", (1,), 1, 1, 1, 0, misdirect=((0, 1),))
    for ensemble, env_seed in ((True, 0), (False, None)):
        with pytest.raises(ValueError, match="a policy needs an env_seed, an ensemble has none"):
            Settings("libero_standin", (1,), 1, 1, 1, env_seed, ensemble)
    with pytest.raises(ValueError, match="env_seed must not be negative, got -1"):
        Settings("libero_standin", (1,), 1, 1, 1, -1)
