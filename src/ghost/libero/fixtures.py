"""What scripted experts do with LIBERO's fixtures: turn the stove's knob, shut the drawer, fill and shut the microwave.

Each function gives the next move from what is seen now, and None when it is done.
"""

import math

import numpy as np

from ghost.libero.hand import CLOSE, OPEN, RIGHT_ANGLE, Move, Phase, angle_to, approach, grasp_slack, in_plane, vector
from ghost.libero.tasks import Look

OVEN_FLOOR, OVEN_TILT = 0.944, 0.8


def turn_knob(look: Look) -> Move | None:
    """Grip the knob's bar, turn it well past its switch, let go."""
    angle = look.joints[0]
    sin, cos = math.sin(angle), math.cos(angle)
    middle = look.at("knob") + vector(cos * -0.006 - sin * 0.002, sin * -0.006 + cos * 0.002, 0.040)  # of the bar
    off = look.hand - middle
    if angle > 0.75:
        if np.linalg.norm(off) > 0.06 or look.opening > 0.05:
            return None
        return Move(look.hand, look.hand_yaw, OPEN, Phase.PLACE)
    yaw = angle if angle < 1 else angle - np.pi
    if np.linalg.norm(off) < 0.025 and look.opening < 0.031:
        return Move(middle, yaw + 0.35, CLOSE, Phase.CARRY)
    left = angle_to(look, yaw)
    if np.linalg.norm(off) < grasp_slack(look) and left < 0.2:
        return Move(middle, yaw, CLOSE, Phase.GRASP, speed=0.5)
    error, speed = approach(in_plane(off), 0.006, left)
    return Move(middle + vector(0, 0, min(0.08, 3.0 * error)), yaw, OPEN, Phase.REACH, speed=speed)


def push_drawer(look: Look) -> Move | None:
    """Push the handle with the closed fingers, the hand tilted away from the cabinet."""
    if look.joints[1] > 0.002:
        return None
    tilt, drawer = 0.6, look.at("drawer")
    handle, height = np.array([drawer[0] - 0.006, drawer[1] - 0.121]), 0.95
    aside, behind = abs(look.hand[0] - handle[0]), handle[1] - look.hand[1]
    left = angle_to(look, -RIGHT_ANGLE, tilt)
    if aside < 0.025 and abs(look.hand[2] - height) < 0.025 and -0.02 < behind < 0.12 and left < 0.3:
        return Move(vector(handle[0], look.hand[1] + 0.03, height), -RIGHT_ANGLE, CLOSE, Phase.CARRY, tilt)
    start = np.array([handle[0], handle[1] - 0.075])
    wrong = in_plane(look.hand[:2] - start) - 0.015 + 0.06 * max(0.0, left - 0.15)
    to = np.array([*start, height + float(np.clip(3.0 * wrong, 0.0, 0.14))])
    if look.hand[2] < 1.04 and wrong > 0.05:  # out of the drawer first
        to = vector(look.hand[0], look.hand[1], 1.10)
    return Move(to, -RIGHT_ANGLE, CLOSE, Phase.REACH, tilt)


def mug_into_oven(look: Look) -> Move | None:
    """Hold the mug by its handle with a tilted hand, go along the oven's front, between door and wall, and in."""
    mug_at, axes = look.at("yellow_mug"), look.axes("yellow_mug")
    middle = mug_at + axes @ np.array([-0.0182, 0.0, 0.0])
    oven, door = look.at("microwave"), look.at("door")
    point = vector(middle[0], middle[1], mug_at[2])
    grip = vector(middle[0], middle[1] - 0.066, mug_at[2] + 0.074)
    off = look.hand - grip
    inside = abs(point[0] - oven[0]) < 0.09 and point[1] > oven[1] - 0.05
    if inside and point[2] < OVEN_FLOOR + 0.010:
        if look.opening < 0.035 and np.linalg.norm(off) < 0.05:
            return Move(look.hand, -RIGHT_ANGLE, OPEN, Phase.PLACE, OVEN_TILT)
        if np.linalg.norm(off) < 0.14 and look.joints[2] < -1.2:  # back out, while the door is open
            return Move(look.hand + vector(0.0, -0.08, 0.0), -RIGHT_ANGLE, OPEN, Phase.PLACE, OVEN_TILT)
        return None
    if np.linalg.norm(off) < 0.03 and look.opening < 0.022:
        return _carry_in(look, point, oven, door, inside)
    left = angle_to(look, -RIGHT_ANGLE, OVEN_TILT)
    if np.linalg.norm(off) < grasp_slack(look) and left < 0.2:
        return Move(grip, -RIGHT_ANGLE, CLOSE, Phase.GRASP, OVEN_TILT, speed=0.5)
    path = np.array([0.0, np.sin(OVEN_TILT), -np.cos(OVEN_TILT)])  # towards the handle
    across = off - float(off @ path) * path
    error, speed = approach(float(np.linalg.norm(across)), 0.006, left)
    to = grip - path * min(0.10, 3.0 * error)
    if in_plane(off) > 0.16 and look.hand[2] < 1.14:
        to = vector(look.hand[0], look.hand[1], 1.17)
    return Move(to, -RIGHT_ANGLE, OPEN, Phase.REACH, OVEN_TILT, speed=speed)


def _carry_in(look: Look, point: np.ndarray, oven: np.ndarray, door: np.ndarray, inside: bool) -> Move:
    """With the mug, whose bottom is at `point`: lift it, go into the lane beside the open door, then in and down."""
    tip = door[0] + 0.26 * np.cos(look.joints[2])  # of the open door
    lane = float(np.clip(tip + 0.125, oven[0] - 0.03, oven[0] + 0.006))
    lifted = OVEN_FLOOR + 0.015
    to = look.hand.copy()
    to[2] += lifted - point[2]
    if inside and point[1] > oven[1] - 0.028:
        to[2] = look.hand[2] - 0.012
        return Move(to, -RIGHT_ANGLE, CLOSE, Phase.PLACE, OVEN_TILT, speed=0.4)
    if abs(point[2] - lifted) < 0.010:
        to[0] += lane - point[0]
        if abs(lane - point[0]) < 0.015:
            to[1] += oven[1] - 0.02 - point[1]
        elif point[1] > oven[1] - 0.16:  # off the lane and already between: back
            to[1] -= 0.03
    return Move(to, -RIGHT_ANGLE, CLOSE, Phase.CARRY, OVEN_TILT, speed=0.6)


def shut_oven(look: Look) -> Move | None:
    """Push the door along its arc with the closed fingers, from outside."""
    hinge, angle, height, reach = look.at("door"), look.joints[2], 1.085, 0.18

    def axes(q: float) -> tuple[np.ndarray, np.ndarray]:
        """Along the door at angle q, and outwards."""
        return np.array([np.cos(q), np.sin(q)]), np.array([np.sin(q), -np.cos(q)])

    def on_door(q: float, before: float) -> np.ndarray:
        along, outwards = axes(q)
        return np.asarray(hinge[:2] + reach * along + before * outwards)

    along, before = (float((look.hand[:2] - hinge[:2]) @ axis) for axis in axes(angle))
    if abs(look.hand[2] - height) < 0.04 and -0.02 < before < 0.13 and 0.10 < along < 0.27:
        ahead = on_door(min(angle + 0.35, 0.25), 0.030)
        return Move(np.array([*ahead, height]), 0.0, CLOSE, Phase.CARRY)
    start = on_door(angle, 0.10)
    wrong = in_plane(look.hand[:2] - start)
    to = np.array([*start, height if wrong < 0.04 else 1.22])
    if look.hand[2] < 1.19 and wrong > 0.06:
        to[:2] = look.hand[:2]
    return Move(to, 0.0, CLOSE, Phase.REACH)
