"""The rule for phases against those that the scripted experts record, by the real step."""

import numpy as np
import pytest

from ghost.errors import GhostError
from ghost.libero import agreement
from ghost.libero.phases import infer_phases
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.make_demos import make_demos
from ghost.study.builds import load
from trained import declared

SETTINGS = {"tasks": [5], "attempts": 2, "max_steps": 150, "noise": 0.05, "bursts": 0.01}


@pytest.mark.slow
def test_the_rule_agrees_with_experts_in_scenes_that_it_was_not_chosen_on(tmp_path, monkeypatch):
    """Counted over the steps of the attempts that succeeded. A rule that knows nothing would agree in a quarter."""
    seen = []

    def infer(*columns):
        seen.append(infer_phases(*columns))
        return seen[-1]

    monkeypatch.setattr(agreement, "infer_phases", infer)
    text = declared("phases", "make_demos", "ghost.libero.agreement", SETTINGS, [1], [])
    execute(make_demos, text, tmp_path / "manifest.json")
    (run,) = open_runs(tmp_path / "manifest.json")
    values = {(each.condition, each.metric): each for each in run.measured()}
    assert 75 < values["all", "agreement_percent"].value < 100
    assert values["T5", "agreement_percent"].value == values["all", "agreement_percent"].value
    assert values["all", "episodes"].value == 2
    assert values["all", "agreement_percent"].n == sum(map(len, seen))
    assert run.record()["stand_ins"]  # the assets


def test_agreement_counts_steps():
    """A hand that rests: the rule says phase 0 at every step."""
    state = np.zeros((8, 13), np.float32)
    state[:, 3] = state[:, 7] = 1
    columns = {"observation.state": state, "action": np.full((8, 7), -1.0), "phase": np.arange(8) // 2}
    assert agreement.agreement(columns).tolist() == [True] * 2 + [False] * 6


def test_no_run_is_of_the_demonstrations_that_the_rule_was_chosen_on(tmp_path):
    for scale in ("smoke", "laptop", "paper"):
        config = load({"scale": scale})
        assert not {*config.experiment("libero_phases").seeds} & {*config.experiment("libero_demos").seeds}
    with pytest.raises(GhostError, match="was chosen on demonstrations of seed 0: take another seed"):
        agreement.make(agreement.Settings((5,), 1, 10, 0.0, 0.0), seed=0, folder=tmp_path)
