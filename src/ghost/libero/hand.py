"""How a scripted expert moves the hand: from a wanted pose to an action, and what it reads off a look.

Yaw 0 has the fingers along the world's y. The hand points down. A tilt is about the world's x, after the yaw. Heights
and offsets are in metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from ghost.libero.tasks import Look

REACH, GRASP, CARRY, PLACE = range(4)
OPEN, CLOSE = -1.0, 1.0
WIDE_OPEN = 0.072  # the fingers open to 0.08
RIGHT_ANGLE = np.pi / 2


@dataclass(frozen=True)
class Move:
    """Where an expert wants the hand, and how it goes there."""

    to: np.ndarray  # [3]
    yaw: float
    gripper: float
    phase: int  # REACH, GRASP, CARRY or PLACE
    tilt: float = 0.0
    speed: float = 1.0  # of the largest component; 1 is 5 cm a step


def action(look: Look, move: Move) -> np.ndarray:
    """The action [7] towards a move."""
    steps = (move.to - look.hand) / 0.05
    largest = np.abs(steps).max()
    if largest > move.speed:
        steps = steps * (move.speed / largest)
    turn = turn_to(look, move.yaw, move.tilt)
    return np.concatenate([steps, np.clip(turn / 0.5, -0.5, 0.5), [move.gripper]])


def turn_to(look: Look, yaw: float, tilt: float = 0.0) -> np.ndarray:
    """The rotation vector [3] from the hand to Rx(tilt) Rz(yaw) D, where D at yaw 0 has the columns y, x and -z."""
    sin, cos, s, c = math.sin(yaw), math.cos(yaw), math.sin(tilt), math.cos(tilt)
    wanted = np.array([[-sin, cos, 0.0], [c * cos, c * sin, s], [s * cos, s * sin, -c]])
    quat, turn = np.empty(4), np.empty(3)
    mujoco.mju_mat2Quat(quat, (wanted @ look.rotation.T).ravel())
    mujoco.mju_quat2Vel(turn, quat, 1.0)
    return turn


def angle_to(look: Look, yaw: float, tilt: float = 0.0) -> float:
    """The angle between the hand and this rotation."""
    return float(np.linalg.norm(turn_to(look, yaw, tilt)))


def hand_yaw(look: Look) -> float:
    """The yaw of the hand: its fingers lie along Rz(yaw) e_y = (-sin yaw, cos yaw)."""
    return float(np.arctan2(-look.rotation[0, 0], look.rotation[1, 0]))


def yaw_along(direction: np.ndarray) -> float:
    """The yaw in [-π/2, π/2) that has the fingers along a direction."""
    yaw = np.arctan2(-direction[0], direction[1])
    return float((yaw + RIGHT_ANGLE) % np.pi - RIGHT_ANGLE)


def closing(look: Look) -> bool:
    return bool(look.finger_speed[0] - look.finger_speed[1] < -0.02)


def grasp_slack(look: Look) -> float:
    """How far off the hand may be when it closes. Once the fingers move it may be more, or a push would reopen them."""
    return 0.02 if closing(look) else 0.012


def approach_error(away: float, slack: float, angle: float) -> float:
    """How wrong the hand is before it goes down: its distance beyond the slack, and its angle as a distance."""
    return max(0.0, away - slack) + 0.06 * max(0.0, angle - 0.1)


def approach_speed(error: float) -> float:
    return 1.0 if error > 0.02 else 0.6


def vector(x: float, y: float, z: float) -> np.ndarray:
    return np.array([x, y, z])


def in_plane(offset: np.ndarray) -> float:
    """The length of an offset in the plane of the table."""
    return float(np.hypot(offset[0], offset[1]))
