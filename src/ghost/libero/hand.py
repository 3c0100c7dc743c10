"""How a scripted expert moves the hand: from a wanted pose to an action, and what it reads off a look.

Yaw 0 has the fingers along the world's y. The hand points down. A tilt is about the world's x, after the yaw. Heights
and offsets are in metres.
"""

import math
from dataclasses import dataclass
from enum import IntEnum

import mujoco
import numpy as np

from ghost.libero.tasks import Look

OPEN, CLOSE = -1.0, 1.0
RIGHT_ANGLE = np.pi / 2


class Phase(IntEnum):
    REACH, GRASP, CARRY, PLACE = range(4)


@dataclass(frozen=True)
class Move:
    """Where an expert wants the hand, and how it goes there."""

    to: np.ndarray  # [3]
    yaw: float
    gripper: float
    phase: Phase
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


def grasp_slack(look: Look) -> float:
    """How far off the hand may be when it closes. Once the fingers move it may be more, or a push would reopen them."""
    return 0.02 if look.closing else 0.012


def approach(away: float, slack: float, angle: float) -> tuple[float, float]:
    """How wrong the hand is before it goes down (distance beyond the slack, and angle as a distance), and its speed."""
    error = max(0.0, away - slack) + 0.06 * max(0.0, angle - 0.1)
    return error, 1.0 if error > 0.02 else 0.6


def vector(x: float, y: float, z: float) -> np.ndarray:
    return np.array([x, y, z])


def in_plane(offset: np.ndarray) -> float:
    """The length of an offset in the plane of the table."""
    return float(np.hypot(offset[0], offset[1]))
