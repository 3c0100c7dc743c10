import numpy as np
import pytest

from ghost.environments.dark_room import (
    DarkRoom,
    Episodes,
    Rules,
    draw_episodes,
    moves,
    scaled,
    shortest_way,
    steps_per_second,
)


def one_episode(switch=60, goals=((3, 4), (9, 12))):
    return Episodes(np.array([goals]), np.array([switch]), np.zeros((300, 1, 2), np.float32))


def test_the_shortest_way_takes_as_many_steps_as_there_are_moves():
    rules = Rules(20)
    episodes = draw_episodes(rules, range(200), seed=3)
    room = DarkRoom(rules, episodes)
    arrived = np.full(200, -1)
    while not room.over:
        reward = room.step(shortest_way(room.position, room.goal))
        after = room.t - episodes.switch  # the first step with the new goal is number 1
        arrived = np.where((arrived < 0) & (after > 0) & (reward == 1), after, arrived)
    np.testing.assert_array_equal(arrived, moves(episodes.goals[:, 0], episodes.goals[:, 1]))


def test_the_goal_jumps_once_at_its_step():
    room = DarkRoom(Rules(20), one_episode(switch=70))
    for t in range(300):
        assert room.goal.tolist() == ([[3, 4]] if t < 70 else [[9, 12]])
        room.step(np.zeros((1, 2)))


def test_actions_are_rounded_and_walls_hold():
    room = DarkRoom(Rules(20), one_episode())
    room.step(np.array([[0.4, -0.6]]))
    assert room.position.tolist() == [[10, 9]]
    room.step(np.array([[7.0, np.float32(-3)]]))  # at most one cell
    assert room.position.tolist() == [[11, 8]]
    for _ in range(30):
        room.step(np.array([[1, 1]]))
    assert room.position.tolist() == [[19, 19]]


def test_rewards_are_for_the_cell_reached():
    room = DarkRoom(Rules(20), one_episode(goals=((11, 11), (0, 0))))
    assert [float(room.step(np.array([[move, move]]))[0]) for move in (1, 0, 1)] == [1.0, 1.0, -0.1]


def test_an_episode_is_the_same_alone_or_among_others():
    rules = Rules(20)
    many, alone = draw_episodes(rules, range(50), seed=9), draw_episodes(rules, [33], seed=9)
    np.testing.assert_array_equal(many.goals[33], alone.goals[0])
    np.testing.assert_array_equal(many.noise[:, 33], alone.noise[:, 0])
    assert many.switch[33] == alone.switch[0]
    assert not np.array_equal(many.goals, draw_episodes(rules, range(50), seed=10).goals)


def test_goals_lie_apart_and_jumps_fall_into_their_span():
    rules = Rules(20)
    episodes = draw_episodes(rules, range(500), seed=0)
    assert moves(episodes.goals[:, 0], episodes.goals[:, 1]).min() == 5
    assert (episodes.switch.min(), episodes.switch.max()) == (60, 100)
    assert (episodes.goals.min(), episodes.goals.max()) == (0, 19)


def test_what_the_paper_prints_is_what_these_rules_give():
    """An agent that never arrives: 219.4 ± 12.0; the shortest way: 10.8 ± 3.4 steps and a total of 281.5."""
    rules = Rules(20)
    episodes = draw_episodes(rules, range(4000), seed=1)
    left, way = 300 - episodes.switch, moves(episodes.goals[:, 0], episodes.goals[:, 1])
    first = moves(np.array([10, 10]), episodes.goals[:, 0])
    assert left.mean() == pytest.approx(219.4, abs=1.5)
    assert left.std() == pytest.approx(12.0, abs=0.5)
    assert way.mean() == pytest.approx(10.8, abs=0.5)
    assert way.std() == pytest.approx(3.4, abs=0.5)
    assert (300 - 1.1 * (way + first - 2)).mean() == pytest.approx(281.5, abs=2)  # the arriving steps earn already


def test_cells_are_scaled_to_one():
    np.testing.assert_allclose(scaled(np.array([[0, 19]]), 20), [[-1, 1]])


def test_an_impossible_room_is_refused():
    with pytest.raises(ValueError, match="size must be at least 2, got 1"):
        Rules(1)


def test_a_million_steps_a_second(capsys):
    """Forty times that on an idle core."""
    speed = steps_per_second(seconds=0.2)
    with capsys.disabled():
        print(f"\nDark Room: {speed:,.0f} environment steps a second")
    assert speed > 1_000_000
