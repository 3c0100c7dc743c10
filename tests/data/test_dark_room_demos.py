from pathlib import Path

import numpy as np

from ghost.data.dark_room_demos import Settings, make


def test_targets_lead_to_the_goal_whatever_was_done():
    found = make(Settings(episodes=20), seed=0, folder=Path()).arrays
    np.testing.assert_array_equal(found["target"], np.sign(np.round(found["context"] - found["observation"], 4)))
    wrong = (found["action"] != found["target"]).any(axis=-1).mean()
    assert 0.06 < wrong < 0.12  # one in ten is drawn, and some of these are right


def test_the_goal_moves_now_and_then():
    found = make(Settings(episodes=50, switch_every=15), seed=0, folder=Path()).arrays
    jumps = (np.diff(found["context"], axis=1) != 0).any(axis=-1).mean()
    assert 0.05 < jumps < 0.08
