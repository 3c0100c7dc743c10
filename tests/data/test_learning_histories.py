from pathlib import Path

import numpy as np

from ghost.data.learning_histories import MOVES, Settings, destinations, make


def histories(**given):
    return make(Settings(**given), seed=4, folder=Path())


def test_the_learner_learns_within_its_life():
    reward = histories(size=8, learners=100).arrays["reward"]  # [N, T]
    assert reward[:, :5].mean() < 0
    assert reward[:, 50:60].mean() > 0.6  # it has found the first goal and stays
    assert reward[:, 100:105].mean() < 0.5  # which has moved
    assert reward[:, -20:].mean() > 0.8


def test_it_goes_where_it_has_not_been():
    found = histories(size=20, learners=20, epsilon=0.0).arrays
    for cells, reward in zip(found["observation"], found["reward"], strict=True):
        before = cells[: np.argmax(reward > 0) if (reward > 0).any() else 60][:40]
        assert len(np.unique(before, axis=0)) > 0.8 * len(before)


def test_histories_hold_no_goal_and_show_what_was_done():
    found = histories(size=6, learners=10).arrays
    assert not found["context"].any()
    moved = np.rint(np.diff(found["observation"], axis=1) * 5 / 2)
    np.testing.assert_array_equal(moved, found["action"][:, :-1])


def test_the_same_seed_is_the_same_history():
    first, again = (histories(size=6, learners=10).arrays["action"] for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_walls_stop_a_move():
    leads_to = destinations(3)
    assert leads_to[0].tolist() == [0, 0, 1, 0, 0, 1, 3, 3, 4]
    assert leads_to[4].tolist() == list(range(9))
    assert MOVES[4].tolist() == [0, 0]
