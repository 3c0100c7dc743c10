import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from conftest import ROOT
from ghost.backbones import Observations
from ghost.backbones.standin import Settings, encode
from ghost.data.dual_arm import TASKS
from ghost.data.features import FeatureCache
from ghost.data.sampling import open_demos
from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from trained import declared

BACKBONE = {"tokens": 6, "d_token": 128, "text_tokens": 2, "hidden": 96, "weights_seed": 2026}
DRAW = {
    "train_per_task": [100] * 9 + [60],
    "test_per_task": [20] * 9 + [15],
    "train_episodes": 160,
    "train_timesteps": 90,
    "test_timesteps": 30,
    "horizon": 17,
    "d_state": 64,
    "d_action": 32,
    "samples_per_shard": 100,
}
SAMPLES = 960 + 195 + 90 + 30


DEMOS = {"episodes": 200, "steps": 60, "fps": 20, "robot_seed": 2026, "state_noise": 0.01, "scene_noise": 0.02}


def cache_all(out, demos, settings=None, **changes):
    given = settings or {**BACKBONE, **DRAW, **changes}
    text = declared("dual_arm_features", "cache_features", "ghost.backbones.standin", given, [0], ["demos"])
    execute(cache_features, text, out, [demos])


def make(out, **changes):
    settings = {**DEMOS, "episodes_per_file": 60, **changes}
    execute(make_demos, declared("d", "make_demos", "ghost.data.dual_arm", settings, [0], []), out)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    manifest = tmp_path_factory.mktemp("demos") / "manifest.json"
    make(manifest)
    return manifest


@pytest.fixture(scope="module")
def data(demos):
    return open_demos(open_runs(demos)[0])


@pytest.fixture(scope="module")
def manifest(tmp_path_factory, demos):
    out = tmp_path_factory.mktemp("features") / "manifest.json"
    cache_all(out, demos)
    return out


@pytest.fixture(scope="module")
def cache(manifest):
    return FeatureCache.open(manifest)


def test_samples_are_those_of_the_data_set(cache, data):
    assert len(cache) == SAMPLES
    assert cache.task_names == tuple(task.name for task in TASKS)
    assert np.all(np.diff(cache.episode) >= 0)
    assert cache.action_mask.tolist() == [True] * 17 + [False] * 15
    assert not cache.state[:, 17:].any()
    assert not cache.action[:, :, 17:].any()
    late = np.flatnonzero(cache.timestep + 17 > data.lengths()[cache.episode])  # chunks that pass the end
    for index in (*np.arange(0, SAMPLES, 211), *late[:3]):
        episode, step = data.episode(int(cache.episode[index])), cache.timestep[index]
        chunk = episode.action[step : step + 17]
        np.testing.assert_array_equal(cache.action[index, : len(chunk), :17], chunk)
        assert np.all(cache.action[index, len(chunk) :, :17] == episode.action[-1])
        np.testing.assert_array_equal(cache.state[index, :17], episode.state[step])
        assert (cache.task[index], cache.phase[index]) == (episode.task[step], episode.columns["phase"][step])


def test_tokens_are_what_the_backbone_says(cache, data):
    indices = np.array([700, 3, 404, 404, SAMPLES - 1])
    for index, tokens in zip(indices, cache.tokens(indices), strict=True):
        step = cache.timestep[index]
        columns = {name: value[[step]] for name, value in data.episode(int(cache.episode[index])).columns.items()}
        at = np.array([[cache.episode[index], step]])
        state = cache.state[[index]]
        seen = Observations((cache.task_names[cache.task[index]],), columns, lambda camera: None, (), state, at)
        np.testing.assert_array_equal(encode(Settings(**BACKBONE), seen)[0], tokens)


def test_splits_are_disjoint_and_counted(cache):
    train, test = cache.split("sample")
    assert np.bincount(cache.task[train]).tolist() == DRAW["train_per_task"]
    assert np.bincount(cache.task[test]).tolist() == DRAW["test_per_task"]
    steps = [{(cache.episode[i], cache.timestep[i]) for i in part} for part in (train, test)]
    assert not steps[0] & steps[1]
    assert sum(map(len, steps)) == len(train) + len(test)  # none twice
    assert set(cache.episode[test]) & set(cache.episode[train])  # as in the paper: not by episode
    seen, unseen = cache.split("episode")
    assert (len(seen), len(unseen)) == (90, 30)
    assert cache.episode[seen].max() < DRAW["train_episodes"] <= cache.episode[unseen].min()
    assert sorted(np.concatenate([train, test, seen, unseen])) == list(range(SAMPLES))


def test_the_record_says_what_stands_in(manifest, demos):
    record = open_runs(manifest)[0].record()
    assert record["stand_ins"] == ["GR00T N1.5 backbone", "dual-arm data set"]
    (made,) = open_runs(demos)
    assert record["inputs"] == {made.name: {"run_id": made.run_id, "sha256": made.content}}
    assert {"ghost/backbones/standin.py", "ghost/data/lerobot.py"} <= set(record["code"]["files"])
    assert open_runs(manifest)[0].value("sample_split", "train") == 960


def test_every_task_can_be_learned_but_not_exactly(cache):
    """Ridge regression on tokens and state: at most a third of what predicting the training mean gives, per task."""
    (train, test), real = cache.split("sample"), cache.action_mask

    def inputs(indices):
        return np.concatenate(
            [cache.tokens(indices).reshape(len(indices), -1), cache.state[indices]], axis=1, dtype=float
        )

    x, y = inputs(train), cache.action[train][:, :, real].reshape(len(train), -1)
    mean, scale, centre = x.mean(axis=0), x.std(axis=0) + 1e-3, y.mean(axis=0)
    x = (x - mean) / scale
    weights = x.T @ np.linalg.solve(x @ x.T + 100 * np.eye(len(x)), y - centre)
    target = cache.action[test][:, :, real].reshape(len(test), -1)
    error = np.square((inputs(test) - mean) / scale @ weights + centre - target).mean(axis=1)
    baseline = np.square(target - centre).mean(axis=1)
    for index, name in enumerate(cache.task_names):
        here = cache.task[test] == index
        assert error[here].mean() < baseline[here].mean() / 3, name
        assert error[here].mean() > 1e-3, name


def test_a_killed_step_goes_on_and_gives_the_same_bytes(tmp_path, demos):
    settings = {**BACKBONE, **DRAW, "samples_per_shard": 8}
    text = declared("dual_arm_features", "cache_features", "ghost.backbones.standin", settings, [0], ["demos"])
    out = tmp_path / "killed/manifest.json"
    command = [sys.executable, "-m", "ghost.steps.cache_features", "--experiment", text]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "--needs", str(demos), "--out", str(out)], env=environment, stderr=subprocess.DEVNULL
    )
    units = out.parent / "units/cache_features"
    while len(list(units.glob("[!.]*.json"))) < 4:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in units.glob("[!.]*.json")}
    assert 4 <= len(finished) < SAMPLES // 8
    assert not out.exists()
    execute(cache_features, text, out, [demos])
    assert {path: path.stat().st_mtime_ns for path in finished} == finished  # kept, not made again
    whole = tmp_path / "whole/manifest.json"
    execute(cache_features, text, whole, [demos])
    assert out.read_bytes() == whole.read_bytes()  # which has the sha256 of every file
    assert not list(tmp_path.rglob("seed0/**/*.tmp*"))
    assert len(FeatureCache.open(out)) == SAMPLES


def test_another_shard_size_gives_the_same_arrays(tmp_path, demos, cache):
    out = tmp_path / "manifest.json"
    cache_all(out, demos, samples_per_shard=999)
    other = FeatureCache.open(out)
    np.testing.assert_array_equal(other.tokens(np.arange(SAMPLES)), cache.tokens(np.arange(SAMPLES)))
    np.testing.assert_array_equal(other.split("sample")[1], cache.split("sample")[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_per_task": [20] * 9}, "must name the same tasks, got 10 and 9 counts"),
        ({"train_per_task": [5], "test_per_task": [5]}, "has 10 tasks, train_per_task has 1"),
        ({"train_per_task": [0] * 10}, "must be at least 1 for every task"),
        ({"train_per_task": [9999] * 10}, "task Arrange_cups has"),
        ({"train_episodes": 200}, "train_episodes must leave some of the 200 to test, got 200"),
        ({"test_timesteps": 99999}, "the test episodes has"),
        ({"d_action": 16}, "state 17 and action 17 do not fit into 64 and 16"),
        ({"text_tokens": 6}, "dual_arm_features: text_tokens must leave some of 6"),
        ({"speed": 1}, "no setting 'speed'"),
    ],
)
def test_bad_settings_are_one_line(tmp_path, demos, change, message):
    with pytest.raises(GhostError) as error:
        cache_all(tmp_path / "manifest.json", demos, **change)
    assert message in str(error.value)
    assert not (tmp_path / "manifest.json").exists()


def test_an_altered_data_set_is_refused(tmp_path):
    demos = tmp_path / "d/manifest.json"
    make(demos, episodes=10, steps=20)
    path = demos.parent / "seed0/dataset/meta/info.json"
    path.write_text(path.read_text().replace('"fps": 20', '"fps": 21'))
    with pytest.raises(GhostError, match=r"info\.json is not the file that its manifest lists"):
        cache_all(tmp_path / "manifest.json", demos)


def test_whole_episodes_at_a_stride(tmp_path, demos, data):
    """Every third step of all episodes; the last two episodes of each task are to test."""
    kept = {key: DRAW[key] for key in ("horizon", "d_state", "d_action", "samples_per_shard")}
    settings = {**BACKBONE, **kept, "stride": 3, "test_episodes": 2}
    out = tmp_path / "manifest.json"
    cache_all(out, demos, settings)
    cache = FeatureCache.open(out)
    assert len(cache.task) == sum(-(-length // 3) for length in data.lengths())
    assert set(cache.timestep % 3) == {0}
    train, test = cache.split("episode")
    assert not set(cache.episode[train]) & set(cache.episode[test])
    for task in range(len(TASKS)):
        episodes = np.unique(cache.episode[cache.task == task])
        assert set(cache.episode[test][cache.task[test] == task]) == set(episodes[-2:])
    settings["test_episodes"] = 1000
    with pytest.raises(GhostError, match="1000 are to test"):
        cache_all(tmp_path / "x.json", demos, settings)
