"""Sub-phases from a recording alone, on movements whose phases are known; test_libero_agreement.py has the experts'."""

import numpy as np
import pytest

from ghost.libero.phases import infer_phases

OPEN_M, CAN_M = 0.08, 0.06


class Arm:
    """Records a hand that moves as it is told."""

    def __init__(self):
        self.hand, self.yaw, self.apart = np.zeros(3), 0.0, OPEN_M
        self.steps = []

    def go(self, *to, steps=10, closing=False, turn=0.0, until=None):
        """Move to a place; `until` is how far the fingers get, 6 mm a step."""
        target, wanted = np.array(to, float), OPEN_M if not closing else until or 0.0
        for step in range(steps):
            c, s = np.cos(self.yaw), np.sin(self.yaw)
            rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
            self.steps.append((self.hand.copy(), rotation, self.apart, closing))
            self.hand = self.hand + (target - self.hand) / (steps - step)
            self.yaw += turn / steps
            self.apart += np.clip(wanted - self.apart, -0.006, 0.006)
        return self

    def phases(self):
        hand, rotation, opening, closing = (np.array(column) for column in zip(*self.steps, strict=True))
        found = infer_phases(hand, rotation, opening, closing)
        changes = [0, *(np.flatnonzero(np.diff(found)) + 1).tolist()]
        return [(int(found[start]), start) for start in changes]


def pick(arm, x, to, until=CAN_M):
    """Reach 10 steps, grasp 12, carry up, across and down, let go and rise."""
    arm.go(x, 0, 0).go(x, 0, 0, steps=12, closing=True, until=until)
    arm.go(x, 0, 0.2, closing=True, until=until).go(to, 0, 0.2, closing=True, until=until)
    arm.go(to, 0, 0.05, closing=True, until=until)
    return arm.go(to, 0, 0.05, steps=4).go(to, 0, 0.2, steps=6)


def test_two_objects_have_eight_phases():
    found = pick(pick(Arm(), 0.3, 0.6), -0.3, 0.6).phases()
    assert [phase for phase, _ in found] == list(range(8))
    starts = dict(found)
    assert starts[1] == 10  # the hand is told to close
    assert 22 < starts[2] <= 25  # it moves away
    assert 39 <= starts[3] <= 43  # it is over the place
    assert 56 < starts[4] <= 62  # it has let go, and left


def test_another_try_at_the_same_object_is_no_second_object():
    arm = pick(Arm(), 0.3, 0.6)
    arm.go(0.62, 0, 0.05).go(0.62, 0, 0.05, steps=12, closing=True, until=CAN_M)
    arm.go(0.7, 0, 0.2, closing=True, until=CAN_M).go(0.7, 0, 0.2, steps=5)
    assert {phase for phase, _ in arm.phases()} == {0, 1, 2, 3}


def test_a_grip_that_catches_nothing_is_part_of_reaching():
    arm = Arm().go(0.3, 0, 0).go(0.3, 0, 0, steps=16, closing=True, until=0.0).go(0.3, 0, 0.1)
    assert arm.phases() == [(0, 0)]
    assert [phase for phase, _ in pick(arm, 0.3, 0.6).phases()] == [0, 1, 2, 3]


def test_a_knob_is_turned_where_it_is():
    arm = Arm().go(0.3, 0, 0).go(0.3, 0, 0, steps=12, closing=True, until=0.02)
    arm.go(0.3, 0, 0, steps=20, closing=True, until=0.02, turn=1.2).go(0.3, 0, 0, steps=6).go(0.3, 0, 0.2)
    assert [phase for phase, _ in arm.phases()] == [0, 1, 2, 3]
    assert arm.phases()[2][1] == pytest.approx(25, abs=2)


def test_a_shut_hand_pushes():
    """It reaches along a corner, then pushes straight: no grasp, and always the second part."""
    arm = pick(Arm(), 0.3, 0.6)
    arm.go(0.6, 0, 0.2, steps=10, closing=True).go(0.6, -0.2, 0.2, closing=True).go(0.6, -0.2, 0.0, closing=True)
    before = len(arm.steps)
    arm.go(0.6, 0.1, 0.0, steps=15, closing=True)
    found = arm.phases()
    assert [phase for phase, _ in found] == [0, 1, 2, 3, 4, 6]
    assert found[-1][1] == pytest.approx(before, abs=2)
