"""Scripted experts for the ten tasks, from privileged state. An expert is a function of what is seen now:

    intent = expert(8, look)      # what to do from here: an action [7] and the sub-phase

There is no clock and no memory: sub-phase and target follow from where hand and things are. So an expert that is
pushed off its way, by injected noise or by a failed grip, goes on from where it is, and its intended action is the
right label there. A stateless policy can learn it for the same reason.

Eight sub-phases: (reach, grasp, carry, place) for the first part of a task, and again for the second. Pushing a drawer
or a door shut and turning a knob are "carry".

Rotations: yaw 0 has the fingers along the world's y; the hand hangs down; a tilt is about the world's x, after the
yaw. The hand is 20 cm wide along the fingers' axis, which decides most of the choices of yaw below. Heights and offsets
are in metres, and fit LIBERO's own assets as well as the primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from ghost.libero.tasks import TASKS, Look

REACH, GRASP, CARRY, PLACE = range(4)
PHASES = tuple(f"{name} {part}" for part in ("first", "second") for name in ("reach", "grasp", "carry", "place"))
OPEN, CLOSE = -1.0, 1.0
WIDE_OPEN = 0.072  # the fingers reach 0.08
RIGHT_ANGLE = np.pi / 2


def vector(x: float, y: float, z: float) -> np.ndarray:
    return np.array([x, y, z])


@dataclass(frozen=True)
class Intent:
    action: np.ndarray  # [7]
    phase: int  # 0 to 7


@dataclass(frozen=True)
class Move:
    """Where a part of an expert wants the hand, and how it goes there."""

    to: np.ndarray  # [3]
    yaw: float
    gripper: float
    phase: int  # 0 to 3
    tilt: float = 0.0
    speed: float = 1.0  # of the largest component, 1: 5 cm a step


Part = Callable[[Look], Move | None]  # None: this part of the task is done


def expert(task: int, look: Look) -> Intent:
    """The intended action at this moment."""
    parts = PARTS[task]
    for number, part in enumerate(parts):
        move = part(look)
        if move is not None:
            return Intent(_action(look, move), 4 * number + move.phase)
    rest = Move(look.hand + vector(0, 0, 0.05), 0.0, OPEN, PLACE)  # all is done: let go and rise
    return Intent(_action(look, rest), 4 * (len(parts) - 1) + PLACE)


def _action(look: Look, move: Move) -> np.ndarray:
    steps = (move.to - look.hand) / 0.05
    largest = np.abs(steps).max()
    if largest > move.speed:
        steps = steps * (move.speed / largest)
    turn = _turn(look, move.yaw, move.tilt)
    return np.concatenate([steps, np.clip(turn / 0.5, -0.5, 0.5), [move.gripper]])


def _rotation(yaw: float, tilt: float) -> np.ndarray:
    """Of the hand: Rx(tilt) Rz(yaw) times the one at yaw 0, whose columns are y, x and -z."""
    sin, cos, s, c = math.sin(yaw), math.cos(yaw), math.sin(tilt), math.cos(tilt)
    return np.array([[-sin, cos, 0.0], [c * cos, c * sin, s], [s * cos, s * sin, -c]])


def _turn(look: Look, yaw: float, tilt: float) -> np.ndarray:
    """The rotation vector [3] from the hand to this rotation."""
    quat, turn = np.empty(4), np.empty(3)
    mujoco.mju_mat2Quat(quat, (_rotation(yaw, tilt) @ look.rotation.T).ravel())
    mujoco.mju_quat2Vel(turn, quat, 1.0)
    return turn


def _turn_left(look: Look, yaw: float, tilt: float = 0.0) -> float:
    """Angle between the hand and this rotation."""
    return float(np.linalg.norm(_turn(look, yaw, tilt)))


def _turned(offset: np.ndarray, angle: float) -> np.ndarray:
    """An offset [3] turned about the world's z."""
    sin, cos = math.sin(angle), math.cos(angle)
    return vector(cos * offset[0] - sin * offset[1], sin * offset[0] + cos * offset[1], offset[2])


def _hand_yaw(look: Look) -> float:
    """The fingers' axis is Rz(yaw) e_y = (-sin yaw, cos yaw)."""
    return float(np.arctan2(-look.rotation[0, 0], look.rotation[1, 0]))


def _along(direction: np.ndarray) -> float:
    """The yaw in [-π/2, π/2) that has the fingers along a direction."""
    yaw = np.arctan2(-direction[0], direction[1])
    return float((yaw + RIGHT_ANGLE) % np.pi - RIGHT_ANGLE)


def _closing(look: Look) -> bool:
    return bool(look.finger_speed[0] - look.finger_speed[1] < -0.02)


def _grasp_slack(look: Look) -> float:
    """How far off the hand may be when it closes: more once the fingers move, or a push would open them again."""
    return 0.02 if _closing(look) else 0.012


def _flat(vector: np.ndarray) -> float:
    """Length in the plane of the table."""
    return float(np.hypot(vector[0], vector[1]))


# ----------------------------------------------------------------------------------------------------- pick and place


@dataclass(frozen=True)
class Grip:
    """How a thing is held."""

    at: np.ndarray  # [3] between the fingertips
    yaw: float
    width: float  # between the fingers when they hold it
    tilt: float = 0.0


def can(look: Look, name: str) -> Grip:
    """Upright: from above, near the top. Lying: across."""
    axis = look.axes(name)[:, 1]
    if abs(axis[2]) > 0.7:
        return Grip(look.at(name) + vector(0, 0, 0.010), 0.0, 0.062)
    return Grip(look.at(name), _along(np.array([-axis[1], axis[0]])), 0.062)


def packet(width: float, lift: float, shift: float = 0.0) -> Callable[[Look, str], Grip]:
    """A flat box, across its shorter side; `shift` off its middle, towards larger x, where a neighbour stands close."""

    def grip(look: Look, name: str) -> Grip:
        long, short = look.axes(name)[:, 0], look.axes(name)[:, 1]
        return Grip(look.at(name) + shift * np.sign(long[0]) * long + vector(0, 0, lift), _along(short), width)

    return grip


def mug(
    side: float, centre: tuple[float, float], radius: float, top: float, wall: float
) -> Callable[[Look, str], Grip]:
    """By its rim, on the side away from its handle (`side` of its local x axis)."""

    def grip(look: Look, name: str) -> Grip:
        axes = look.axes(name)
        middle = look.at(name) + axes @ np.array([*centre, 0.0])
        out = side * axes[:, 0]
        at = middle + radius * out
        return Grip(np.array([at[0], at[1], look.at(name)[2] + top - 0.02]), _along(out), wall)

    return grip


WHITE_MUG = mug(1.0, (0.0153, -0.0015), 0.041, 0.108, 0.006)
YELLOW_MUG = mug(-1.0, (-0.0182, 0.0), 0.0425, 0.103, 0.009)


def bowl(look: Look, name: str) -> Grip:
    """By its rim, on the side of the robot, with the fingers along x."""
    return Grip(look.at(name) + vector(-0.0475, 0.0, 0.034), -RIGHT_ANGLE, 0.007)


def pot(look: Look, name: str) -> Grip:
    """By the knob of the lid, 7 mm below its top."""
    return Grip(look.at(name) + look.axes(name) @ np.array([0.0, -0.0013, 0.0787]), 0.0, 0.012)


def book(look: Look, name: str) -> Grip:
    """Across its thickness, with the yaw from which the hand turns to ±90 degrees with the least effort."""
    axes = look.axes(name)
    yaw = _along(axes[:, 0])
    options = [
        (max(abs(start), RIGHT_ANGLE) + 0.3 * abs(end - start), start)
        for start in (yaw, yaw - np.pi, yaw + np.pi)
        for end in (-RIGHT_ANGLE, RIGHT_ANGLE)
        if abs(start) <= 1.75 and abs(end - start) < 0.75 * np.pi
    ]
    return Grip(look.at(name) + axes @ np.array([-0.0005, -0.0122, 0.112]), min(options)[1], 0.0286)


@dataclass(frozen=True)
class Pick:
    """Bring a thing to a place: over it, down, close; up, across, down, open."""

    thing: str
    grip: Callable[[Look, str], Grip]
    place: Callable[[Look], np.ndarray]  # [3] where the thing's reference point is let go
    travel: float  # height of the hand on its way there
    carry: float  # and with the thing
    reference: tuple[float, float, float] = (0.0, 0.0, 0.0)  # in the thing's own frame
    near: float = 0.02  # how well it must lie in the plane
    inside: str = ""  # a basket, in which it may lie anywhere: `near` is measured from its middle
    exact: float = 0.012  # and before it is put down
    turned: bool = False  # arrive with the fingers along x
    slow: float = 0.4  # when putting down

    def __call__(self, look: Look) -> Move | None:
        grip, target = self.grip(look, self.thing), self.place(look)
        point = look.at(self.thing) + look.axes(self.thing) @ np.array(self.reference)
        off, yaw = look.hand - grip.at, grip.yaw
        away = _flat(point - (look.at(self.inside) if self.inside else target))
        if away < self.near and point[2] < target[2] + 0.012:  # it is there
            if np.linalg.norm(off) > 0.06:
                return None
            opened = look.opening > min(WIDE_OPEN, grip.width + 0.025)
            to = look.hand + vector(0, 0, 0.05 if opened else 0.002)  # straight up, or the fingers would tip it over
            if self.inside and not opened:  # not onto its wall
                to[:2] += (target - point)[:2]
            return Move(to, _hand_yaw(look) if self.turned else yaw, OPEN, PLACE, grip.tilt)
        if np.linalg.norm(off) < 0.03 and grip.width - 0.008 < look.opening < grip.width + 0.006:
            return self._bring(look, grip, target, point)
        left = _turn_left(look, yaw, grip.tilt)
        slack = _grasp_slack(look)
        if _flat(off) < slack and abs(off[2]) < slack and left < 0.2:
            if look.opening > WIDE_OPEN or _closing(look):
                return Move(grip.at, yaw, CLOSE, GRASP, grip.tilt, speed=0.5)
            return Move(grip.at + vector(0, 0, 0.05), yaw, OPEN, REACH, grip.tilt)  # closed on nothing, or too wide
        slack = 0.025 if off[2] < 0.07 else 0.006  # once it is low a neighbour that stands close is pushed aside
        wrong = max(0.0, _flat(off) - slack) + 0.06 * max(0.0, left - 0.1)
        to = grip.at + vector(0, 0, min(0.10, 3.0 * wrong))
        if look.opening < 0.06:  # open before going down
            to[2] = max(to[2], grip.at[2] + 0.04)
        if _flat(off) > 0.05:
            to[2] = max(to[2], self.travel)
            if look.hand[2] < self.travel - 0.04:  # rise before crossing
                to[:2] = look.hand[:2] + 0.15 * (to[:2] - look.hand[:2])
        return Move(to, yaw, OPEN, REACH, grip.tilt, speed=1.0 if wrong > 0.02 else 0.6)

    def _bring(self, look: Look, grip: Grip, target: np.ndarray, point: np.ndarray) -> Move:
        away = _flat(point - target)
        to = look.hand + (target - point)
        yaw = 0.0  # not the thing's, which turns with the hand
        if self.turned:
            yaw = min((-RIGHT_ANGLE, RIGHT_ANGLE), key=lambda end: abs(end - _hand_yaw(look)))
        left = _turn_left(look, yaw, grip.tilt)
        if away < self.exact and left < 0.12:
            return Move(to - vector(0, 0, 0.01), yaw, CLOSE, PLACE, grip.tilt, speed=self.slow)
        height = to[2] + 6.0 * max(0.0, away - 0.6 * self.exact) + 0.3 * max(0.0, left - 0.1)
        to[2] = min(max(height, to[2]), self.carry)
        if away > 0.05 and look.hand[2] < self.carry - 0.03:  # rise before crossing
            to = np.array([*(look.hand[:2] + 0.05 * (to[:2] - look.hand[:2])), self.carry])
            yaw = yaw if not self.turned or look.hand[2] > self.carry - 0.08 else _hand_yaw(look)
        return Move(to, yaw, CLOSE, CARRY, grip.tilt, speed=0.8 if away > 0.04 else 0.5)


def on(place: str, x: float, y: float, z: float) -> Callable[[Look], np.ndarray]:
    return lambda look: look.at(place) + vector(x, y, z)


def into_basket(thing: str, grip: Callable[[Look, str], Grip], x: float, y: float, z: float) -> Pick:
    """Let go so far off the basket's middle and above its bottom, the fingers still above its rim."""
    return Pick(thing, grip, on("basket", x, y, z), 0.66, 0.70, near=0.06, inside="basket", exact=0.006)


# ------------------------------------------------------------------------------------------------- knob, drawer, door


def turn_knob(look: Look) -> Move | None:
    """Grip the knob's bar, turn it until it is well past its switch, let go."""
    angle = look.joints[0]
    middle = look.at("knob") + _turned(vector(-0.006, 0.002, 0.040), angle)
    off = look.hand - middle
    if angle > 0.75:
        if np.linalg.norm(off) > 0.06 or look.opening > 0.05:
            return None
        return Move(look.hand, _hand_yaw(look), OPEN, PLACE)
    yaw = angle if angle < 1 else angle - np.pi
    if np.linalg.norm(off) < 0.025 and look.opening < 0.031:
        return Move(middle, yaw + 0.35, CLOSE, CARRY)
    left = _turn_left(look, yaw)
    if np.linalg.norm(off) < _grasp_slack(look) and left < 0.2:
        return Move(middle, yaw, CLOSE, GRASP, speed=0.5)
    wrong = max(0.0, _flat(off) - 0.006) + 0.06 * max(0.0, left - 0.1)
    return Move(middle + vector(0, 0, min(0.08, 3.0 * wrong)), yaw, OPEN, REACH, speed=1.0 if wrong > 0.02 else 0.6)


def push_drawer(look: Look) -> Move | None:
    """Push the handle with the closed fingers, the hand tilted away from the cabinet."""
    if look.joints[1] > 0.002:
        return None
    tilt, drawer = 0.6, look.at("drawer")
    handle, height = np.array([drawer[0] - 0.006, drawer[1] - 0.121]), 0.95
    aside, behind = abs(look.hand[0] - handle[0]), handle[1] - look.hand[1]
    left = _turn_left(look, -RIGHT_ANGLE, tilt)
    if aside < 0.025 and abs(look.hand[2] - height) < 0.025 and -0.02 < behind < 0.12 and left < 0.3:
        return Move(np.array([handle[0], look.hand[1] + 0.03, height]), -RIGHT_ANGLE, CLOSE, CARRY, tilt)
    start = np.array([handle[0], handle[1] - 0.075])
    wrong = _flat(look.hand[:2] - start) - 0.015 + 0.06 * max(0.0, left - 0.15)
    to = np.array([*start, height + float(np.clip(3.0 * wrong, 0.0, 0.14))])
    if look.hand[2] < 1.04 and wrong > 0.05:  # out of the drawer first
        to = np.array([look.hand[0], look.hand[1], 1.10])
    return Move(to, -RIGHT_ANGLE, CLOSE, REACH, tilt)


OVEN_FLOOR, OVEN_TILT = 0.944, 0.8


def mug_into_oven(look: Look) -> Move | None:
    """By the handle, with the hand tilted; along the front of the oven, between its door and its wall, and in."""
    mug_at, axes = look.at("yellow_mug"), look.axes("yellow_mug")
    middle = mug_at + axes @ np.array([-0.0182, 0.0, 0.0])
    oven, door = look.at("microwave"), look.at("door")
    point = np.array([middle[0], middle[1], mug_at[2]])
    grip = np.array([middle[0], middle[1] - 0.066, mug_at[2] + 0.074])
    off = look.hand - grip
    inside = abs(point[0] - oven[0]) < 0.09 and point[1] > oven[1] - 0.05
    if inside and point[2] < OVEN_FLOOR + 0.010:
        if look.opening < 0.035 and np.linalg.norm(off) < 0.05:
            return Move(look.hand, -RIGHT_ANGLE, OPEN, PLACE, OVEN_TILT)
        if np.linalg.norm(off) < 0.14 and look.joints[2] < -1.2:  # back out, while the door is open
            to = look.hand + vector(0.0, -0.08, 0.0)
            return Move(to, -RIGHT_ANGLE, OPEN, PLACE, OVEN_TILT)
        return None
    tip = door[0] + 0.26 * np.cos(look.joints[2])  # of the open door
    lane = float(np.clip(tip + 0.125, oven[0] - 0.03, oven[0] + 0.006))
    if np.linalg.norm(off) < 0.03 and look.opening < 0.022:
        lifted = OVEN_FLOOR + 0.015
        to = look.hand.copy()
        to[2] += lifted - point[2]
        if inside and point[1] > oven[1] - 0.028:
            to[2] = look.hand[2] - 0.012
            return Move(to, -RIGHT_ANGLE, CLOSE, PLACE, OVEN_TILT, speed=0.4)
        if abs(point[2] - lifted) < 0.010:
            to[0] += lane - point[0]
            if abs(lane - point[0]) < 0.015:
                to[1] += oven[1] - 0.02 - point[1]
            elif point[1] > oven[1] - 0.16:  # off the lane and already between: back
                to[1] -= 0.03
        return Move(to, -RIGHT_ANGLE, CLOSE, CARRY, OVEN_TILT, speed=0.6)
    left = _turn_left(look, -RIGHT_ANGLE, OVEN_TILT)
    if np.linalg.norm(off) < _grasp_slack(look) and left < 0.2:
        return Move(grip, -RIGHT_ANGLE, CLOSE, GRASP, OVEN_TILT, speed=0.5)
    approach = np.array([0.0, np.sin(OVEN_TILT), -np.cos(OVEN_TILT)])
    along = float(off @ approach)  # negative: still before the mug
    across = off - along * approach
    wrong = max(0.0, float(np.linalg.norm(across)) - 0.006) + 0.06 * max(0.0, left - 0.1)
    to = grip - approach * min(0.10, 3.0 * wrong)
    if _flat(off) > 0.16 and look.hand[2] < 1.14:
        to = np.array([look.hand[0], look.hand[1], 1.17])
    return Move(to, -RIGHT_ANGLE, OPEN, REACH, OVEN_TILT, speed=1.0 if wrong > 0.02 else 0.6)


def shut_oven(look: Look) -> Move | None:
    """Push the door along its arc with the closed fingers, from outside."""
    hinge, angle, height, reach = look.at("door"), look.joints[2], 1.085, 0.18

    def on_door(q: float, before: float) -> np.ndarray:
        along, outwards = np.array([np.cos(q), np.sin(q)]), np.array([np.sin(q), -np.cos(q)])
        return np.asarray(hinge[:2] + reach * along + before * outwards)

    outwards = np.array([np.sin(angle), -np.cos(angle)])
    before = float((look.hand[:2] - hinge[:2]) @ outwards)
    along = float((look.hand[:2] - hinge[:2]) @ np.array([np.cos(angle), np.sin(angle)]))
    if abs(look.hand[2] - height) < 0.04 and -0.02 < before < 0.13 and 0.10 < along < 0.27:
        ahead = on_door(min(angle + 0.35, 0.25), 0.030)
        return Move(np.array([*ahead, height]), 0.0, CLOSE, CARRY)
    start = on_door(angle, 0.10)
    wrong = _flat(look.hand[:2] - start)
    to = np.array([*start, height if wrong < 0.04 else 1.22])
    if look.hand[2] < 1.19 and wrong > 0.06:
        to[:2] = look.hand[:2]
    return Move(to, 0.0, CLOSE, REACH)


# ------------------------------------------------------------------------------------------------------ the ten tasks

STOVE_TOP = 0.0255 + 0.0662  # of a pot's origin above the cook region
# Two cans side by side need the basket's diagonal; two packets lie along its x axis.
PACKET = packet(0.0426, 0.003)
PARTS: tuple[tuple[Part, ...], ...] = (
    (
        into_basket("alphabet_soup", can, -0.022, -0.022, 0.155),
        into_basket("tomato_sauce", can, 0.022, 0.022, 0.155),
    ),
    (
        into_basket("cream_cheese", packet(0.0426, 0.003, 0.028), 0.0, -0.022, 0.130),
        into_basket("butter", packet(0.0396, 0.003), 0.0, 0.022, 0.130),
    ),
    (turn_knob, Pick("moka_pot", pot, on("stove", 0.01, 0.0, STOVE_TOP), 1.12, 1.20, near=0.03)),
    (Pick("bowl", bowl, on("drawer", 0.02, -0.018, -0.016), 1.05, 1.10, near=0.03, turned=True, slow=0.5), push_drawer),
    (
        Pick("white_mug", WHITE_MUG, on("plate", 0.0, 0.0, 0.006), 0.62, 0.70, near=0.02),
        Pick("yellow_mug", YELLOW_MUG, on("right_plate", 0.0, 0.0, 0.006), 0.62, 0.70, near=0.02),
    ),
    (
        Pick(
            "book",
            book,
            on("caddy", 0.002, -0.004, -0.033),
            1.10,
            1.20,
            reference=(-0.0005, -0.0122, 0.0),
            near=0.03,
            turned=True,
            slow=0.5,
        ),
    ),
    (
        Pick("pudding", packet(0.0464, 0.0), on("right_of_plate", 0.0, 0.025, 0.0415), 0.55, 0.56, near=0.02),
        Pick("white_mug", WHITE_MUG, on("plate", 0.0, 0.0, 0.006), 0.60, 0.64, near=0.02),
    ),
    (
        into_basket("alphabet_soup", can, -0.022, -0.022, 0.155),
        into_basket("cream_cheese", PACKET, 0.0, 0.022, 0.130),
    ),
    (
        Pick("other_moka_pot", pot, on("stove", 0.048, 0.01, STOVE_TOP), 1.12, 1.20, near=0.025),
        Pick("moka_pot", pot, on("stove", -0.048, 0.01, STOVE_TOP), 1.12, 1.20, near=0.025),
    ),
    (mug_into_oven, shut_oven),
)

assert len(PARTS) == len(TASKS)
assert all(len(parts) == len(task.goals) for parts, task in zip(PARTS, TASKS, strict=True))
