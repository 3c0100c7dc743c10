import numpy as np
import pytest
import torch

from ghost.agents.rl2 import Decoder, Rollouts, Settings


@pytest.fixture
def lived():
    settings = Settings(size=6, hidden=8, episodes=4, chunk=50)
    torch.manual_seed(0)
    agent, rollouts = Decoder(settings, Rollouts.sizes), Rollouts(settings)
    rollouts.prepare(agent, torch.Generator().manual_seed(5), 1.0)
    return agent, rollouts


def test_chunks_replay_what_was_lived(lived):
    """With unchanged weights the chances of what was done are those at the time: states, chunks and inputs fit."""
    agent, rollouts = lived
    batch = rollouts.batch(rollouts.places())
    assert len(batch) == 4 * 6
    with torch.no_grad():
        features, _ = agent.gru(agent.inputs(batch.seen), batch.state)
        again = agent.log_probability(agent.log_chances(features), batch.action)
    torch.testing.assert_close(again, batch.log_probability, rtol=1e-4, atol=1e-5)


def test_advantages_are_standardised(lived):
    _, rollouts = lived
    batch = rollouts.batch(rollouts.places())
    assert batch.advantage.mean().item() == pytest.approx(0, abs=1e-5)
    assert batch.advantage.std().item() == pytest.approx(1, abs=1e-3)


def test_advantages_are_the_discounted_sums_of_surprises():
    s = Settings(discount=0.9, trace=0.8)
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 7)), rng.normal(size=(2, 7))
    surprise = reward + 0.9 * np.append(value[:, 1:], np.zeros((2, 1)), axis=1) - value
    wanted = [[sum((0.9 * 0.8) ** (k - t) * row[k] for k in range(t, 7)) for t in range(7)] for row in surprise]
    found = Rollouts(s).advantages(torch.tensor(reward), torch.tensor(value))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_goals_move_away_from_the_start_as_training_goes_on():
    rollouts = Rollouts(Settings(episodes=200, growth=0.5))
    far = [np.abs(rollouts.draw_episodes(3, done).goals - 10).max(axis=-1).mean() for done in (0.0, 0.25, 0.6)]
    assert far[0] < 1.5 < far[1] < far[2]
    assert far[2] == pytest.approx(np.abs(rollouts.draw_episodes(4, 0.9).goals - 10).max(axis=-1).mean(), rel=0.1)


def test_new_episodes_every_epoch_and_the_same_from_the_same_generator(lived):
    agent, rollouts = lived
    first = rollouts.batch(rollouts.places()).seen.observation
    generator = torch.Generator().manual_seed(5)
    rollouts.prepare(agent, generator, 1.0)
    assert torch.equal(rollouts.batch(rollouts.places()).seen.observation, first)
    rollouts.prepare(agent, generator, 1.0)
    assert not torch.equal(rollouts.batch(rollouts.places()).seen.observation, first)


def test_a_chunk_must_divide_the_episode():
    with pytest.raises(ValueError, match="chunk = 7 must divide the 300 steps"):
        Rollouts(Settings(chunk=7))
