"""How data sets of LIBERO write down what is seen and done, and the simulation read in the same way.

Public data sets agree on the state: position of the hand, its rotation as an axis-angle vector, the two finger joints,
as robosuite's sensors give them. They show the mirror image of the true view: robosuite's pictures are bottom-up, and
everybody turns them by 180 degrees. They differ in the names of the cameras and in the gripper's numbers. Get one of
these wrong and a policy that has learned well fails in the loop, hence one table.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from ghost.errors import GhostError, did_you_mean
from ghost.libero.environment import CAMERAS, Environment

D_STATE, D_ACTION = 8, 7
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

    def picture(self, env: Environment, column: str) -> np.ndarray:
        """What a camera of the data set would show now: [height, width, 3] uint8."""
        name = column.rsplit(".", 1)[-1]
        if name not in self.cameras:
            raise GhostError(f"no camera {name!r} in LIBERO{did_you_mean(name, self.cameras)}")
        image = env.render(self.cameras[name])
        return np.ascontiguousarray(image[:, ::-1]) if self.mirrored else image

    def command(self, action: np.ndarray) -> np.ndarray:
        """An action [7] of the data set as the simulation takes it: the gripper at -1 opens, at 1 closes."""
        moved = np.array(action, dtype=np.float64)
        moved[6] = (2 * moved[6] - self.opens - self.closes) / (self.closes - self.opens)
        return moved

    def closing(self, actions: np.ndarray) -> np.ndarray:
        """Whether each of the actions [S, 7] tells the hand to close [S]."""
        return np.abs(actions[:, 6] - self.closes) < np.abs(actions[:, 6] - self.opens)


_VIEWS = dict(zip(("image", "wrist_image"), CAMERAS, strict=True))
_NUMBERED = dict(zip(("image", "image2"), CAMERAS, strict=True))
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
        source="LIBERO's own HDF5 files",
    ),
}


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
    rotations = np.empty((len(states), 9))
    quat = np.empty(4)
    for vector, rotation in zip(states[:, 3:6].astype(np.float64), rotations, strict=True):
        angle = float(np.linalg.norm(vector))
        mujoco.mju_axisAngle2Quat(quat, vector / angle if angle else np.array([0.0, 0.0, 1.0]), angle)
        mujoco.mju_quat2Mat(rotation, quat)
    return states[:, :3], rotations.reshape(-1, 3, 3), states[:, 6] - states[:, 7]
