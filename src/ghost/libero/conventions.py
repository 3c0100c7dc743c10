"""How data sets of LIBERO write down what is seen and done, and the simulation read in the same way.

Public data sets agree on the state: position of the hand, its rotation as an axis-angle vector, the two finger joints,
as robosuite's sensors give them. They show the mirror image of the true view: robosuite's pictures are bottom-up, and
everybody turns them by 180 degrees. They differ in the names of the cameras and in the gripper's numbers. Get one of
these wrong and a policy that has learned well fails in the loop, hence one table. Nothing here needs a simulator until
it is asked about one: a process that only serves a policy has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ghost.data.lerobot import STATE
from ghost.errors import GhostError, did_you_mean
from ghost.libero.tasks import CAMERAS

if TYPE_CHECKING:
    from ghost.libero.environment import Environment

D_STATE, D_ACTION = 8, 7
SCRIPTED = "ghost"  # the convention of our own experts' demonstrations
HAND = "robot0_right_hand"  # the body whose rotation robosuite calls that of the hand


@dataclass(frozen=True)
class Convention:
    cameras: Mapping[str, str]  # the last part of a column's name -> the simulation's camera
    opens: float  # the gripper's action for an open hand
    closes: float  # and for a closed one
    mirrored: bool = True
    state: str = "observation.state"  # names of the columns
    action: str = "action"
    source: str = ""  # data sets that are written so
    pixels: int = 0  # the side of a picture; 0: the simulation's own, 256
    noops: bool = False  # whether steps without any command are left in
    scripted: bool = False  # with our own state, and the poses of the scene
    foreign: bool = False  # not of LIBERO at all: state and actions are those of a lab's own robot

    def columns(self, env: Environment) -> dict[str, np.ndarray]:
        """State and scene as the data set would record them now, but for the pictures; float32."""
        return env.look().columns() if self.scripted else {STATE: proprioception(env).astype(np.float32)}

    def picture(self, env: Environment, column: str) -> np.ndarray:
        """What a camera of the data set would show now: [height, width, 3] uint8."""
        name = column.rsplit(".", 1)[-1]
        if name not in self.cameras:
            raise GhostError(f"no camera {name!r} in LIBERO{did_you_mean(name, self.cameras)}")
        image = env.render(self.cameras[name], self.pixels)
        return np.ascontiguousarray(image[:, ::-1]) if self.mirrored else image

    def command(self, actions: np.ndarray) -> np.ndarray:
        """Actions [..., 7] of the data set as the simulation takes them: the gripper at -1 opens, at 1 closes."""
        moved = np.array(actions, dtype=np.float64)
        if self.foreign:
            return moved
        moved[..., 6] = (2 * moved[..., 6] - self.opens - self.closes) / (self.closes - self.opens)
        return moved

    def closing(self, actions: np.ndarray) -> np.ndarray:
        """Whether each of the actions [S, 7] tells the hand to close [S]."""
        return np.abs(actions[:, 6] - self.closes) < np.abs(actions[:, 6] - self.opens)


_VIEWS = dict(zip(("image", "wrist_image"), CAMERAS, strict=True))
_NUMBERED = dict(zip(("image", "image2"), CAMERAS, strict=True))
_OWN = {camera: camera for camera in CAMERAS}
CONVENTIONS: Mapping[str, Convention] = {
    "ipec": Convention(_VIEWS, opens=1.0, closes=0.0, source="IPEC-COMMUNITY/libero_*_no_noops_*_lerobot"),
    "lerobot": Convention(_NUMBERED, opens=-1.0, closes=1.0, source="lerobot/libero, HuggingFaceVLA/libero"),
    "openpi": Convention(
        _VIEWS, opens=-1.0, closes=1.0, state="state", action="actions", source="physical-intelligence/libero"
    ),
    "hdf5": Convention(
        dict(zip(("agentview_rgb", "eye_in_hand_rgb"), CAMERAS, strict=True)),
        opens=-1.0,
        closes=1.0,
        pixels=128,
        noops=True,
        source="LIBERO's own HDF5 files",
    ),
    SCRIPTED: Convention(_OWN, opens=-1.0, closes=1.0, mirrored=False, scripted=True, source="ghost.libero.demos"),
}
FOREIGN = Convention({}, opens=-1.0, closes=1.0, foreign=True)


def find_convention(name: str) -> Convention:
    if name not in CONVENTIONS:
        raise GhostError(f"no convention {name!r} for LIBERO's data sets{did_you_mean(name, CONVENTIONS)}")
    return CONVENTIONS[name]


def proprioception(env: Environment) -> np.ndarray:
    """The state [8] that public data sets record: hand, axis-angle, finger joints."""
    look = env.look()
    w, *axis = env.data.body(HAND).xquat
    return np.concatenate([look.hand, axis_angle(np.array(axis), float(w)), look.fingers])


def axis_angle(axis: np.ndarray, w: float) -> np.ndarray:
    """robosuite's vector of a quaternion. It takes either sign of the quaternion as it is: the angle may exceed pi."""
    length = np.sqrt(max(0.0, 1.0 - min(1.0, w * w)))
    return np.zeros(3) if np.isclose(length, 0.0, atol=1e-9) else axis * 2.0 * np.arccos(np.clip(w, -1, 1)) / length


def hand_pose(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position [S, 3] and rotation [S, 3, 3] of the hand, and its opening [S] m, from states [S, 8]."""
    vectors = states[:, 3:6].astype(np.float64)
    angles = np.linalg.norm(vectors, axis=1)
    x, y, z = (vectors / np.where(angles > 0, angles, 1.0)[:, None]).T
    zero = np.zeros_like(x)
    cross = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)  # [S, 3, 3]
    sin, cos = np.sin(angles)[:, None, None], np.cos(angles)[:, None, None]
    return states[:, :3], np.eye(3) + sin * cross + (1 - cos) * (cross @ cross), states[:, 6] - states[:, 7]
