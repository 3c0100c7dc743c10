"""The experts do what they are for, recover from a push, and say in which sub-phase they are."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from ghost.libero.assets import primitive_assets
from ghost.libero.environment import Environment
from ghost.libero.experts import PHASES, expert
from ghost.libero.hand import Phase, turn_to
from ghost.libero.tasks import THINGS, Look

pytest_plugins = ("libero_fixtures",)


def attempt(env, task, init_state, *, noise=0.0, push_at=-1, max_steps=450):
    rng = np.random.default_rng(init_state)
    env.reset(init_state, init_state)
    phases = []
    for step in range(max_steps):
        intent = expert(task, env.look())
        phases.append(intent.phase)
        action = intent.action.copy()
        action[:6] += noise * rng.standard_normal(6)
        if push_at <= step < push_at + 10:
            action[:3] = 1.0
        env.step(action)
        if env.success():
            return True, phases
    return False, phases


def test_the_book_into_the_caddy():
    env = Environment(5, primitive_assets())
    done, phases = attempt(env, 5, 41)
    assert done
    assert phases[0] == Phase.REACH
    assert Phase.GRASP in phases
    assert set(phases) <= set(range(len(PHASES)))
    recovered, _ = attempt(env, 5, 42, push_at=12)
    assert recovered


DOWN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])  # the hand's rotation at yaw 0
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # a can whose own y axis points up


def seen(hand, opening, speed=0.0, **at):
    """A look at things that stand upright, the hand hanging down at yaw 0."""
    things = np.zeros((len(THINGS), 9))
    for name, position in at.items():
        things[list(THINGS).index(name)] = [*position, *UPRIGHT]
    fingers = np.array([opening, -opening]) / 2
    return Look(np.array(hand), DOWN, fingers, np.array([speed, -speed]) / 2, things, np.zeros(3))


@pytest.mark.parametrize("seed", range(20))
def test_the_turn_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    yaw, tilt = rng.uniform(-2, 2, 2)
    hand = Rotation.random(rng=rng)
    wanted = Rotation.from_euler("x", tilt) * Rotation.from_euler("z", yaw) * Rotation.from_matrix(DOWN)
    look = Look(np.zeros(3), hand.as_matrix(), np.zeros(2), np.zeros(2), np.zeros((len(THINGS), 9)), np.zeros(3))
    assert turn_to(look, yaw, tilt) == pytest.approx((wanted * hand.inv()).as_rotvec(), abs=1e-12)


def test_the_axes_of_a_thing_are_a_rotation():
    rotation = Rotation.random(rng=np.random.default_rng(1)).as_matrix()
    things = np.zeros((len(THINGS), 9))
    things[list(THINGS).index("book")] = [0, 0, 0, *rotation[:, 0], *rotation[:, 1]]
    look = Look(np.zeros(3), DOWN, np.zeros(2), np.zeros(2), things, np.zeros(3))
    assert look.axes("book") == pytest.approx(rotation, abs=1e-12)


BASKET, SAUCE = (0.0, 0.25, 0.43), (0.1, 0.0, 0.475)


@pytest.mark.parametrize(("x", "y", "z", "part"), [(0.03, 0.03, 0.06, 1), (-0.02, 0.0, 0.06, 1), (0.07, 0.0, 0.19, 0)])
def test_a_can_is_done_wherever_it_lies_in_the_basket_but_not_on_its_rim(x, y, z, part):
    soup = np.add(BASKET, (x, y, z))
    intent = expert(0, seen((0.0, 0.0, 0.7), 0.08, alphabet_soup=soup, tomato_sauce=SAUCE, basket=BASKET))
    assert intent.phase == 4 * part + Phase.REACH


def test_what_was_put_down_is_left_straight_up():
    soup = np.add(BASKET, (-0.022, -0.022, 0.15))
    hand = np.add(soup, (0.0, 0.0, 0.01))
    opening = {"alphabet_soup": soup, "tomato_sauce": SAUCE, "basket": BASKET}
    letting_go = expert(0, seen(np.add(hand, (0.01, 0.0, 0.0)), 0.064, **opening))
    assert (letting_go.phase, letting_go.action[6]) == (Phase.PLACE, -1)
    left = expert(0, seen(hand, 0.075, **opening))
    assert left.action[:2] == pytest.approx(0)
    assert left.action[2] > 0.5


STOPPED = [(0.079, 0.0, 1), (0.07, -0.1, 1), (0.07, 0.0, -1), (0.02, 0.0, -1)]


@pytest.mark.parametrize(("opening", "speed", "grip"), STOPPED)
def test_fingers_that_stop_on_the_wrong_thing_open_again(opening, speed, grip):
    soup = (0.0, 0.0, 0.475)
    hand = (0.0, 0.0, 0.485)
    intent = expert(0, seen(hand, opening, speed, alphabet_soup=soup, tomato_sauce=SAUCE, basket=BASKET))
    assert intent.action[6] == grip


@pytest.mark.slow
@pytest.mark.parametrize("task", [3, 8])
def test_a_task_of_two_parts_with_noise(task):
    env = Environment(task, primitive_assets())
    results = [attempt(env, task, init_state, noise=0.08) for init_state in (40, 41)]
    assert all(done for done, _ in results)
    for _, phases in results:
        assert phases[0] == 0
        assert max(phases) >= 4  # the second part came after the first


@pytest.mark.slow
@pytest.mark.parametrize("task", [3, 5])
def test_on_liberos_own_assets(task, original_assets):
    env = Environment(task, original_assets)
    assert all(attempt(env, task, init_state)[0] for init_state in (40, 41))
