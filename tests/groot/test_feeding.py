"""How a fine-tuning is fed and cut: decoding workers, passes and processes change nothing of the recipe."""

from __future__ import annotations

import os
import signal
from functools import partial

import numpy as np
import pytest
import torch
from groot_experiments import FINETUNING
from safetensors.numpy import load_file

from ghost.backbones import feeding
from ghost.backbones.feeding import Feed, Steps, joined
from ghost.backbones.finetuning import STATE, Fit
from ghost.backbones.groot import Groot
from ghost.backbones.recipe import FineTuning
from ghost.backbones.several_gpus import on_all
from ghost.data.sampling import open_demos
from ghost.errors import GhostError
from ghost.files import read_json
from ghost.runs.records import open_runs
from ghost.steps.finetune import CURVE, tune

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot

# a learning rate at which three updates tell a wrong gradient from a right one
GIVEN = {**FINETUNING, "checkpoint": "", "cameras": (), "steps": 3, "learning_rate": 1e-2, "crop": 0.9, "jitter": True}
SETTINGS = FineTuning(**GIVEN)


def data(demos):
    return open_demos(open_runs(demos)[0])


def feed(model, demos, settings=SETTINGS, **cut):
    steps = Steps(data(demos), settings)
    return Feed(steps, model.processor, model.head.config, model.embodiment, settings, 0, **cut)


def fitted(tiny, demos, folder, **how):
    model = Groot.load(tiny, "new_embodiment", horizon=17)
    fit = Fit(model, data(demos), SETTINGS, 0, folder / STATE, **how)
    return fit.run(), {name: x.detach().numpy().copy() for name, x in fit.parameters.items()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny, demos):
    """The losses and weights of a run whose batches go through the model at once, decoded in its own process."""
    return fitted(tiny, demos, tmp_path_factory.mktemp("whole"), decoders=0, micro=0)


def test_episodes_to_test_on_are_never_drawn(monkeypatch, tiny, demos):
    """The head learns from the episodes on which decoders train, and from all of them."""
    drawn = set()

    def seen(dataset, camera, episode, timestep):
        drawn.update(episode.tolist())
        return np.zeros((len(episode), 56, 56, 3), np.uint8)

    monkeypatch.setattr(feeding, "frames", seen)
    many = FineTuning(**{**GIVEN, "cameras": ("head",), "batch_size": 64})
    fed = feed(Groot.load(tiny, "new_embodiment", horizon=17), demos, many)
    for step in range(3):
        fed.read(step, 0, np.arange(64))
    assert drawn == set(range(12))


def test_a_cut_batch_is_the_whole_one(tiny, demos):
    """Samples, pictures and padding of a pass are those that Eagle's own processor gives for the batch."""
    model = Groot.load(tiny, "new_embodiment", horizon=17)
    every = feed(model, demos)
    together, apart = every.read(1, 0, np.arange(4)), [every.read(1, 0, np.array([row])) for row in range(4)]
    drawn = [("rows", "seed", "embodiment_id")]
    names = [name for name in together if name not in drawn[0]]
    cut = joined([{name: part[name] for name in names} for part in apart])
    assert all(torch.equal(cut[name], together[name]) for name in names)
    assert {part["seed"] for part in apart} == {together["seed"]}
    plain = FineTuning(**{**GIVEN, "crop": 1.0, "jitter": False, "batch_size": 8})
    straight = feed(model, demos, plain)
    episode, timestep = straight.steps.draw(8, np.random.default_rng([0, 2, 1]))
    told = [straight.steps.instruction(e, k) for e, k in zip(episode, timestep, strict=True)]
    assert len({len(text) for text in told}) > 1  # so that something is padded
    views = straight.steps.views(episode, timestep)
    expected = model.inputs(told, [[view[row] for view in views] for row in range(8)])
    found = straight.read(2, 1, np.arange(8))
    assert all(torch.equal(found[name], x) for name, x in expected.items())


def test_the_number_of_decoding_workers_changes_no_byte(tmp_path, tiny, demos, whole):
    losses, weights = fitted(tiny, demos, tmp_path, decoders=2, micro=0)
    assert losses == whole[0]
    assert all(np.array_equal(weights[name], x) for name, x in whole[1].items())


def test_a_batch_in_parts_gives_the_same_losses(tmp_path, tiny, demos, whole):
    losses, weights = fitted(tiny, demos, tmp_path, decoders=0, micro=3)  # of 4: passes of 3 and of 1
    assert len(set(losses)) == 3
    assert losses == pytest.approx(whole[0], rel=1e-5)
    before = Groot.load(tiny, "new_embodiment", horizon=17).head.state_dict()
    moved = max(np.abs(x - before[name].numpy()).max() for name, x in whole[1].items())
    apart = max(np.abs(weights[name] - x).max() for name, x in whole[1].items())
    assert apart < 0.01 * moved


def test_two_processes_are_one_with_twice_the_batch(tmp_path, tiny, demos, whole):
    """torch's DistributedDataParallel by gloo: each process has two of the four rows of a batch."""
    task = partial(tune, SETTINGS, tiny, tiny / "eagle", data(demos).folder, 0, tmp_path)
    on_all(task, 2)
    assert read_json(tmp_path / CURVE)["losses"] == pytest.approx(whole[0], abs=1e-4)
    saved = load_file(tmp_path / "checkpoint/model.safetensors")
    name = "model.transformer_blocks.0.attn1.to_q.weight"
    np.testing.assert_allclose(saved[f"action_head.{name}"], whole[1][name], atol=1e-4)


def test_a_worker_that_is_killed_is_one_line(monkeypatch, tmp_path, tiny, demos):
    monkeypatch.setattr(Feed, "read", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(GhostError, match=r"^a worker that decodes pictures ended \(DataLoader worker \(pid") as error:
        fitted(tiny, demos, tmp_path, decoders=1)
    assert "\n" not in str(error.value)


def test_a_fault_that_a_worker_finds_is_one_line(monkeypatch, tmp_path, tiny, demos):
    def damaged(*given):
        raise GhostError("frame 7 cannot be decoded")

    monkeypatch.setattr(Feed, "read", damaged)
    with pytest.raises(GhostError, match=r"^frame 7 cannot be decoded$"):
        fitted(tiny, demos, tmp_path, decoders=1)


def test_how_many_samples_a_pass_has_is_a_whole_number(monkeypatch, tmp_path, tiny, demos):
    monkeypatch.setenv("GHOST_MICRO_BATCH", "few")
    with pytest.raises(GhostError, match="GHOST_MICRO_BATCH must be a whole number, got 'few'"):
        fitted(tiny, demos, tmp_path)
