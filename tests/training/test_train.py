"""The loop on a tiny feature cache: results, determinism, going on after a kill, early stopping, distillation."""

import dataclasses
import importlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from conftest import ROOT, call
from ghost.data.features import FeatureCache
from ghost.data.results import Outcome
from ghost.data.samples import Samples
from ghost.decoders import ghost, mlp
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.runs.driver import Plan, execute
from ghost.runs.records import open_runs
from ghost.runs.settings import read_settings
from ghost.steps.train import choose, teach, train
from ghost.training.checkpoint import MODEL, load_decoder, write_tensors
from ghost.training.loop import Fit, Training, be_deterministic
from trained import declared, write_cache

pytestmark = pytest.mark.usefixtures("torch_as_it_was")
SIZES = {"tokens": 2, "d_token": 6, "d_state": 4, "horizon": 3, "d_action": 5}
N = 60
GHOST = {"hidden": 12, "d_context": 6, "d_latent": 4, "steps": 2}
TRAINING = {"split": "sample", "epochs": 4, "batch_size": 16, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """A real cache of 60 samples: two tasks, ten episodes, actions that are a function of state and tokens."""
    manifest = tmp_path_factory.mktemp("runs") / "features/manifest.json"
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(N, 2, 6)).astype(np.float16)
    state = rng.normal(size=(N, 4)).astype(np.float32)
    action = np.tanh(state[:, None, :1] + tokens[:, :1, :5].astype(np.float32)) * np.ones((1, 3, 1), np.float32)
    action[..., 4] = 0
    episode = np.repeat(np.arange(10), 6)
    small = {
        "state": state,
        "action": action,
        "action_mask": np.arange(5) < 4,
        "task": (episode % 2).astype(np.int64),
        "phase": np.zeros(N, np.int64),
        "episode": episode,
        "timestep": np.tile(np.arange(6), 10),
    }
    everything = np.arange(N)
    splits = {
        "split/sample/train": everything[everything % 4 > 0],
        "split/sample/test": everything[everything % 4 == 0],
        "split/episode/train": everything[:48],
        "split/episode/test": everything[48:],
    }
    index = {"sizes": SIZES, "task_names": ["Arrange_cups", "Move_parts"]}
    return write_cache(manifest, {**small, **splits}, tokens, 25, index)


def experiment(settings, *, name="tiny", module="ghost.decoders.ghost", seeds=(0,), needs=("features",)):
    return declared(name, "train", module, settings, list(seeds), list(needs))


def run_all(settings, needs, out, **kwargs):
    text = experiment(settings, needs=[path.parent.name for path in needs], **kwargs)
    execute(train, text, out / "manifest.json", needs)
    return open_runs(out / "manifest.json")


def fit(features, settings, *, module=ghost, seed=0, folder=None, teacher=None):
    decoder, training = read_settings("tiny", settings, module.Settings, Training)
    cache = FeatureCache.open(features)
    samples = Samples(cache, choose(cache, training, "tiny"))
    samples.teacher = teacher
    state = (folder / "state.safetensors") if folder else ROOT / "no/such/folder"
    return Fit(module, decoder, training, samples, seed, state)


def test_an_experiment_becomes_a_decoder_per_seed(features, tmp_path):
    runs = run_all(GHOST | TRAINING | {"contrastive": 0.2}, [features], tmp_path, seeds=(3, 4))
    assert [run.seed for run in runs] == [3, 4]
    first = runs[0]
    assert first.value("train", "samples") == 45
    assert first.value("train", "epochs") == 4
    decoder = load_decoder(first)
    assert first.value("model", "parameters") == sum(p.numel() for p in decoder.parameters())
    curves = first.arrays()
    assert curves["training/loss"].shape == (4,)
    total = curves["training/bc"] + 0.2 * curves["training/contrastive"]
    np.testing.assert_allclose(curves["training/loss"], total, rtol=1e-5)
    assert first.value("train", "loss") == curves["training/loss"][-1]
    record, (cached,) = first.record(), open_runs(features)
    assert (record["step"], record["module"], record["seed"]) == ("train", "ghost.decoders.ghost", 3)
    assert record["stand_ins"] == ["backbone", "data"]
    assert record["inputs"] == {"features/seed7": {"run_id": cached.run_id, "sha256": cached.content}}
    assert "ghost/decoders/ghost.py" in record["code"]["files"]
    assert "ghost/decoders/mlp.py" not in record["code"]["files"]
    assert not list(tmp_path.rglob("state*"))
    assert (tmp_path / "seed3/model.safetensors").read_bytes() != (tmp_path / "seed4/model.safetensors").read_bytes()


@pytest.mark.parametrize("module", [ghost, mlp])
def test_it_learns(features, module):
    settings = {"hidden": 24, "d_context": 8, "d_latent": 8, **TRAINING, "epochs": 60, "learning_rate": 5e-3}
    run = fit(features, settings, module=module)
    for _ in range(60):
        run.epoch()
    assert run.curves["loss"][-1] < 0.25 * run.curves["loss"][0]


def test_a_loaded_decoder_acts_as_the_trained_one(features, tmp_path):
    (run,) = run_all(GHOST | TRAINING, [features], tmp_path)
    again = fit(features, GHOST | TRAINING)
    for _ in range(4):
        again.epoch()
    batch = again.samples.batch(torch.arange(5))
    again.decoder.eval()
    before = torch.random.get_rng_state()
    assert torch.equal(load_decoder(run).act(batch), again.decoder.act(batch))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_changed_checkpoint_is_refused(features, tmp_path):
    (run,) = run_all(GHOST | TRAINING, [features], tmp_path)
    path = tmp_path / "seed0/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(GhostError, match="sha256 differs"):
        load_decoder(run)


@pytest.mark.parametrize("module", ["this", "ghost.libero.film", "ghost.decoders.no_such"])
def test_a_checkpoint_that_names_another_module_is_refused(tmp_path, module):
    """It would be imported, and so run."""

    def run(unit):
        write_tensors(unit.folder / MODEL, {}, {"module": module, "settings": {}, "sizes": {}})
        return Outcome([], files=(MODEL,))

    execute(lambda job: Plan(run), experiment({}, needs=()), tmp_path / "manifest.json")
    sys.modules.pop(module, None)
    with pytest.raises(GhostError, match=f"names the module '{module}', which is no decoder or agent"):
        load_decoder(open_runs(tmp_path / "manifest.json")[0])
    assert module not in sys.modules


RICH = GHOST | TRAINING | {"dropout": 0.1, "noise": 0.02, "contrastive": 0.2, "basin": 0.01}
RICH |= {"validation_share": 0.2, "patience": 40, "epochs": 40, "curriculum_share": 0.5}


def files_of(folder):
    names = ("model.safetensors", "arrays.safetensors", "measured.csv")
    return [(path, (folder / path).read_bytes()) for seed in (0, 1) for path in (f"seed{seed}/{n}" for n in names)]


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("ghost", {**GHOST, "dropout": 0.1, "contrastive": 0.2}),
        ("diffusion", {"hidden": 8, "d_context": 4, "d_latent": 4, "d_time": 4, "consistency": 1.0}),
        ("transformer", {"d_model": 8, "hidden": 8, "layers": 1, "heads": 2}),
    ],
)
def test_twice_the_same_bytes(features, tmp_path, module, extra):
    for folder in ("a", "b"):
        torch.manual_seed(len(folder) * hash(folder) % 1000)  # whatever happened before
        run_all(extra | TRAINING, [features], tmp_path / folder, module=f"ghost.decoders.{module}", seeds=(0, 1))
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_killed_in_the_middle_it_goes_on_to_the_same_bytes(features, tmp_path, monkeypatch):
    """kill -9 while the first and while the second seed trains; then it ends with what an undisturbed job writes."""
    text = experiment(RICH, seeds=(0, 1))
    run_all(RICH, [features], tmp_path / "whole", seeds=(0, 1))
    script = (
        "import sys, time, pathlib, ghost.training.loop as t; t.STATE_EVERY_S = 0.0; epoch = t.Fit.epoch\n"
        "def slow(self): epoch(self); time.sleep(0.04)\n"
        "from ghost.steps.train import train; from ghost.runs.driver import execute; path = pathlib.Path\n"
        "t.Fit.epoch = slow; execute(train, sys.argv[1], path(sys.argv[3]), [path(sys.argv[2])])"
    )
    out = tmp_path / "killed/manifest.json"
    for finished in (0, 1):
        job = subprocess.Popen(
            [sys.executable, "-c", script, text, str(features), str(out)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stderr=subprocess.DEVNULL,
        )
        units = out.parent / "units/train"
        deadline = time.monotonic() + 60
        while job.poll() is None and time.monotonic() < deadline:
            if len(list(units.glob("*.json"))) == finished and list(units.glob("*/state.safetensors")):
                break
            time.sleep(0.01)
        time.sleep(0.1)  # some epochs more
        os.kill(job.pid, signal.SIGKILL)
        assert job.wait() == -signal.SIGKILL
        assert not out.exists()
    epochs, original = [], Fit.epoch
    monkeypatch.setattr(Fit, "epoch", lambda self: (epochs.append(1), original(self)))
    execute(train, text, out, [features])
    assert 0 < len(epochs) < 40  # seed 0 was finished, seed 1 begun
    assert files_of(out.parent) == files_of(tmp_path / "whole")
    assert not list(out.parent.rglob("state*"))


def test_a_state_of_other_settings_is_not_used(features, tmp_path, monkeypatch):
    class KilledError(Exception):
        pass

    def killed(self):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Fit, "outcome", killed)
        with pytest.raises(KilledError):
            run_all(GHOST | TRAINING, [features], tmp_path)
    assert list(tmp_path.rglob("state.safetensors"))
    run_all(GHOST | TRAINING | {"learning_rate": 1e-2}, [features], tmp_path)
    run_all(GHOST | TRAINING | {"learning_rate": 1e-2}, [features], tmp_path / "fresh")
    models = [folder / "seed0/model.safetensors" for folder in (tmp_path, tmp_path / "fresh")]
    assert models[0].read_bytes() == models[1].read_bytes()


# ------------------------------------------------------------------------------------------------- early stopping


def test_early_stopping_looks_at_validation_only(features, monkeypatch):
    run = fit(features, GHOST | TRAINING | {"validation_share": 0.2, "patience": 3, "epochs": 30})
    assert len(run.places) == 36
    assert len(run.validation_places) == 9
    assert not set(run.places.tolist()) & set(run.validation_places.tolist())
    seen = []
    step = run.step
    monkeypatch.setattr(
        run, "step", lambda batch, weights: seen.extend(batch.state[:, 0].tolist()) or step(batch, weights)
    )
    scores = iter([5.0, 4.0, 4.5, 3.0, 3.5, 3.2, 3.1, 1.0])
    weights = []
    monkeypatch.setattr(run, "validate", lambda: next(scores))
    monkeypatch.setattr(run, "_save", lambda: None)
    while not run.finished:
        run.epoch()
        weights.append({k: v.clone() for k, v in run.decoder.state_dict().items()})
    assert run.epochs_run == 7  # the best is the fourth, then three without a better one
    assert all(torch.equal(run.weights()[k], weights[3][k]) for k in weights[3])
    values = {(m.condition, m.metric): m.value for m in run.outcome().measured}
    assert values["train", "kept_epoch"] == 4
    assert values["validation", "mse"] == 3.0
    held_back = set(run.samples.state[run.validation_places, 0].tolist())
    assert not held_back & set(seen)  # never trained on


def test_validation_is_the_error_of_the_actions_without_noise_or_dropout(features):
    run = fit(features, GHOST | TRAINING | {"validation_share": 0.2, "dropout": 0.5, "noise": 1.0})
    batch = run.samples.batch(run.validation_places)
    run.decoder.eval()
    expected = (run.decoder.act(batch) - batch.action)[..., :4].square().mean().item()
    assert run.validate() == pytest.approx(expected)
    assert run.validate() == run.validate()


def test_whole_episodes_are_held_back_where_the_split_is_by_episode(features):
    run = fit(features, GHOST | TRAINING | {"split": "episode", "validation_share": 0.25})
    train_episodes = set(run.samples.episode[run.places.numpy()])
    assert not train_episodes & set(run.samples.episode[run.validation_places.numpy()])
    assert len(run.validation_places) == 12


# --------------------------------------------------------------------------------------------------- distillation


def test_distillation_is_half_teacher_half_demonstration(features):
    settings = GHOST | TRAINING | {"distillation": 0.5}
    teacher = torch.randn(45, 3, 5, generator=torch.Generator().manual_seed(0))
    run = fit(features, settings, teacher=teacher)
    rows = torch.tensor([3, 1, 7])
    batch = run.samples.batch(rows)
    assert torch.equal(batch.teacher, teacher[rows])
    weights = run.training.weights(ghost.TERMS, 0)
    assert (weights["bc"], weights["distillation"]) == (0.5, 0.5)
    predicted = run.decoder.act(batch).detach()
    error = [(predicted - target)[..., :4].square().mean().item() for target in (batch.action, batch.teacher)]
    assert run.step(batch, weights)["loss"].item() == pytest.approx(0.5 * error[0] + 0.5 * error[1])


def test_the_teacher_is_a_trained_run(features, tmp_path):
    small = {"hidden": 8, "d_context": 4, "d_latent": 4} | TRAINING
    run_all(small, [features], tmp_path / "teacher", module="ghost.decoders.mlp", seeds=(5, 6))
    needs = [features, tmp_path / "teacher/manifest.json"]
    (run,) = run_all(GHOST | TRAINING | {"distillation": 0.5, "samples": 20}, needs, tmp_path / "student")
    assert run.value("train", "samples") == 20
    assert list(run.record()["inputs"]) == ["features/seed7", "teacher/seed5"]  # its first run teaches all seeds
    assert run.value("train", "distillation_loss") > 0
    samples = Samples(FeatureCache.open(features), np.arange(5))
    decoder = load_decoder(open_runs(needs[1])[0])
    taught = teach(open_runs(needs[1])[0], open_runs(features)[0], samples)
    assert torch.equal(taught, decoder.act(samples.batch(torch.arange(5))))


# --------------------------------------------------------------------------------------------------- what it reads


def test_samples_are_chosen_by_split_task_and_number(features):
    cache = FeatureCache.open(features)
    training = lambda **more: Training(**(TRAINING | more))  # noqa: E731
    assert len(choose(cache, training(), "x")) == 45
    assert choose(cache, training(split="episode"), "x").max() == 47
    some = choose(cache, training(tasks=("Move_parts",)), "x")
    assert set(cache.task[some]) == {1}
    assert len(choose(cache, training(samples=10), "x")) == 10
    assert len(np.unique(choose(cache, training(samples=10), "x"))) == 10
    assert len(choose(cache, training(samples=100), "x")) == 45


def test_batches_hold_what_the_cache_holds(features, monkeypatch):
    cache = FeatureCache.open(features)
    indices, rows = np.array([50, 3, 27]), torch.tensor([2, 0])
    kept = Samples(cache, indices).batch(rows)
    assert torch.equal(kept.tokens, torch.from_numpy(cache.tokens(np.array([27, 50]))).float())
    assert torch.equal(kept.state, torch.from_numpy(cache.state[[27, 50]]))
    monkeypatch.setattr("ghost.data.samples.MEMORY_BYTES", 0)
    read = Samples(cache, indices)
    assert read.tokens is None
    for field in dataclasses.fields(Batch):
        a, b = getattr(kept, field.name), getattr(read.batch(rows), field.name)
        assert (torch.equal(a, b) and a.dtype == b.dtype) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hiden": 3}, "tiny: no setting 'hiden'; did you mean hidden?"),
        ({"epochs": 0}, "tiny: epochs must be at least 1, got 0"),
        ({"kl": 0.1}, "tiny: ghost.decoders.ghost has no loss term 'kl'; it has bc, distillation, contrastive, basin"),
        ({"patience": 3}, "tiny: patience = 3 needs a validation_share"),
        ({"curriculum_share": 0.5}, "tiny: curriculum_share = 0.5 needs a contrastive weight"),
        ({"distillation": 0.5}, "tiny: needs a feature cache, and a teacher for distillation; got 1"),
        ({"split": "episodes"}, "no split 'episodes'; did you mean episode?"),
        ({"tasks": ["Move_part"]}, "no task 'Move_part'; did you mean Move_parts"),
        ({"validation_share": 0.001}, "validation_share = 0.001 of 45 leaves nothing"),
        ({"steps": 0}, "tiny: steps must be at least 1, got 0"),
        ({"precision": "half"}, "tiny: precision must be float32 or bf16, got 'half'"),
        ({"learning_rate": 1e30}, "the loss is not finite in epoch 1; try a smaller learning_rate"),
    ],
)
def test_bad_settings_are_one_line(features, tmp_path, change, message):
    with pytest.raises(GhostError) as error:
        run_all(GHOST | TRAINING | change, [features], tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "manifest.json").exists()


def test_the_command_line(features, tmp_path):
    out = tmp_path / "manifest.json"
    options = ("--experiment", experiment(GHOST | TRAINING), "--needs", str(features), "--out", str(out))
    done = call(ROOT, "python", "-X", "importtime", "-m", "ghost.steps.train", *options)
    assert "4/4 epochs" in done.stderr
    assert "| torch\n" in done.stderr
    assert "| torch._dynamo\n" not in done.stderr  # torch's compiler, whose import takes as long as torch's


def test_what_is_not_deterministic_is_an_error():
    be_deterministic()
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()


def test_adam_is_torchs(features):
    """The functional call is torch.optim.Adam, step for step."""
    run = fit(features, GHOST | TRAINING)
    twin = fit(features, GHOST | TRAINING)
    adam = torch.optim.Adam(twin.decoder.parameters(), lr=1e-3)
    for k in range(3):
        batch = run.samples.batch(torch.arange(k, k + 8))
        run.step(batch, {"bc": 1.0})
        adam.zero_grad()
        twin.decoder.loss_terms(batch, {"bc": 1.0})["bc"].backward()
        adam.step()
    for a, b in zip(run.parameters, twin.parameters, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_no_setting_is_both_the_decoders_and_the_trainings():
    training = {field.name for field in dataclasses.fields(Training)}
    for name in ("ghost", "mlp", "neural_ode", "cvae", "transformer", "diffusion", "dit"):
        settings = importlib.import_module(f"ghost.decoders.{name}").Settings
        assert not training & {field.name for field in dataclasses.fields(settings)}


def test_the_learning_rate_falls_by_half_a_cosine(features):
    settings = {**TRAINING, "epochs": 4, "final_rate": 0.1}
    running = fit(features, settings)
    steps = 4 * -(-len(running.places) // running.training.batch_size)
    rates = []
    for done in (0, steps // 2, steps):
        running.updates = done
        rates.append(running._rate() / running.training.learning_rate)
    assert rates == pytest.approx([1.0, 0.55, 0.1], abs=0.02)


# --------------------------------------------------------------------------------------------- nothing waits


ON_A_GPU_IT_WAITS = {"_local_scalar_dense", "nonzero", "equal", "is_nonzero", "item", "masked_select"}


class Watch(TorchDispatchMode):
    """The operations that would wait for a GPU."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function._opname in ON_A_GPU_IT_WAITS:
            self.seen.append(function._opname)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("module", "settings"),
    [
        ("ghost", {"contrastive": 0.2, "basin": 0.01, "noise": 0.1, "dropout": 0.1}),
        ("cvae", {"d_code": 3, "kl": 0.1}),
        ("diffusion", {"d_time": 4, "consistency": 1.0}),
        ("neural_ode", {}),
        ("mlp_phase", {"phase": 0.1}),
        ("gru_phase", {"phase": 0.1, "window": 2}),
        ("ghost_phase", {"phase": 0.1, "pull": 0.1, "contrastive": 0.1, "persistent": True, "window": 2}),
    ],
)
def test_an_update_waits_for_nothing(features, module, settings):
    widths = {"hidden": 12, "d_context": 6, "d_latent": 4}
    imported = importlib.import_module(f"ghost.decoders.{module}")
    decoder, training = read_settings("tiny", widths | TRAINING | settings, imported.Settings, Training)
    cache = FeatureCache.open(features)
    samples = Samples(cache, choose(cache, training, "tiny"), window=training.window)
    running = Fit(imported, decoder, training, samples, 0, ROOT / "no/such/folder")
    weights = training.weights(imported.TERMS, 0)
    with Watch() as watch:
        for places in torch.split(running.places[:20], 10):
            running.step(samples.batch(places), weights)
    assert watch.seen == []
    assert running.updates == running.steps[0].item() == 2
    with Watch() as watch:
        running.steps[0].item()  # the watch sees what it is there for
    assert watch.seen


def test_half_precision_learns_too_and_is_off_by_default(features):
    settings = {"hidden": 24, "d_context": 8, "d_latent": 8, **TRAINING, "epochs": 30, "learning_rate": 5e-3}
    full, half = fit(features, settings), fit(features, settings | {"precision": "bf16"})
    for _ in range(30):
        full.epoch()
        half.epoch()
    assert full.training.precision == "float32"
    assert half.curves["loss"][-1] == pytest.approx(full.curves["loss"][-1], rel=0.05)
    assert half.curves["loss"] != full.curves["loss"]
    assert {p.dtype for p in half.parameters} == {torch.float32}


def test_phases_must_be_there_to_be_learnt(tmp_path):
    rng = np.random.default_rng(0)
    small = {"state": rng.normal(size=(8, 4)).astype(np.float32), "action": np.zeros((8, 3, 5), np.float32)}
    small |= {"action_mask": np.ones(5, np.uint8), "phase": np.full(8, -1), "timestep": np.arange(8)}
    small |= {name: np.zeros(8, np.int64) for name in ("task", "episode")}
    small |= {"split/sample/train": np.arange(6), "split/sample/test": np.arange(6, 8)}
    tokens = np.ones((8, 2, 6), np.float16)
    manifest = write_cache(tmp_path / "features/manifest.json", small, tokens, 8, {"sizes": SIZES, "task_names": ["a"]})
    with pytest.raises(GhostError, match="a term of the phase has a weight, but the data set has no phases"):
        run_all(
            {"hidden": 8, "d_context": 4, "d_latent": 4, "phase": 0.1} | TRAINING,
            [manifest],
            tmp_path / "out",
            module="ghost.decoders.mlp_phase",
        )
