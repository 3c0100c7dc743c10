"""GR00T's head is the diffusion transformer: its test, the teacher of the distilled Ghost, its latency, its marks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from groot_experiments import features_experiment, finetune_experiment

from ghost.backbones.groot import Groot
from ghost.data.features import FeatureCache
from ghost.data.lerobot import LeRobotDataset
from ghost.errors import GhostError
from ghost.evaluations.latency import PAPER
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps import train as training_step
from ghost.steps.cache_features import cache_features
from ghost.steps.evaluate import evaluate
from ghost.steps.finetune import finetune
from ghost.steps.time_head import time_head
from ghost.steps.train import train
from ghost.study import groot
from ghost.study.distillation import DISTILLED, LATENCY
from trained import declared

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
WEIGHTS = groot.WEIGHTS.of
WIDTHS = {"hidden": 8, "d_context": 4, "d_latent": 4}
OURS = {name: decoder for name, decoder in LATENCY.settings["decoders"].items() if name in ("ghost", "ghost_dual")}
TIMES = {"rounds": 3, "warm_up": 1, "threads": 1, "dit_every": 1, "control_hz": 100, "decoders": OURS}


def offline(split: str = "episode") -> str:
    needs = ["dual_arm_features", "dit"]
    return declared("dit_offline", "evaluate", "ghost.evaluations.offline", {"split": split}, [0], needs)


def distilled(**changes) -> str:
    settings = {**DISTILLED.settings, **WIDTHS, "epochs": 2, **changes}
    return declared("ghost_distilled", "train", "ghost.decoders.ghost", settings, [42], ["dual_arm_features", "dit"])


def timing() -> str:
    return declared("latency", "time_head", "ghost.evaluations.latency", TIMES, [0], ["dual_arm", "dit"])


@pytest.fixture(scope="module")
def untouched(tmp_path_factory, tiny, demos) -> Path:
    """The manifest of the checkpoint without any update, which the study takes for the published one by its size."""
    manifest = tmp_path_factory.mktemp("untouched") / "dit/manifest.json"
    experiment = json.loads(finetune_experiment(tiny, steps=0))
    head = Groot.load(tiny, "new_embodiment").head
    (weights,) = experiment["stand_ins"]
    weights["real"] = sum(parameter.numel() for parameter in head.parameters())
    execute(finetune, json.dumps(experiment), manifest, [demos])
    return manifest


@pytest.fixture(scope="module")
def untouched_features(tmp_path_factory, demos, untouched) -> Path:
    manifest = tmp_path_factory.mktemp("untouched") / "dual_arm_features/manifest.json"
    execute(cache_features, features_experiment(), manifest, [demos, untouched])
    return manifest


def normalised(values: np.ndarray, all_of_them: np.ndarray) -> np.ndarray:
    """To [-1, 1] by the limits of the whole data set."""
    low, high = all_of_them.min(axis=0), all_of_them.max(axis=0)
    return 2 * (values - low) / (high - low) - 1


class Own:
    """Recorded chunks and `get_action` of lerobot's model, from raw files: no code of cache, normalisation or flow."""

    def __init__(self, recorded: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data, self.monkeypatch = LeRobotDataset.open(recorded), monkeypatch
        self.model = Groot.load(checkpoint, "new_embodiment")
        self.episodes = [self.data.episode(index) for index in range(len(self.data))]
        self.state, self.action = (
            np.concatenate([getattr(episode, name) for episode in self.episodes]) for name in ("state", "action")
        )

    def recorded(self, episode: int, timestep: int) -> np.ndarray:
        """[17, 17]: horizon and real dimensions."""
        action = self.episodes[episode].action
        return normalised(action[np.minimum(timestep + np.arange(17), len(action) - 1)], self.action)

    def predicted(self, episode: int, timestep: int) -> np.ndarray:
        """[17, 32], from the noise that belongs to the sample."""
        views = [self.data.frames(episode, camera, [timestep])[0] for camera in ("head", "wrist")]
        state = np.zeros((1, 1, 64), np.float32)
        state[0, 0, :17] = normalised(self.episodes[episode].state[timestep], self.state)
        noise = np.random.default_rng([0, episode, timestep]).standard_normal((1, 17, 32)).astype(np.float32)
        inputs = self.model.inputs([self.data.instruction(episode)], [views])
        more = {"state": torch.from_numpy(state), "embodiment_id": torch.tensor([31])}
        with self.monkeypatch.context() as drawn:
            drawn.setattr(torch, "randn", lambda *_, **__: torch.from_numpy(noise))
            return self.model.model.get_action({**inputs, **more})["action_pred"][0].numpy()


@pytest.fixture
def own(recorded, finetuned, monkeypatch) -> Own:
    return Own(recorded, finetuned.parent / "seed0/checkpoint", monkeypatch)


def steps_of(cache: FeatureCache, indices: np.ndarray) -> list[tuple[int, int]]:
    return [(int(cache.episode[k]), int(cache.timestep[k])) for k in indices]


def test_the_error_of_the_dit_is_that_of_groots_own_actions(tmp_path, own, cached, finetuned):
    execute(evaluate, offline(), tmp_path / "manifest.json", [cached, finetuned])
    (run,) = open_runs(tmp_path / "manifest.json")
    cache = FeatureCache.open(cached)
    steps = steps_of(cache, cache.split("episode")[1])
    assert len(steps) == 4
    assert min(episode for episode, _ in steps) >= 12  # never what the head was trained on
    predicted = np.stack([own.predicted(*step)[:, :17] for step in steps])
    truth = np.stack([own.recorded(*step) for step in steps])
    error = (predicted - truth) ** 2
    assert error.mean() > 0.1
    kinds = {"mse": range(17), "arm_mse": [*range(7), *range(8, 15)], "gripper_mse": [7, 15], "lift_mse": [16]}
    for metric, dimensions in kinds.items():
        assert run.value("all", metric) == pytest.approx(error[..., list(dimensions)].mean(), rel=1e-4), metric
    a, b = (x.reshape(4, -1) for x in (predicted, truth))
    cosine = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert run.value("all", "cosine") == pytest.approx(cosine.mean(), abs=1e-4)
    head = sum(parameter.numel() for parameter in own.model.head.parameters())
    assert run.value("model", "parameters") == head == open_runs(finetuned)[0].value("head", "parameters")
    shown = run.arrays()["chunk/predicted"]  # [17, 17], of the figure
    assert min(np.abs(shown - chunk).max() for chunk in predicted) < 1e-4


def test_the_teacher_is_groots_head(tmp_path, monkeypatch, own, cached, finetuned):
    taught, fit = [], training_step.fit
    monkeypatch.setattr(
        training_step, "fit", lambda *given: taught.append(given[3].teacher.cpu().numpy()) or fit(*given)
    )
    execute(train, distilled(), tmp_path / "manifest.json", [cached, finetuned])
    (run,) = open_runs(tmp_path / "manifest.json")
    cache = FeatureCache.open(cached)
    steps = steps_of(cache, cache.split("episode")[0])
    assert len(steps) == len(taught[0]) == 6
    np.testing.assert_allclose(taught[0], np.stack([own.predicted(*step) for step in steps]), atol=1e-5)
    assert taught[0].std() > 0.1
    assert run.value("train", "distillation_loss") > 0
    assert run.record()["inputs"].keys() == {"features/seed0", "dit/seed0"}


def test_the_head_itself_is_timed(tmp_path, monkeypatch, demos, finetuned):
    acted, act = [], Groot.act
    monkeypatch.setattr(Groot, "act", lambda self, *given: acted.append(given[0].shape) or act(self, *given))
    execute(time_head, timing(), tmp_path / "manifest.json", [demos, finetuned])
    (run,) = open_runs(tmp_path / "manifest.json")
    record, tokens = run.record(), run.value("dit", "tokens")
    assert acted == [(1, tokens, 64)] * 4  # one round that does not count, and three
    assert tokens > 2 * 16  # all of Eagle's: the patches of two views, and the text
    assert run.value("dit", "parameters") == open_runs(finetuned)[0].value("head", "parameters")
    assert run.value("ghost", "parameters") == 2_315_746  # ours at the paper's size
    assert len(run.arrays()["dit/latency_ms"]) == 3
    assert 0 < run.value("dit", "latency_ms") < 1000
    assert record["facts"] == {"attention": "sdpa", "dtype": "float32"}
    assert record["versions"]["lerobot"] == "0.4.4"
    assert record["stand_ins"] == [WEIGHTS, "dual-arm data set"]
    assert PAPER.d_token != 64  # the tiny head has sizes of its own


def test_a_small_head_marks_what_rests_on_it_and_the_published_one_does_not(
    tmp_path, demos, cached, finetuned, untouched, untouched_features
):
    for name, model, features in (("small", finetuned, cached), ("published", untouched, untouched_features)):
        made = {key: tmp_path / name / key / "manifest.json" for key in ("dit_offline", "ghost_distilled", "latency")}
        execute(evaluate, offline(), made["dit_offline"], [features, model])
        execute(train, distilled(epochs=1), made["ghost_distilled"], [features, model])
        execute(time_head, timing(), made["latency"], [demos, model])
        for manifest in (model, features, *made.values()):
            (run,) = open_runs(manifest)
            assert (WEIGHTS in run.record()["stand_ins"]) == (name == "small"), (name, manifest)


def test_fine_tuning_leaves_the_tokens_and_changes_the_predictions(cached, untouched_features):
    """Eagle is frozen: decoders see the features of the published model."""
    tuned, base = FeatureCache.open(cached), FeatureCache.open(untouched_features)
    everything = np.arange(len(tuned))
    np.testing.assert_array_equal(tuned.tokens(everything), base.tokens(everything))
    assert np.abs(tuned.predicted_action(everything) - base.predicted_action(everything)).max() > 1e-5


def test_what_the_head_has_seen_is_not_tested(tmp_path, cached, finetuned):
    with pytest.raises(GhostError, match=r"dit/seed0 was trained on the first 12 episodes: it cannot be tested on"):
        execute(evaluate, offline("sample"), tmp_path / "manifest.json", [cached, finetuned])
    assert not (tmp_path / "manifest.json").exists()


def test_predictions_of_another_head_are_refused(tmp_path, cached, untouched):
    for step, experiment in ((evaluate, offline()), (train, distilled())):
        with pytest.raises(GhostError, match="its predicted actions are not those of dit/seed0"):
            execute(step, experiment, tmp_path / "manifest.json", [cached, untouched])


def test_the_euler_steps_are_a_setting(tmp_path, tiny, demos):
    execute(finetune, finetune_experiment(tiny, steps=0, euler_steps=2), tmp_path / "manifest.json", [demos])
    two = Groot.load(tmp_path / "seed0/checkpoint", "new_embodiment")
    four = Groot.load(tiny, "new_embodiment", horizon=17)
    assert (two.head.num_inference_timesteps, four.head.num_inference_timesteps) == (2, 4)
    given = torch.ones(1, 9, 64), torch.zeros(1, 64), torch.from_numpy(four.noise(0, 0, 0)[None])
    assert (two.act(*given) - four.act(*given)).abs().max() > 1e-4
