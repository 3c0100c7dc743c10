"""Pick and place by a scripted expert: how it grips each kind of thing, and how it brings a thing to its place."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ghost.libero.hand import CLOSE, OPEN, RIGHT_ANGLE, Move, Phase, angle_to, approach, grasp_slack, in_plane, vector
from ghost.libero.tasks import Look

WIDE_OPEN = 0.072  # the fingers open to 0.08


@dataclass(frozen=True)
class Grip:
    """How a thing is held."""

    at: np.ndarray  # [3] between the fingertips
    yaw: float
    width: float  # between the fingers when they hold it


Gripping = Callable[[Look, str], Grip]


def yaw_along(direction: np.ndarray) -> float:
    """The yaw in [-π/2, π/2) that has the fingers along a direction."""
    yaw = np.arctan2(-direction[0], direction[1])
    return float((yaw + RIGHT_ANGLE) % np.pi - RIGHT_ANGLE)


def can(look: Look, name: str) -> Grip:
    """An upright can from above, near its top. A lying one across."""
    axis = look.axes(name)[:, 1]
    if abs(axis[2]) > 0.7:
        return Grip(look.at(name) + vector(0, 0, 0.010), 0.0, 0.062)
    return Grip(look.at(name), yaw_along(np.array([-axis[1], axis[0]])), 0.062)


def packet(width: float, lift: float, shift: float = 0.0) -> Gripping:
    """A flat box, across its shorter side. `shift` is off its middle, towards larger x, if a neighbour stands close."""

    def grip(look: Look, name: str) -> Grip:
        long, short = look.axes(name)[:, 0], look.axes(name)[:, 1]
        return Grip(look.at(name) + shift * np.sign(long[0]) * long + vector(0, 0, lift), yaw_along(short), width)

    return grip


def mug(side: float, centre: tuple[float, float], radius: float, top: float, wall: float) -> Gripping:
    """A mug by its rim, on the side away from its handle (`side` of its local x axis)."""

    def grip(look: Look, name: str) -> Grip:
        axes = look.axes(name)
        out = side * axes[:, 0]
        at = look.at(name) + axes @ np.array([*centre, 0.0]) + radius * out
        return Grip(np.array([at[0], at[1], look.at(name)[2] + top - 0.02]), yaw_along(out), wall)

    return grip


def bowl(look: Look, name: str) -> Grip:
    """A bowl by its rim, on the robot's side, with the fingers along x."""
    return Grip(look.at(name) + vector(-0.0475, 0.0, 0.034), -RIGHT_ANGLE, 0.007)


def pot(look: Look, name: str) -> Grip:
    """A pot by the knob of its lid, 7 mm below the top."""
    return Grip(look.at(name) + look.axes(name) @ np.array([0.0, -0.0013, 0.0787]), 0.0, 0.012)


def book(look: Look, name: str) -> Grip:
    """A book across its thickness, with the yaw from which the hand turns to ±90 degrees most easily."""
    axes = look.axes(name)
    yaw = yaw_along(axes[:, 0])
    options = [
        (max(abs(start), RIGHT_ANGLE) + 0.3 * abs(end - start), start)
        for start in (yaw, yaw - np.pi, yaw + np.pi)
        for end in (-RIGHT_ANGLE, RIGHT_ANGLE)
        if abs(start) <= 1.75 and abs(end - start) < 0.75 * np.pi
    ]
    return Grip(look.at(name) + axes @ np.array([-0.0005, -0.0122, 0.112]), min(options)[1], 0.0286)


@dataclass(frozen=True)
class Pick:
    """Bring a thing to a place: move over it, down, close; up, across, down, open."""

    thing: str
    grip: Gripping
    place: Callable[[Look], np.ndarray]  # [3] where the thing's reference point is let go
    travel: float  # height of the hand on its way to the thing
    carry: float  # and with the thing
    reference: tuple[float, float, float] = (0.0, 0.0, 0.0)  # in the thing's own frame
    near: float = 0.02  # how far off in the plane it may lie in the end
    inside: str = ""  # a basket, in which it may lie anywhere; `near` is then measured from the basket's middle
    exact: float = 0.012  # how far off it may be before it is put down
    turned: bool = False  # arrive with the fingers along x
    slow: float = 0.4  # speed when putting down

    def __call__(self, look: Look) -> Move | None:
        """The next move; None when the thing is in its place and the hand has left it."""
        grip, target = self.grip(look, self.thing), self.place(look)
        point = look.at(self.thing) + look.axes(self.thing) @ np.array(self.reference)
        off, yaw = look.hand - grip.at, grip.yaw
        away = in_plane(point - (look.at(self.inside) if self.inside else target))
        if away < self.near and point[2] < target[2] + 0.012:  # it is there
            if np.linalg.norm(off) > 0.06:
                return None
            opened = look.opening > min(WIDE_OPEN, grip.width + 0.025)
            to = look.hand + vector(0, 0, 0.05 if opened else 0.002)  # straight up, or the fingers would tip it over
            if self.inside and not opened:  # not onto the basket's wall
                to[:2] += (target - point)[:2]
            return Move(to, look.hand_yaw if self.turned else yaw, OPEN, Phase.PLACE)
        if np.linalg.norm(off) < 0.03 and grip.width - 0.008 < look.opening < grip.width + 0.006:
            return self._bring(look, target, point)
        angle, slack = angle_to(look, yaw), grasp_slack(look)
        if in_plane(off) < slack and abs(off[2]) < slack and angle < 0.2:
            if look.opening > WIDE_OPEN or look.closing:
                return Move(grip.at, yaw, CLOSE, Phase.GRASP, speed=0.5)
            # it closed on nothing, or is open too far
            return Move(grip.at + vector(0, 0, 0.05), yaw, OPEN, Phase.REACH)
        slack = 0.025 if off[2] < 0.07 else 0.006  # once it is low it pushes a close neighbour aside
        error, speed = approach(in_plane(off), slack, angle)
        to = grip.at + vector(0, 0, min(0.10, 3.0 * error))
        if look.opening < 0.06:  # open before going down
            to[2] = max(to[2], grip.at[2] + 0.04)
        if in_plane(off) > 0.05:
            to[2] = max(to[2], self.travel)
            if look.hand[2] < self.travel - 0.04:  # rise before crossing
                to[:2] = look.hand[:2] + 0.15 * (to[:2] - look.hand[:2])
        return Move(to, yaw, OPEN, Phase.REACH, speed=speed)

    def _bring(self, look: Look, target: np.ndarray, point: np.ndarray) -> Move:
        away = in_plane(point - target)
        to = look.hand + (target - point)
        yaw = 0.0  # not the thing's yaw, which turns with the hand
        if self.turned:
            yaw = min((-RIGHT_ANGLE, RIGHT_ANGLE), key=lambda end: abs(end - look.hand_yaw))
        angle = angle_to(look, yaw)
        if away < self.exact and angle < 0.12:
            return Move(to - vector(0, 0, 0.01), yaw, CLOSE, Phase.PLACE, speed=self.slow)
        height = to[2] + 6.0 * max(0.0, away - 0.6 * self.exact) + 0.3 * max(0.0, angle - 0.1)
        to[2] = min(max(height, to[2]), self.carry)
        if away > 0.05 and look.hand[2] < self.carry - 0.03:  # rise before crossing
            to = np.array([*(look.hand[:2] + 0.05 * (to[:2] - look.hand[:2])), self.carry])
            yaw = yaw if not self.turned or look.hand[2] > self.carry - 0.08 else look.hand_yaw
        return Move(to, yaw, CLOSE, Phase.CARRY, speed=0.8 if away > 0.04 else 0.5)


def on(place: str, x: float, y: float, z: float) -> Callable[[Look], np.ndarray]:
    return lambda look: look.at(place) + vector(x, y, z)


def into_basket(thing: str, grip: Gripping, x: float, y: float, z: float) -> Pick:
    """Let go at this offset from the basket's bottom, with the fingers still above the rim."""
    return Pick(thing, grip, on("basket", x, y, z), 0.66, 0.70, near=0.06, inside="basket", exact=0.006)
