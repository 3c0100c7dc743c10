"""Which episodes are held back, and that none of them starts like one that is trained on."""

import numpy as np
import pytest

from ghost.data.lerobot import LeRobotDataset
from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.data.sampling import WholeEpisodes, draw, whole_episodes
from ghost.errors import GhostError

DRAW = WholeEpisodes(stride=1, test_episodes=2, horizon=4, d_state=2, d_action=2, samples_per_shard=8)


def written(folder, starts):
    columns = {"observation.state": np.zeros((3, 2), np.float32), "action": np.zeros((3, 2), np.float32)}
    facts = [{"start": start} if start else {} for start in starts]
    write_dataset(folder, [Recording("lift", columns, facts=f) for f in facts], fps=20, robot="arm")
    return LeRobotDataset.open(folder)


@pytest.mark.parametrize("starts", ["abcde", "aacde", "abcdd", ("",) * 5])
def test_the_last_episodes_are_held_back(tmp_path, starts):
    """Equal starts on one side are no leak. A data set may also not say how its episodes start."""
    data = written(tmp_path, starts)
    episode, _, splits = whole_episodes(DRAW, data)
    train, test = splits["episode"]
    assert (set(episode[train]), set(episode[test])) == ({0, 1, 2}, {3, 4})
    assert data.starts() == (list(starts) if starts[0] else [])


def test_a_chunk_goes_on_with_the_last_action_of_its_own_episode(tmp_path):
    """Episodes of 2, 5 and 3 steps, some shorter than the horizon: action 10 e + s in step s of episode e."""
    made = [10 * e + np.arange(length, dtype=np.float32)[:, None] * [1, 1] for e, length in enumerate((2, 5, 3))]
    columns = [{"observation.state": each, "action": each} for each in made]
    write_dataset(tmp_path, [Recording("lift", each) for each in columns], fps=20, robot="arm")
    drawn = draw(DRAW, LeRobotDataset.open(tmp_path), seed=0)
    assert drawn.episode.tolist() == [0] * 2 + [1] * 5 + [2] * 3
    chunks = drawn.small["action"][..., 0].astype(int).tolist()
    assert chunks[:2] == [[0, 1, 1, 1], [1, 1, 1, 1]]
    assert chunks[2:4] == [[10, 11, 12, 13], [11, 12, 13, 14]]
    assert chunks[6:] == [[14] * 4, [20, 21, 22, 22], [21, 22, 22, 22], [22] * 4]


@pytest.mark.parametrize(("starts", "pair"), [("abcda", "0 and 4"), ("abccd", "2 and 3")])
def test_a_held_back_episode_that_starts_like_a_training_one_is_refused(tmp_path, starts, pair):
    """As when 50 attempts started from 40 init states."""
    with pytest.raises(GhostError, match=rf"episodes {pair} start alike \(start [a-d]\), one is to train on"):
        whole_episodes(DRAW, written(tmp_path, starts))
