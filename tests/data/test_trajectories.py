from types import SimpleNamespace

import numpy as np
import torch

from ghost.data.trajectories import Windows, imitation_error, pack


def run():
    """Two episodes, of 5 and 3 steps: observation = 10 n + t, action = its negative, reward = t."""
    episodes = [
        {
            "observation": (10 * n + np.arange(length, dtype=np.float32))[:, None],
            "context": np.full((length, 2), n, np.float32),
            "action": -(10 * n + np.arange(length, dtype=np.float32))[:, None],
            "reward": np.arange(length, dtype=np.float32),
        }
        for n, length in ((1, 5), (2, 3))
    ]
    return SimpleNamespace(arrays=lambda: pack(episodes))


def test_windows_begin_every_stride_and_end_with_their_episode():
    windows = Windows(run(), length=4, stride=2)
    assert windows.starts.tolist() == [0, 2, 4, 0, 2]
    assert windows.episode.tolist() == [0, 0, 0, 1, 1]
    batch = windows.batch(torch.tensor([1, 4]))
    assert batch.seen.observation[0, :3, 0].tolist() == [12, 13, 14]
    assert batch.valid.tolist() == [[True, True, True, False], [True, False, False, False]]
    assert batch.target[0, :3, 0].tolist() == [-12, -13, -14]
    assert batch.start.tolist() == [2, 2]


def test_a_step_knows_the_last_action_and_reward_and_the_first_step_none():
    windows = Windows(run(), length=3, stride=1)
    first, later = (windows.batch(torch.tensor([place])).seen for place in (0, 1))
    assert first.last_action[0, :, 0].tolist() == [0, -10, -11]
    assert first.last_reward[0].tolist() == [0, 0, 1]
    assert later.last_action[0, :, 0].tolist() == [-10, -11, -12]


def test_the_error_counts_only_steps_that_are_there():
    batch = Windows(run(), length=4, stride=4).batch(torch.tensor([1]))  # step 4 of the first episode alone
    off = batch.target + torch.tensor([2.0, 100, 100, 100])[:, None]
    assert imitation_error(off, batch).item() == 4.0
