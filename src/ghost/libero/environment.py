"""One LIBERO-10 task as MuJoCo simulates it: LIBERO's scene, goal, init states and success check, OSC_POSE control.

    env = Environment(8, find_assets())
    env.reset(init_state=40, seed=0)  # None instead of 40: the seed draws the whole scene
    env.step(action)            # [7]: six for the pose, one for the gripper, each in [-1, 1]
    env.success()               # LIBERO's own check of the BDDL goal

LIBERO and robosuite build the model; we step it. In robosuite, a control step spends most of its time on a second and
third forward pass per substep and on observations that nobody reads. `control.py` is robosuite's OSC_POSE written out
(a test compares the two). We call it between the two halves of MuJoCo's step, which is three times as fast. Nothing
survives a reset, unlike the gripper's last command and the controller's stale pose in robosuite. So an episode depends
on task, init state, seed and actions alone.

LIBERO's own reset draws a scene with the seed: objects from the regions of the BDDL file, furniture within about a
centimetre, how far drawer and door stand open, and robosuite's noise on the joints of the arm. The official init states
were drawn in the same way. Such a state holds all of this but the furniture, which the seed places then, too.
"""

import contextlib
import hashlib
import importlib
import io
import logging
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import yaml

from ghost.errors import GhostError
from ghost.libero.assets import Assets, package_folder
from ghost.libero.control import command
from ghost.libero.tasks import JOINTS, TASKS, THINGS, Look, Task

CONTROL_HZ = 20
SUBSTEPS = 25
SETTLE_STEPS = 10  # after an init state is set, as in LIBERO's own evaluation
IMAGE = 256  # pixels, of a camera
GRIPPER_SPEED = 0.01  # per substep, as for robosuite's Panda gripper
STEP_M, STEP_RAD = 0.05, 0.5  # an action of 1
REST = np.array([0.0] * 6 + [-1.0])  # stay, with an open hand


class Environment:
    def __init__(self, task: int, assets: Assets) -> None:
        self.task = TASKS[task]
        self.assets = assets
        self.init_states = _init_states(self.task)  # [50, 1 + nq + nv]
        self._renderer: Any = None
        self._libero = self._build()
        self._bind()
        self._unplaced = self.model.body_pos.copy(), self.model.body_quat.copy()

    def _build(self) -> Any:
        return build(self.task, self.assets, seen=False)

    def _bind(self) -> None:
        """Find the parts of the simulation that is there now."""
        self.model: mujoco.MjModel = self._libero.sim.model._model
        self.data: mujoco.MjData = self._libero.sim.data._data
        robot = self._libero.robots[0]
        self._site = self.model.site(robot.controller.eef_name).id
        self._qpos = np.asarray(robot._ref_joint_pos_indexes)  # of the seven arm joints
        self._posture = np.zeros(len(self._qpos))
        fingers = [self.model.actuator(name).id for name in robot.gripper.actuators]
        ranges = [self.model.actuator_ctrlrange[finger].tolist() for finger in fingers]
        self._fingers = list(zip(fingers, (-1.0, 1.0), ranges, strict=True))  # the two close against each other
        self._finger_qpos = np.asarray(robot._ref_gripper_joint_pos_indexes)
        self._finger_qvel = np.asarray(robot._ref_gripper_joint_vel_indexes)
        self._mass = np.zeros((self.model.nv, self.model.nv))
        self._jacobian = np.zeros((6, self.model.nv))
        self._moving, self._turning = self._jacobian[:3], self._jacobian[3:]
        # MuJoCo's arrays stay where they are. To ask for each anew, 25 times a step, would cost a third of the physics.
        data = self.data
        self._ctrl, self._inertia = data.ctrl, data.qM
        self._hand, self._hand_rotation = data.site_xpos[self._site], data.site_xmat[self._site].reshape(3, 3)
        self._scene = (self._ctrl, self._jacobian, self._mass, data.qfrc_bias, data.qpos, data.qvel)
        motors, qvel = np.asarray(robot._ref_joint_actuator_indexes), np.asarray(robot._ref_joint_vel_indexes)
        limits = np.array(robot.torque_limits, dtype=np.float64)
        self._arm = (motors, self._qpos, qvel, limits, self._posture, self._hand, self._hand_rotation)
        self._things = [_find(name, data.site, data.body) for name in THINGS.values()]
        self._joints = [_find(name, data.joint) for name in JOINTS]

    def reset(self, init_state: int | None, seed: int) -> None:
        """Draw a scene with the seed; objects and arm are those of an official init state where one is named.

        The arm then rests for half a second. `start` is the digest of the scene before that.
        """
        qpos = self._draw(seed)
        placed = self.model.body_pos.copy(), self.model.body_quat.copy()
        mujoco.mj_resetData(self.model, self.data)
        self.model.body_pos[:], self.model.body_quat[:] = placed
        if init_state is None:
            self.data.qpos[:] = qpos
        else:
            values = self.init_states[init_state]
            self.data.time = values[0]
            self.data.qpos[:] = values[1 : 1 + self.model.nq]
            self.data.qvel[:] = values[1 + self.model.nq : 1 + self.model.nq + self.model.nv]
        self.start = self._digest()
        self._gripper = 0.0
        self._goal_rotation: np.ndarray | None = None
        self._posture[:] = self.data.qpos[self._qpos]
        mujoco.mj_forward(self.model, self.data)
        for _ in range(SETTLE_STEPS):
            self.step(REST)

    def _draw(self, seed: int) -> np.ndarray:
        """LIBERO's own reset moves the furniture of the model; returns the joint positions [nq]."""
        self.model.body_pos[:], self.model.body_quat[:] = self._unplaced  # samplers may look where furniture stands
        self._reset_libero(seed)
        return np.array(self.data.qpos)

    def _reset_libero(self, seed: int) -> None:
        state = np.random.get_state()
        np.random.seed(seed)  # LIBERO's placement draws from the global generator; nothing else of ours does
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self._libero.reset()
        finally:
            np.random.set_state(state)

    def _digest(self) -> str:
        """Of the scene: equal for scenes that are equal to a millionth of a metre, a radian or a metre a second."""
        parts = (self.data.qpos, self.data.qvel, self.model.body_pos, self.model.body_quat)
        rounded = [np.round(part, 6).astype(np.float64) + 0.0 for part in parts]  # + 0.0: -0.0 becomes 0.0
        return hashlib.sha256(b"".join(part.tobytes() for part in rounded)).hexdigest()[:16]

    def step(self, action: np.ndarray) -> None:
        """One control step of 50 ms."""
        action = np.clip(action, -1.0, 1.0)
        goal = self._hand + STEP_M * action[:3]
        if np.any(np.abs(action[3:6]) > 1e-9) or self._goal_rotation is None:
            self._goal_rotation = _rotation(STEP_RAD * action[3:6]) @ self._hand_rotation
        closing = GRIPPER_SPEED * float(np.sign(action[6]))
        for _ in range(SUBSTEPS):
            mujoco.mj_step1(self.model, self.data)
            self._drive_arm(goal, self._goal_rotation)
            self._gripper = min(1.0, max(-1.0, self._gripper + closing))
            for finger, sign, (bottom, top) in self._fingers:
                self._ctrl[finger] = (bottom + top) / 2 + sign * self._gripper * (top - bottom) / 2
            mujoco.mj_step2(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)  # poses and contacts of the new state

    def _drive_arm(self, goal: np.ndarray, rotation: np.ndarray) -> None:
        """Set the torques of the seven joints, towards a pose of the hand."""
        mujoco.mj_jacSite(self.model, self.data, self._moving, self._turning, self._site)
        mujoco.mj_fullM(self.model, self._mass, self._inertia)
        command(*self._scene, *self._arm, goal, rotation)

    def success(self) -> bool:
        return bool(self._libero._check_success())

    def look(self) -> Look:
        """What cameras and joint sensors would show, without noise."""
        things = np.zeros((len(THINGS), 3 + 6), np.float64)
        for row, thing in zip(things, self._things, strict=True):
            if thing is not None:
                row[:3], row[3:] = thing.xpos, thing.xmat.reshape(3, 3)[:, :2].T.ravel()
        joints = np.array([0.0 if joint is None else joint.qpos[0] for joint in self._joints])
        return Look(
            hand=self._hand.copy(),
            rotation=self._hand_rotation.copy(),
            fingers=self.data.qpos[self._finger_qpos].copy(),
            finger_speed=self.data.qvel[self._finger_qvel].copy(),
            things=things,
            joints=joints,
        )

    def render(self, camera: str, pixels: int = 0) -> np.ndarray:
        """An image [pixels, pixels, 3] uint8, or IMAGE; needs OpenGL (MUJOCO_GL=egl or osmesa without a display)."""
        if self._renderer is None or self._renderer.width != (pixels or IMAGE):
            sim = build(self.task, self.assets, seen=True).sim
            self._shown: tuple[mujoco.MjModel, mujoco.MjData] = sim.model._model, sim.data._data
            try:
                self._renderer = mujoco.Renderer(self._shown[0], pixels or IMAGE, pixels or IMAGE)
            except (ImportError, AttributeError, RuntimeError, mujoco.FatalError) as error:  # each backend has its own
                backend = os.environ.get("MUJOCO_GL", "")
                raise GhostError(f"no OpenGL for pictures (MUJOCO_GL={backend!r}): {error}") from None
            self._option = mujoco.MjvOption()
            self._option.geomgroup[0] = 0  # the shapes that touch; group 1 are those to be seen
            self._option.sitegroup[:] = 0  # robosuite hides its marks, too
        model, data = self._shown
        model.body_pos[:], model.body_quat[:] = self.model.body_pos, self.model.body_quat
        data.qpos[:] = self.data.qpos
        mujoco.mj_forward(model, data)
        self._renderer.update_scene(data, camera, self._option)
        return np.asarray(self._renderer.render())


def _rotation(vector: np.ndarray) -> np.ndarray:
    """The matrix of a rotation vector."""
    quat, matrix = np.empty(4), np.empty(9)
    angle = float(np.linalg.norm(vector))
    mujoco.mju_axisAngle2Quat(quat, vector / angle if angle else np.array([0.0, 0.0, 1.0]), angle)
    mujoco.mju_quat2Mat(matrix, quat)
    return matrix.reshape(3, 3)


def build(task: Task, assets: Assets, *, seen: bool, **options: Any) -> Any:
    """LIBERO's environment of a task, for its model, its placement and its success check.

    The meshes that are only seen, mostly the arm's, take nine tenths of the time to build. They are left out unless
    `seen`.
    """
    libero = import_libero()
    libero._assets_path_cache = str(assets.folder)  # LIBERO asks its hub otherwise
    from libero.libero.envs.bddl_base_domain import TASK_MAPPING
    from libero.libero.envs.bddl_utils import get_problem_info
    from robosuite import load_controller_config

    path = str(package_folder() / "bddl_files/libero_10" / f"{task.file}.bddl")
    domain = TASK_MAPPING[get_problem_info(path)["problem_name"]]

    class Felt(domain):  # type: ignore[misc, valid-type]
        def _initialize_sim(self, xml_string: str | None = None) -> None:
            super()._initialize_sim(_without_looks(xml_string or self.model.get_xml()))

    Felt.__name__ = domain.__name__  # LIBERO compares it with the BDDL file
    with contextlib.redirect_stdout(io.StringIO()):
        return (domain if seen else Felt)(
            path,
            robots=["Panda"],
            controller_configs=load_controller_config(default_controller="OSC_POSE"),
            use_camera_obs=False,
            has_renderer=False,
            has_offscreen_renderer=False,
            control_freq=CONTROL_HZ,
            horizon=10**9,
            ignore_done=True,
            # the noise of the arm's joints is as in the official init states
            **{"initialization_noise": "default", "hard_reset": False, **options},
        )


def _without_looks(xml: str) -> str:
    """The model with a dot for each mesh that touches nothing. Its physics is the same to the bit."""
    root = ElementTree.fromstring(xml)  # noqa: S314  # written by robosuite, which has parsed the assets
    for geom in root.iter("geom"):
        if geom.get("contype") == geom.get("conaffinity") == "0" and "mesh" in geom.attrib:
            del geom.attrib["mesh"]
            geom.set("type", "sphere")
            geom.set("size", "0.001")
    used = {geom.get("mesh") for geom in root.iter("geom")}
    for assets in root.iter("asset"):
        for mesh in assets.findall("mesh"):
            if mesh.get("name") not in used:
                assets.remove(mesh)
    return ElementTree.tostring(root, encoding="unicode")


@cache
def import_libero() -> Any:
    """Import the package without the question that it asks on stdin."""
    root = package_folder()
    folder = Path(tempfile.mkdtemp(prefix="ghost-libero-"))
    paths = {"benchmark_root": "", "bddl_files": "bddl_files", "init_states": "init_files", "datasets": "datasets"}
    config = {key: str(root / name) for key, name in {**paths, "assets": "assets"}.items()}
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    os.environ["LIBERO_CONFIG_PATH"] = str(folder)
    logging.getLogger("robosuite_logs").setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            package = importlib.import_module("libero.libero")
            importlib.import_module("libero.libero.envs")
    finally:
        (folder / "config.yaml").unlink()
        folder.rmdir()
    return package


def _init_states(task: Task) -> np.ndarray:
    """The 50 official init states [50, 1 + nq + nv]. Their file is a pickle; we run nothing from it."""
    import torch
    from numpy._core.multiarray import _reconstruct  # the pickle calls it to make an array

    path = package_folder() / "init_files/libero_10" / f"{task.file}.pruned_init"
    harmless: list[Any] = [_reconstruct, np.ndarray, np.dtype, np.dtypes.Float64DType]
    with torch.serialization.safe_globals([*harmless, (_reconstruct, "numpy.core.multiarray._reconstruct")]):
        return np.asarray(torch.load(path, weights_only=True))


def _find(name: str, *kinds: Callable[[str], Any]) -> Any:
    """MuJoCo's view of what has this name, which is of one of these kinds; None if it is not in this scene."""
    for kind in kinds:
        with contextlib.suppress(KeyError):
            return kind(name)
    return None
