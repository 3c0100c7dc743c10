import io

import numpy as np
import pytest
import torch

from ghost.evaluations import metaworld
from ghost.evaluations.metaworld import Settings, alignment, evaluate, steps_to_change
from ghost.runs.progress import Progress

pytestmark = pytest.mark.slow  # real MuJoCo worlds


class Turned(torch.nn.Module):
    """Notes what it is told and pushes forward."""

    def __init__(self):
        super().__init__()
        self.told = []

    def begin(self, agents):
        return None

    def act(self, memory, seen, noise):
        self.told.append(seen.context.argmax(dim=-1))
        return torch.tensor([0.0, 1.0, 0.0, 0.0]).expand(len(noise), 4)


def test_a_round_of_real_worlds(monkeypatch):
    """Three tasks: the expert is aligned with itself and gets them done; told is the old task, then the new one."""
    monkeypatch.setattr(metaworld, "tasks", lambda benchmark: ("reach-v3", "drawer-close-v3", "window-open-v3"))
    agent, settings = Turned(), Settings(tasks=3, rounds=1, steps_before=4, aligned_steps=20, max_steps=150)
    outcome = evaluate(settings, None, {"agent": agent}, seed=1, progress=Progress(stream=io.StringIO()))
    found = {(m.condition, m.metric): m.value for m in outcome.measured}
    assert found["expert", "success"] == 1
    assert found["expert", "first_cosine"] == pytest.approx(1)
    assert found["expert", "fresh_early_cosine"] == pytest.approx(1)
    assert found["agent", "fresh_first_cosine"] < 1
    assert abs(found["random_actions", "early_cosine"]) < 0.4
    assert found["agent", "success"] < 1
    before, after = agent.told[:4], agent.told[4:]
    assert all(torch.equal(told, torch.arange(3)) for told in after)
    assert all(sorted(told.tolist()) == [0, 1, 2] and not (told == torch.arange(3)).any() for told in before)
    assert outcome.arrays["agent/cosine"].shape == (3, 20)
    assert found["agent", "steps_to_change"] == 20  # it always does the same
    assert found["expert", "steps_to_change"] < 20
    assert ("agent/round00/reach-v3", "success") in found
    again = evaluate(settings, None, {"agent": Turned()}, seed=1, progress=Progress(stream=io.StringIO()))
    for name, array in outcome.arrays.items():
        np.testing.assert_array_equal(array, again.arrays[name])


def test_an_action_has_changed_when_it_leaves_its_usual_steps():
    before = np.array([[9.0, 0], [0.0, 0], [0.1, 0], [0.0, 0], [0.1, 0], *[[0.1, 0]] * 7])  # its large step is long ago
    assert steps_to_change(before, np.array([[0.15, 0], [0.1, 0.3], [0.1, 0]])) == 2
    assert steps_to_change(before, np.array([[5.0, 0]])) == 1
    assert steps_to_change(before, np.array([[0.1, 0], [np.nan, np.nan]])) == 2  # never: the task was done
    assert steps_to_change(before[:1], np.array([[9.0, 0], [9.0, 0.1]])) == 2  # one step before: any change counts


def test_alignment_is_a_cosine_and_nothing_points_nowhere():
    a = np.array([1.0, 0, 0, 0])
    assert alignment(a, 2 * a) == 1
    assert alignment(a, -a) == -1
    assert alignment(a, np.zeros(4)) == 0
