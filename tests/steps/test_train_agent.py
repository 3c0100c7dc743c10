"""Training agents through the real steps, at smoke scale: they learn, resume to the same bytes, in any order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import call, copy_project
from ghost.runs.records import open_runs
from ghost.steps import train
from ghost.steps.evaluate import evaluate
from ghost.steps.make_demos import make_demos
from ghost.steps.train_agent import train_agent
from ghost.study.builds import load

AGENTS = ("dark_room_ghost", "dark_room_transformer", "dark_room_ad", "dark_room_rl2")


def row(root: Path, name: str, **changes) -> str:
    line = load({"scale": "smoke"}, root).declaration(name)
    line["settings"].update(changes)
    line["seeds"] = line["seeds"][:1]
    return json.dumps(line)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """Manifests of all Dark Room rows at smoke scale, one seed."""
    from conftest import ROOT

    folder = tmp_path_factory.mktemp("runs")
    made = {name: folder / name / "manifest.json" for name in ("dark_room_demos", "dark_room_histories", *AGENTS)}
    for name in ("dark_room_demos", "dark_room_histories"):
        make_demos(row(ROOT, name), made[name])
    needs = dict.fromkeys(AGENTS, (made["dark_room_demos"],))
    needs |= {"dark_room_ad": (made["dark_room_histories"],), "dark_room_rl2": ()}
    for name in AGENTS:
        train_agent(row(ROOT, name), made[name], needs[name])
    made["switching"] = folder / "switching" / "manifest.json"
    evaluate(row(ROOT, "dark_room_switching"), made["switching"], tuple(made[name] for name in AGENTS))
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
        make_demos(row(root, "dark_room_demos", episodes=2), demos)
        needs = (demos,)
    line = row(root, name, **changes)
    train_agent(line, tmp_path / "whole/manifest.json", needs)

    epoch = train.Fit.epoch

    def killed(self):
        if self.epochs_run == 2:
            raise KilledError
        epoch(self)

    monkeypatch.setattr(train, "STATE_EVERY_S", 0.0)
    monkeypatch.setattr(train.Fit, "epoch", killed)
    with pytest.raises(KilledError):
        train_agent(line, tmp_path / "cut/manifest.json", needs)
    assert not (tmp_path / "cut/manifest.json").exists()
    epochs_left = []

    def counted(self):
        epochs_left.append(self.epochs_run)
        epoch(self)

    monkeypatch.setattr(train.Fit, "epoch", counted)
    train_agent(line, tmp_path / "cut/manifest.json", needs)
    assert epochs_left == [2]
    seed = json.loads(line)["seeds"][0]
    whole, cut = ((tmp_path / side / f"seed{seed}/model.safetensors").read_bytes() for side in ("whole", "cut"))
    assert whole == cut
    assert not (tmp_path / f"cut/seed{seed}/state.safetensors").exists()


@pytest.mark.slow
def test_one_worker_and_two_give_the_same_bytes(tmp_path):
    """The rows of the Dark Room as jobs, one at a time and two at a time, tinier than at smoke scale."""
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
