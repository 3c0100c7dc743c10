import io

import numpy as np
import pytest
import torch

from ghost.environments.dark_room import Rules, draw_episodes, moves
from ghost.evaluations.dark_room import Settings, evaluate, measure, recovery
from ghost.runs.progress import Progress


class Still(torch.nn.Module):
    """Never moves, and counts what it was told."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def begin(self, agents):
        return None

    def act(self, memory, seen, noise):
        self.seen.append(seen)
        return torch.zeros_like(seen.last_action)


def run(settings, **agents):
    outcome = evaluate(settings, None, agents, seed=42, progress=Progress(stream=io.StringIO()))
    return {(m.condition, m.metric): m.value for m in outcome.measured}, outcome.arrays


def test_the_shortest_way_and_an_agent_that_never_moves_bound_everyone():
    settings = Settings(episodes=12)
    found, arrays = run(settings, still=Still())
    episodes = draw_episodes(Rules(20), range(12), seed=1_000_042)
    way = moves(episodes.goals[:, 0], episodes.goals[:, 1])
    np.testing.assert_array_equal(arrays["shortest_way/latency"], way)
    np.testing.assert_array_equal(arrays["still/latency"], arrays["steps_left"])
    assert found["shortest_way", "reached"] == found["shortest_way", "steady_reward"] == 1
    assert found["still", "total_reward"] == pytest.approx(-30)
    assert found["still/episode003", "latency"] == 300 - episodes.switch[3]
    assert found["episode003", "evaluation_seed"] == 1_000_042
    assert found["random_walk", "total_reward"] < 0


def test_agents_are_told_the_goal_in_force_and_their_last_reward():
    agent = Still()
    run(Settings(episodes=3), agent=agent)
    episodes = draw_episodes(Rules(20), range(3), seed=1_000_042)
    assert len(agent.seen) == 300
    assert not agent.seen[0].last_reward.any()
    for n, switch in enumerate(episodes.switch):
        before, after = agent.seen[switch - 1].context[n], agent.seen[switch].context[n]
        np.testing.assert_allclose((before + 1) * 19 / 2, episodes.goals[n, 0], atol=1e-4)
        np.testing.assert_allclose((after + 1) * 19 / 2, episodes.goals[n, 1], atol=1e-4)


def test_the_reward_course_is_aligned_at_the_jump():
    _, arrays = run(Settings(episodes=4, steps_before=10, steps_after=30))
    course = arrays["shortest_way/reward"]
    assert course.shape == (4, 40)
    assert (course[:, :10] == 1).all()  # at the old goal until it moves
    for row, latency in zip(course, arrays["shortest_way/latency"], strict=True):
        assert np.argmax(row[10:] == 1) + 1 == latency


def test_latency_old_goal_and_rewards_of_a_written_path():
    rules = Rules(20)
    position = np.tile([5, 5], (1, 300, 1))  # on the first goal
    position[0, 73:] = [12, 5]  # on the second one from the fourth step after the jump
    reward = np.where(np.arange(300) >= 73, 1.0, -0.1)[None]
    goals, switch = np.array([[[5, 5], [12, 5]]]), np.array([70])
    found = measure(Settings(), rules, position, reward, goals, switch)
    assert found["latency"] == 4
    assert found["old_goal"] == pytest.approx(3 / 4)
    assert found["steady_reward"] == 1


def test_a_course_recovers_where_it_has_come_nine_tenths_of_the_way():
    step = np.where(np.arange(200) < 12, -0.1, 1.0)  # back at the thirteenth step
    assert recovery(step, -0.1) == (pytest.approx(1.0), 13)
    low = np.where(np.arange(200) < 60, -0.1, 0.3)  # relative to its own plateau
    assert recovery(low, -0.1) == (pytest.approx(0.3), 61)
    once = step.copy()
    once[3] = 1.0  # a single visit is no recovery
    assert recovery(once, -0.1)[1] == 13
    ramp = np.minimum(np.arange(200) * 0.01, 1.0)  # five steps from k on have a mean of (k + 2) / 100
    assert recovery(ramp, 0.0) == (pytest.approx(1.0), 89)
    assert recovery(2 * ramp - 1, -1.0) == (pytest.approx(1.0), 89)  # nine tenths of the way up, not of the plateau
    plateau, steps = recovery(np.full(200, -0.1), -0.1)
    assert (plateau, np.isnan(steps)) == (pytest.approx(-0.1), True)


def test_recovery_is_measured_of_every_agent_in_steps_and_in_time():
    found, arrays = run(Settings(episodes=12, control_hz=50), still=Still())
    mean = arrays["shortest_way/reward"][:, 50:].mean(axis=0)
    back = next(k for k in range(196) if mean[k : k + 5].mean() >= -0.1 + 0.9 * 1.1)
    assert found["shortest_way", "plateau"] == pytest.approx(1)
    assert found["shortest_way", "recovery_steps"] == back + 1
    assert found["shortest_way", "recovery_s"] == pytest.approx((back + 1) / 50)
    assert found["shortest_way", "recovery_ms"] == pytest.approx(20 * (back + 1))
    assert np.isnan(found["still", "recovery_steps"])


def test_spans_that_no_episode_has_are_refused():
    with pytest.raises(ValueError, match="no episode has steps_before = 61"):
        Settings(steps_before=61)
    with pytest.raises(ValueError, match="steady_steps must lie after the jump"):
        Settings(steady_steps=250)
