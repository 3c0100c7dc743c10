"""Two updates of the paper's recipe on the tiny checkpoint: what learns, what is frozen, a kill, no update at all."""

from __future__ import annotations

import numpy as np
import pytest
from groot_experiments import FINETUNING, finetune_experiment
from safetensors.numpy import load_file

from ghost.backbones import finetuning
from ghost.backbones.finetuning import STATE, Fit
from ghost.backbones.groot import Groot
from ghost.backbones.recipe import FineTuning, optimiser, schedule
from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.finetune import finetune

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_the_head_learns_and_eagle_is_frozen(tiny, finetuned):
    before, after = weights(tiny), weights(finetuned.parent / "seed0/checkpoint")
    assert before.keys() == after.keys()
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed
    assert all(name.startswith("action_head.") for name in changed)
    for part in ("model.", "state_encoder.", "action_encoder.", "action_decoder.", "vl_self_attention.", "vlln."):
        assert any(name.startswith(f"action_head.{part}") for name in changed), part
    largest = max(np.abs(before[name] - after[name]).max() for name in changed)
    assert 1e-6 < largest < 3 * 5e-5  # AdamW moves a weight by at most about the learning rate an update
    others = [before[name] for name in before if "state_encoder.layer1.W" in name]
    assert len(others) == 1
    moved = np.abs(before["action_head.state_encoder.layer1.W"] - after["action_head.state_encoder.layer1.W"])
    assert moved[31].max() > 100 * moved[:31].max()  # but for the decay, one embodiment learns


def test_the_record_says_what_the_run_came_from(demos, finetuned):
    (run,), (data_set,) = open_runs(finetuned), open_runs(demos)
    record = run.record()
    assert record["stand_ins"] == ["GR00T N1.5 weights", "dual-arm data set"]
    assert record["facts"].keys() == {"checkpoint", "processor"}
    assert record["inputs"] == {"dual_arm/seed0": {"run_id": data_set.run_id, "sha256": data_set.content}}
    assert "seed0/dataset/meta/normalisation.json" in data_set.files
    assert run.value("train", "updates") == 2
    assert np.isfinite(run.arrays()["training/loss"]).all()
    assert {"checkpoint/model.safetensors", "checkpoint/config.json", "checkpoint/eagle/vocab.json"} <= set(
        record["outputs"]
    )
    loaded = Groot.load(finetuned.parent / "seed0/checkpoint", "new_embodiment")
    assert loaded.head.config.action_horizon == 17
    assert "tokenizer_assets_repo" not in (finetuned.parent / "seed0/checkpoint/config.json").read_text()


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch, tiny, demos, finetuned):
    done, update, out = [], Fit.update, tmp_path / "manifest.json"

    def killed(self, number):
        if number == 1:
            raise KeyboardInterrupt
        return update(self, number)

    def counted(self, number):
        done.append(number)
        return update(self, number)

    monkeypatch.setattr(finetuning, "STATE_EVERY_S", -1.0)
    with monkeypatch.context() as first:
        first.setattr(Fit, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            execute(finetune, finetune_experiment(tiny), out, [demos])
    assert not out.exists()
    assert list(tmp_path.rglob(STATE))
    monkeypatch.setattr(Fit, "update", counted)
    execute(finetune, finetune_experiment(tiny), out, [demos])
    assert done == [1]  # update 0 is not done again
    assert out.read_bytes() == finetuned.read_bytes()
    assert not list(tmp_path.rglob(STATE))


def test_no_steps_take_a_checkpoint_as_it_is(tmp_path, tiny, demos):
    execute(finetune, finetune_experiment(tiny, steps=0), tmp_path / "manifest.json", [demos])
    before, after = weights(tiny), weights(tmp_path / "seed0/checkpoint")
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_schedule_is_nvidias():
    """Up from 0 over the first twentieth, down to 0 by half a cosine."""
    import torch

    settings = FineTuning(**{**FINETUNING, "checkpoint": "", "cameras": (), "steps": 1000})
    share = schedule(torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=5e-5), settings)
    assert [share(k) for k in (0, 25, 50, 525, 1000)] == pytest.approx([0, 0.5, 1, 0.5, 0])


def test_biases_and_norms_do_not_decay():
    import torch

    settings = FineTuning(**{**FINETUNING, "checkpoint": "", "cameras": ()})
    head = torch.nn.ModuleDict({"linear": torch.nn.Linear(2, 3), "norm": torch.nn.LayerNorm(3)})
    decaying, others = optimiser(head, settings).param_groups
    assert [id(x) for x in decaying["params"]] == [id(head["linear"].weight)]
    assert (decaying["weight_decay"], others["weight_decay"]) == (1e-5, 0)
    assert decaying["betas"] == (0.95, 0.999)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_episodes": 21}, "has 20 episodes, train_episodes is 21"),
        ({"embodiment": "gr2"}, "GR00T N1.5 has no embodiment 'gr2'; did you mean gr1?"),
        ({"cameras": ["front"]}, "has no camera 'front'; known are observation.images.head"),
        ({"steps": -1}, "steps must not be negative, got -1"),
        ({"horizon": 65}, "positions for horizons 1 to 64, not 65"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, tiny, demos, changes, message):
    with pytest.raises(GhostError) as error:
        execute(finetune, finetune_experiment(tiny, **changes), tmp_path / "manifest.json", [demos])
    assert message in str(error.value)
    assert "\n" not in str(error.value)
