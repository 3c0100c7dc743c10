"""Two updates of the paper's recipe on the tiny checkpoint: what learns, what is frozen, killed, taken as it is."""

from __future__ import annotations

import numpy as np
import pytest
from groot_rows import FINETUNING, finetune_row
from safetensors.numpy import load_file

from ghost.backbones.groot import Groot
from ghost.errors import GhostError
from ghost.runs.progress import Progress
from ghost.runs.records import open_runs
from ghost.steps import finetune as step
from ghost.steps.finetune import FineTuning, finetune, schedule

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


def test_the_run_says_what_it_came_from(tiny, finetuned):
    run = open_runs(finetuned)[0]
    record = run.record()
    assert record["stand_ins"] == ["GR00T N1.5 weights", "dual-arm data set"]
    assert {"checkpoint", "processor", "demos_sha256"} == record["facts"].keys()
    assert run.value("train", "steps") == 2
    assert np.isfinite(run.arrays()["training/loss"]).all()
    assert {"checkpoint/model.safetensors", "checkpoint/config.json", "checkpoint/eagle/vocab.json"} <= set(
        record["outputs"]
    )
    loaded = Groot.load(finetuned.parent / "seed0/checkpoint", "new_embodiment")
    assert loaded.head.config.action_horizon == 17
    assert "tokenizer_assets_repo" not in (finetuned.parent / "seed0/checkpoint/config.json").read_text()


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch, tiny, demos, finetuned):
    class Killed(Progress):
        def __call__(self, done: int, total: int, text: str = "") -> None:
            if (tmp_path / "seed0/state.safetensors").exists():
                raise KeyboardInterrupt

    monkeypatch.setattr(step, "STATE_EVERY_S", -1.0)
    with monkeypatch.context() as killed:
        killed.setattr(step, "Progress", Killed)
        with pytest.raises(KeyboardInterrupt):
            finetune(finetune_row(tiny), (demos,), tmp_path / "manifest.json")
    assert not (tmp_path / "manifest.json").exists()
    made = []

    def counted(self, number, update=step.Fit.update):
        made.append(number)
        return update(self, number)

    monkeypatch.setattr(step.Fit, "update", counted)
    finetune(finetune_row(tiny), (demos,), tmp_path / "manifest.json")
    assert made[0] > 0  # what was done is not done again
    assert (tmp_path / "manifest.json").read_bytes() == finetuned.read_bytes()
    assert not (tmp_path / "seed0/state.safetensors").exists()


def test_no_steps_take_a_checkpoint_as_it_is(tmp_path, tiny, demos):
    finetune(finetune_row(tiny, steps=0), (demos,), tmp_path / "manifest.json")
    before, after = weights(tiny), weights(tmp_path / "seed0/checkpoint")
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_schedule_warms_up_and_ends_at_a_tenth():
    import torch

    settings = FineTuning(**{**FINETUNING, "checkpoint": "", "cameras": (), "steps": 1000})
    share = schedule(torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=5e-5), settings)
    shares = np.array([share(k) for k in range(1001)])
    assert shares.argmax() in (49, 50)
    assert shares[0] < 0.05
    assert shares.max() > 0.98
    assert shares[-1] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_episodes": 21}, "train_episodes must be at most the 20 of"),
        ({"embodiment": "gr2"}, "GR00T N1.5 has no embodiment 'gr2'; did you mean gr1?"),
        ({"cameras": ["front"]}, "has no camera 'front'; known are observation.images.head"),
        ({"steps": -1}, "steps must not be negative, got -1"),
        ({"horizon": 65}, "positions for horizons 1 to 64, not 65"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, tiny, demos, changes, message):
    with pytest.raises(GhostError) as error:
        finetune(finetune_row(tiny, **changes), (demos,), tmp_path / "manifest.json")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
