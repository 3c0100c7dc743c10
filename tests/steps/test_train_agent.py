"""Training agents through the real steps, at smoke scale: they learn, resume to the same bytes, in any order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import call, copy_project
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.evaluate import evaluate
from ghost.steps.make_demos import make_demos
from ghost.steps.train_agent import train_agent
from ghost.study.builds import load
from ghost.training import loop

AGENTS = ("dark_room_ghost", "dark_room_transformer", "dark_room_ad", "dark_room_rl2")


def text(root: Path, name: str, **changes) -> str:
    given = load({"scale": "smoke"}, root).declaration(name)
    given["settings"].update(changes)
    given["seeds"] = given["seeds"][:1]
    return json.dumps(given)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """Manifests of all Dark Room experiments at smoke scale, one seed."""
    from conftest import ROOT

    folder = tmp_path_factory.mktemp("runs")
    made = {name: folder / name / "manifest.json" for name in ("dark_room_demos", "dark_room_histories", *AGENTS)}
    for name in ("dark_room_demos", "dark_room_histories"):
        execute(make_demos, text(ROOT, name), made[name])
    needs = dict.fromkeys(AGENTS, (made["dark_room_demos"],))
    needs |= {"dark_room_ad": (made["dark_room_histories"],), "dark_room_rl2": ()}
    for name in AGENTS:
        execute(train_agent, text(ROOT, name), made[name], needs[name])
    made["switching"] = folder / "switching" / "manifest.json"
    execute(evaluate, text(ROOT, "dark_room_switching"), made["switching"], tuple(made[name] for name in AGENTS))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_beats_a_random_walk(runs, name):
    (run,) = open_runs(runs["switching"])
    assert run.value(name, "total_reward") > run.value("random_walk", "total_reward") + 20
    assert run.value(name, "steady_reward") > run.value("random_walk", "steady_reward") + 0.1


@pytest.mark.slow
def test_ghost_reaches_the_new_goal_in_nearly_every_switch(runs):
    (run,) = open_runs(runs["switching"])
    assert run.value("dark_room_ghost", "reached") >= 0.95
    assert run.value("dark_room_ghost", "latency") < 1.5 * run.value("shortest_way", "latency")


class KilledError(Exception):
    pass


@pytest.mark.parametrize("name", ["dark_room_ghost", "dark_room_rl2"])
def test_a_killed_training_goes_on_to_the_same_bytes(tmp_path, root, monkeypatch, name):
    """Also where the samples are acted anew before every epoch."""
    changes = {"epochs": 3} | ({"episodes": 4} if name == "dark_room_rl2" else {})
    needs = ()
    if name == "dark_room_ghost":
        demos = tmp_path / "dark_room_demos" / "manifest.json"
        execute(make_demos, text(root, "dark_room_demos", episodes=2), demos)
        needs = (demos,)
    given = text(root, name, **changes)
    execute(train_agent, given, tmp_path / "whole/manifest.json", needs)

    epoch = loop.Fit.epoch

    def killed(self):
        if self.epochs_run == 2:
            raise KilledError
        epoch(self)

    monkeypatch.setattr(loop, "STATE_EVERY_S", 0.0)
    monkeypatch.setattr(loop.Fit, "epoch", killed)
    with pytest.raises(KilledError):
        execute(train_agent, given, tmp_path / "cut/manifest.json", needs)
    assert not (tmp_path / "cut/manifest.json").exists()
    epochs_left = []

    def counted(self):
        epochs_left.append(self.epochs_run)
        epoch(self)

    monkeypatch.setattr(loop.Fit, "epoch", counted)
    execute(train_agent, given, tmp_path / "cut/manifest.json", needs)
    assert epochs_left == [2]
    seed = json.loads(given)["seeds"][0]
    whole, cut = ((tmp_path / side / f"seed{seed}/model.safetensors").read_bytes() for side in ("whole", "cut"))
    assert whole == cut
    assert not list(tmp_path.rglob("state.safetensors"))


@pytest.mark.slow
def test_one_worker_and_two_give_the_same_bytes(tmp_path):
    """The experiments of the Dark Room as jobs, one at a time and two at a time, tinier than at smoke scale."""
    tiny = "{dark_room_ghost: {seeds: 1, epochs: 1}, dark_room_transformer: {seeds: 1, epochs: 1}," + (
        " dark_room_ad: {seeds: 1, epochs: 1}, dark_room_rl2: {seeds: 1, epochs: 1, episodes: 4},"
        " dark_room_switching: {seeds: 1, episodes: 4}}"
    )
    target = "data/smoke/runs/dark_room_switching/manifest.json"
    made = {}
    for workers in (1, 2):
        folder = copy_project(tmp_path / str(workers))
        call(folder, "snakemake", "--cores", str(workers), target, "--config", "scale=smoke", f"experiments={tiny}")
        runs = folder / "data/smoke/runs"
        files = [path for path in runs.rglob("*") if path.is_file() and path.name != "run.json"]  # times and such
        made[workers] = {str(path.relative_to(runs)): path.read_bytes() for path in files}
    assert len(made[1]) > 20
    assert made[1] == made[2]
