import dataclasses

import numpy as np
import pytest

from ghost.data.dual_arm import (
    ARM,
    DIMENSIONS,
    GRIPPER,
    LIFT,
    PHASES,
    SCENES,
    TASKS,
    Settings,
    generate,
    make,
    minimum_jerk,
)
from ghost.data.lerobot import LeRobotDataset

SMALL = Settings(
    episodes=200, steps=80, fps=20, robot_seed=2026, state_noise=0.01, scene_noise=0.02, episodes_per_file=60
)


@pytest.fixture(scope="module")
def episodes():
    return generate(SMALL, 0)[0]


def test_dimensions_are_the_papers():
    assert sorted((*ARM, *GRIPPER, *LIFT)) == list(range(DIMENSIONS)) == list(range(17))
    assert (len(ARM), len(GRIPPER), len(LIFT)) == (14, 2, 1)
    assert len(TASKS) == 10
    assert len(SCENES) == 5


def test_values_are_normalised(episodes):
    for values in (np.concatenate([e.action for e in episodes]), np.concatenate([e.state for e in episodes])):
        assert values.shape[1] == DIMENSIONS
        assert np.abs(values).max() <= 1
        np.testing.assert_allclose(values[:, ARM].min(axis=0), -1)
        np.testing.assert_allclose(values[:, ARM].max(axis=0), 1)
    assert min(values[:, ARM].std(axis=0)) > 0.1


def test_phases_come_in_order(episodes):
    for episode in episodes:
        assert set(np.diff(episode.phase)) <= {0, 1}
        assert (episode.phase[0], episode.phase[-1]) == (0, len(PHASES) - 1)


def test_grippers_snap_and_only_the_acting_one_moves(episodes):
    for episode in episodes:
        grippers = episode.action[:, GRIPPER]
        assert set(np.unique(grippers)) <= {-1.0, 1.0}
        acting = grippers[:, episode.arm]
        assert list(acting[[0, -1]]) == [1.0, 1.0]
        assert (np.diff(acting) != 0).sum() == 2  # shut once, open once
        assert set(episode.phase[acting < 0]) <= {1, 2, 3}
        assert np.all(acting[episode.phase == 2] == -1)
        assert np.all(grippers[:, 1 - episode.arm] == 1)


def test_the_lift_is_nearly_always_down(episodes):
    lift = np.concatenate([episode.action[:, LIFT] for episode in episodes])
    assert np.mean(lift == -1) > 0.95
    assert lift.max() > 0


def test_arms_move_smoothly(episodes):
    """Second differences fall with the square of the step: a kink would make them fall with the step only."""
    slow = generate(dataclasses.replace(SMALL, steps=4 * SMALL.steps), 0)[0]
    bends = [np.max([np.abs(np.diff(e.action[:, ARM], n=2, axis=0)).max() for e in made]) for made in (episodes, slow)]
    assert bends[1] < bends[0] / 9
    for episode in slow:
        arm = episode.action[:, ARM]
        assert np.abs(arm[1] - arm[0]).max() < 1e-3  # starts and ends at rest
        assert np.abs(arm[-1] - arm[-2]).max() < 1e-3
    s = np.linspace(0, 1, 101)
    assert np.all(np.diff(minimum_jerk(s)) > 0)
    np.testing.assert_allclose(minimum_jerk(s) + minimum_jerk(1 - s), 1)


def test_the_state_follows_the_command(episodes):
    for episode in episodes[:50]:
        error = episode.state[1:, ARM] - episode.action[:-1, ARM]
        assert 0.001 < np.abs(error).mean() < 0.06  # sensor noise, and a slightly other normalisation


def test_tasks_vary_as_they_should(episodes):
    def dispersion(name):
        index = [task.name for task in TASKS].index(name)
        own = [e.action for e in episodes if e.task == index]
        aligned = np.stack([a[np.linspace(0, len(a) - 1, 40).astype(int)][:, ARM] for a in own])
        return aligned.var(axis=0).mean()

    values = {task.name: dispersion(task.name) for task in TASKS}
    assert min(values, key=values.get) == "Take_book"
    assert values["Tidy_conf_room"] > 5 * values["Take_book"]
    assert values["Tidy_conf_room"] > np.median(list(values.values()))


def test_there_is_more_than_one_way_to_act(episodes):
    for index in range(len(TASKS)):
        own = [e for e in episodes if e.task == index]
        assert len({e.side for e in own}) == 2 or TASKS[index].one_side > 0.9
    diffuse = [e for e in episodes if TASKS[e.task].name == "Tidy_conf_room"]
    assert {e.arm for e in diffuse} == {0, 1}


def test_nothing_shows_the_choice_before_the_arm_moves(episodes):
    """At the start, state and scene tell the side no better than a guess does; late in the approach they do."""
    coin = [e for e in episodes if TASKS[e.task].one_side == 0.5]
    side = np.array([e.side for e in coin])

    def correlation(step):
        at = np.stack(
            [np.concatenate([e.state[step(e)], *(v[step(e)].ravel() for v in e.scene.values())]) for e in coin]
        )
        at = (at - at.mean(axis=0)) / (at.std(axis=0) + 1e-9)
        return np.abs(at.T @ (side - side.mean()) / side.std() / len(side)).max()

    assert correlation(lambda e: 0) < 4 / np.sqrt(len(coin))
    assert correlation(lambda e: int(np.flatnonzero(e.phase == 0)[-1])) > 0.5


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    tiny = Settings(
        episodes=12, steps=24, fps=20, robot_seed=1, state_noise=0.01, scene_noise=0.02, episodes_per_file=5
    )
    contents = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        outcome = make(tiny, seed=seed, folder=tmp_path / name)
        contents.append({file: (tmp_path / name / file).read_bytes() for file in outcome.files})
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]
    data = LeRobotDataset.open(tmp_path / "a/dataset")
    assert [data.tasks[k] for k in range(10)] == [task.name for task in TASKS]
    assert {len(data.episode(k)) for k in range(12)} == set(data.lengths())
    assert "observation.scene.object" in data.episode(0).columns
    assert len(data.require_normalisation().action.low) == 17


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"episodes": 9}, "episodes must be at least 10, one per task, got 9"),
        ({"steps": 10}, "steps must be at least 20, got 10"),
        ({"fps": 0}, "fps must be at least 1, got 0"),
        ({"state_noise": -1.0}, "state_noise must not be negative, got -1.0"),
    ],
)
def test_settings_are_checked(change, message):
    with pytest.raises(ValueError, match=message):
        Settings(**{**vars(SMALL), **change})
