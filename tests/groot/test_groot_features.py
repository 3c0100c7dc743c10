"""Features of GR00T's own classes: what is cached, its normalisation, a kill, several jobs, other batches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from groot_experiments import FEATURES, demos_experiment, features_experiment, raw_episodes, write_recorded

from conftest import ROOT
from ghost.backbones.groot import Groot
from ghost.data.features import FeatureCache
from ghost.data.sampling import open_demos
from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps import cache_features as step
from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from trained import declared

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
SAMPLES = 50
EVERYTHING = np.arange(SAMPLES)


def test_tokens_are_eagles_of_that_step_and_instruction(cached, demos, finetuned):
    """Against the model's own backbone, called without any code of the cache."""
    cache, data = FeatureCache.open(cached), open_demos(open_runs(demos)[0])
    model = Groot.load(finetuned.parent / "seed0/checkpoint", "new_embodiment")
    assert len(cache) == SAMPLES
    for index in (0, 17, 49):
        episode, timestep = int(cache.episode[index]), int(cache.timestep[index])
        views = [data.frames(episode, camera, [timestep])[0] for camera in ("head", "wrist")]
        inputs = model.inputs([cache.task_names[cache.task[index]]], [views])
        features = model.model.backbone(model.model.prepare_input(inputs)[0])["backbone_features"][0].detach()
        tokens = torch.from_numpy(cache.tokens([index])[0]).float()
        distances = torch.cdist(tokens, features)  # [T, L]
        places = distances.argmin(dim=1)
        assert distances.min(dim=1).values.max() < 0.02
        assert torch.all(places.diff() > 0)  # some of them, in their order


def test_recorded_and_predicted_actions_have_one_normalisation(tmp_path, cached, demos, finetuned, recorded):
    """The robot in other units (degrees, millimetres) gives the same cache: nothing in it is in raw units."""
    other = write_recorded(tmp_path / "set", "v2.1")
    scale, offset = np.linspace(0.5, 60, 17), np.linspace(-3, 3, 17)
    for path in (other / "data").rglob("*.parquet"):
        table = pq.read_table(path)
        for name in ("action", "observation.state"):
            values = np.stack(table[name].to_numpy()) * scale + offset
            column = pa.array(values.astype(np.float32).tolist(), pa.list_(pa.float32()))
            table = table.set_column(table.column_names.index(name), name, column)
        pq.write_table(table, path)
    needs, out = [tmp_path / "dual_arm/manifest.json", finetuned], tmp_path / "features/manifest.json"
    execute(make_demos, demos_experiment(other), needs[0])
    execute(cache_features, features_experiment(), out, needs)
    mine, theirs = FeatureCache.open(cached), FeatureCache.open(out)
    np.testing.assert_allclose(theirs.action, mine.action, atol=1e-5)
    np.testing.assert_allclose(theirs.state, mine.state, atol=1e-5)
    np.testing.assert_allclose(theirs.predicted_action(EVERYTHING), mine.predicted_action(EVERYTHING), atol=1e-4)
    first, second = (open_runs(path)[0].record() for path in (cached, out))
    assert first["facts"] == second["facts"]
    assert first["inputs"]["dit/seed0"] == second["inputs"]["dit/seed0"]
    assert first["inputs"]["dual_arm/seed0"]["sha256"] != second["inputs"]["dual_arm/seed0"]["sha256"]
    normalisation = "seed0/dataset/meta/normalisation.json"  # of the raw values, so it is part of what differs
    assert len({open_runs(path)[0].files[normalisation] for path in (demos, needs[0])}) == 2


def test_the_normalisation_is_lerobots_own(cached, recorded):
    """Against the steps of lerobot's preprocessor and postprocessor, with the raw values' own statistics."""
    from lerobot.policies.groot.processor_groot import GrootActionUnpackUnnormalizeStep, GrootPackInputsStep
    from lerobot.processor.core import TransitionKey

    from ghost.data.lerobot import LeRobotDataset

    data, cache = LeRobotDataset.open(recorded), FeatureCache.open(cached)
    episodes = [data.episode(index) for index in range(len(data))]
    state, action = (np.concatenate([getattr(e, name) for e in episodes]) for name in ("state", "action"))
    stats = {
        "observation.state": {"min": state.min(axis=0), "max": state.max(axis=0)},
        "action": {"min": action.min(axis=0), "max": action.max(axis=0)},
    }
    pack = GrootPackInputsStep(stats=stats, action_horizon=17)
    unpack = GrootActionUnpackUnnormalizeStep(env_action_dim=17, stats=stats)
    for index in (0, 20, 49):
        episode, timestep = episodes[cache.episode[index]], cache.timestep[index]
        chunk = torch.from_numpy(episode.action[timestep : timestep + 17])[None]
        seen = {"observation.state": torch.from_numpy(episode.state[[timestep]])}
        packed = pack(
            {TransitionKey.OBSERVATION: seen, TransitionKey.ACTION: chunk, TransitionKey.COMPLEMENTARY_DATA: {}}
        )
        np.testing.assert_allclose(packed[TransitionKey.OBSERVATION]["state"][0, 0], cache.state[index], atol=1e-5)
        np.testing.assert_allclose(packed[TransitionKey.ACTION][0], cache.action[index], atol=1e-5)
        last = unpack({TransitionKey.ACTION: torch.from_numpy(cache.action[index][None])})[TransitionKey.ACTION]
        np.testing.assert_allclose(last[0], chunk[0, -1], atol=1e-4)


def test_a_killed_step_goes_on_and_jobs_share_it_with_the_same_bytes(tmp_path, monkeypatch, cached, demos, finetuned):
    """Killed in the middle, then three jobs, then the whole: the manifest has the sha256 of every file."""
    out, experiment, needs = tmp_path / "features/manifest.json", features_experiment(), [demos, finetuned]
    options = ("--experiment", experiment, "--needs", *map(str, needs), "--out", str(out))
    process = subprocess.Popen(
        [sys.executable, "-m", "ghost.steps.cache_features", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )

    def finished():
        kept = (out.parent / "units/cache_features").glob("[0-9a-f]*.json")
        return {path.stem: path.stat().st_mtime_ns for path in kept}

    while not finished():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    before = finished()
    assert 0 < len(before) < 5
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8")  # as in profiles/slurm: more cores are not more models on the GPU
    addresses = []
    for part in (3, 1, 2):
        execute(cache_features, experiment, out, needs, part=part, parts=3, done=tmp_path / f"{part}of3.json")
        addresses += json.loads((tmp_path / f"{part}of3.json").read_text())
    assert not out.exists()
    shards = finished()
    assert set(addresses) == shards.keys()
    assert len(shards) == 5
    assert before.items() <= shards.items()  # found, not done again
    execute(cache_features, experiment, out, needs)
    assert shards.items() <= finished().items()
    assert out.read_bytes() == cached.read_bytes()


def test_other_batches_give_the_same_but_for_rounding(tmp_path, cached, demos, finetuned, monkeypatch):
    """And no more pictures are in memory than a batch has."""
    asked = []

    def counted(dataset, camera, episode, timestep, frames=step.frames):
        asked.append(len(episode))
        return frames(dataset, camera, episode, timestep)

    monkeypatch.setattr(step, "frames", counted)
    out = tmp_path / "features/manifest.json"
    execute(cache_features, features_experiment(batch_size=1, samples_per_shard=50), out, [demos, finetuned])
    assert set(asked) == {1}
    mine, theirs = FeatureCache.open(cached), FeatureCache.open(out)
    one, other = mine.tokens(EVERYTHING), theirs.tokens(EVERYTHING)
    assert np.all(np.abs(one.astype(float) - other.astype(float)) <= 2 * np.spacing(np.abs(one)).astype(float))
    np.testing.assert_allclose(mine.predicted_action(EVERYTHING), theirs.predicted_action(EVERYTHING), atol=1e-5)


def test_a_data_set_of_v3_is_cached_too(tmp_path, cached, finetuned):
    """One video for seven episodes instead of one each: encoded anew, so the pictures differ a little."""
    needs, out = [tmp_path / "dual_arm/manifest.json", finetuned], tmp_path / "features/manifest.json"
    execute(make_demos, demos_experiment(write_recorded(tmp_path / "set", "v3.0")), needs[0])
    execute(cache_features, features_experiment(), out, needs)
    mine, theirs = FeatureCache.open(cached), FeatureCache.open(out)
    np.testing.assert_array_equal(mine.action, theirs.action)
    difference = np.abs(mine.tokens(EVERYTHING).astype(float) - theirs.tokens(EVERYTHING).astype(float))
    assert difference.mean() < 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cameras": ["head", "wirst"]},
            "has no camera 'wirst'; known are observation.images.head, observation.images.wrist",
        ),
        (
            {"embodiment": "new_embodyment"},
            "GR00T N1.5 has no embodiment 'new_embodyment'; did you mean new_embodiment?",
        ),
        ({"d_state": 128}, "has d_state 64 at most, not 128"),
        ({"horizon": 16}, "has horizon 17, not 16"),
        ({"d_token": 2048, "tokens": 64}, "has d_token 64, not 2048"),
        ({"tokens": 500}, "that Eagle gives for these pictures and this text, got 500"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, demos, finetuned, changes, message):
    with pytest.raises(GhostError) as error:
        execute(cache_features, features_experiment(**changes), tmp_path / "manifest.json", [demos, finetuned])
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "manifest.json").exists()


def test_a_data_set_without_cameras_is_one_line(tmp_path, finetuned):
    settings = {"episodes": 20, "steps": 20, "fps": 20, "robot_seed": 1, "state_noise": 0.0, "scene_noise": 0.0}
    demos = tmp_path / "dual_arm/manifest.json"
    settings["episodes_per_file"] = 60
    execute(make_demos, declared("dual_arm", "make_demos", "ghost.data.dual_arm", settings, [0], []), demos)
    with pytest.raises(GhostError, match="the data set has no camera; `--config demos=<folder>` names another"):
        execute(cache_features, features_experiment(), tmp_path / "manifest.json", [demos, finetuned])


def test_features_need_one_checkpoint(tmp_path, demos):
    experiment = declared("features", "cache_features", "ghost.backbones.groot", FEATURES, [0], ["dual_arm"])
    with pytest.raises(GhostError, match="GR00T needs one checkpoint beside the data set, got 0"):
        execute(cache_features, experiment, tmp_path / "manifest.json", [demos])


def test_a_damaged_checkpoint_is_refused(tmp_path, demos, finetuned):
    shutil.copytree(finetuned.parent, tmp_path / "dit")
    path = tmp_path / "dit/seed0/checkpoint/model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(GhostError, match=r"model\.safetensors is not the file that its manifest lists"):
        execute(
            cache_features,
            features_experiment(),
            tmp_path / "features/manifest.json",
            [demos, tmp_path / "dit/manifest.json"],
        )


def test_the_data_are_what_they_claim():
    """Episodes of unequal length, all tasks, filmed."""
    episodes, _ = raw_episodes()
    assert len({len(episode.action) for episode in episodes}) > 3
    assert {episode.task for episode in episodes} == set(range(10))
    assert FEATURES["samples_per_shard"] % FEATURES["batch_size"]  # batches do not fill shards evenly
