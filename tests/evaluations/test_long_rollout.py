"""Long rollouts: goals that jump every so many steps, and what is counted after each jump."""

import io

import numpy as np
import pytest
import torch

from ghost.environments.dark_room import Rules, draw_rollouts, moves
from ghost.evaluations.long_rollout import Settings, evaluate, measure
from ghost.runs.progress import Progress
from ghost.study import EXPERIMENTS

SMALL = Settings(size=20, rollouts=3, steps=2000, hold=50)


class Still(torch.nn.Module):
    """Never moves, and notes the goal that it is told."""

    def __init__(self):
        super().__init__()
        self.goals = []

    def begin(self, agents):
        return None

    def act(self, memory, seen, noise):
        self.goals.append(seen.context)
        return torch.zeros_like(seen.last_action)


def test_the_shortest_way_takes_the_distance_between_the_goals_and_stillness_all_steps():
    agent = Still()
    outcome = evaluate(SMALL, None, {"still": agent}, seed=42, progress=Progress(stream=io.StringIO()))
    found = {(m.condition, m.metric): m.value for m in outcome.measured}
    goals = draw_rollouts(Rules(20), 3, 40, 50, seed=3_000_042).goals
    way = moves(goals[:, :-1], goals[:, 1:])
    assert way.min() >= 5
    assert found["shortest_way", "latency"] == pytest.approx(way.mean())
    assert found["shortest_way", "reached"] == 1
    first = moves(np.array([10, 10]), goals[:, 0])
    paid = 1.1 * (way.sum() + first.sum() - (way > 0).sum() - (first > 0).sum())  # on the goal from the last move on
    assert found["shortest_way", "reward"] == pytest.approx(1 - paid / (3 * 2000))
    middle = (goals[:, 1:] == 10).all(axis=-1)
    assert found["still", "latency"] == pytest.approx(np.where(middle, 1, 50).mean())
    assert len(agent.goals) == 2000
    for step in (0, 49, 50, 1999):
        told = (agent.goals[step].numpy() + 1) * 19 / 2
        np.testing.assert_allclose(told, goals[:, step // 50], atol=1e-4)


def test_what_is_counted_on_a_written_path():
    goals = np.array([[[0, 0], [3, 3], [5, 5], [7, 7]]])
    position = np.zeros((1, 16, 2), int)  # four steps a goal
    position[0, 6:8] = [3, 3]  # the second goal at its third step; the third one never
    position[0, 12:] = [7, 7]  # the fourth one at once
    reward = np.where(np.arange(16) < 8, 1.0, 0.0)[None]
    found = measure(position, reward, goals, 4)
    assert found["latency"].tolist() == [[3, 4, 1]]
    assert found["reached"].tolist() == [[1, 0, 1]]
    assert (found["reward"].mean(), found["first_reward"].mean(), found["last_reward"].mean()) == (0.5, 1, 0)


def test_lengths_that_hold_no_whole_number_of_goals_are_refused():
    with pytest.raises(ValueError, match="steps must be a multiple of hold = 50, got 120"):
        Settings(steps=120, hold=50)
    with pytest.raises(ValueError, match="steps must be at least 100"):
        Settings(steps=50, hold=50)


def test_the_papers_size_is_10000_steps():
    (declared,) = [experiment for experiment in EXPERIMENTS if experiment.name == "dark_room_long"]
    assert declared.settings["steps"] == 10_000
    assert declared.seeds == (42, 123, 999)
