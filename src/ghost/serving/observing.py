"""What a simulator asks of a policy server, read from messages: our own rollouts', or another harness's.

Our rollouts send what `Senses.sense` gave, as `raw`, and ask for whole chunks: their episode_start has `ghost` with the
seed of the episode. vla-eval's LIBERO sends its own names, `images` and `states`, at every step, and wants one action.
Its pictures are mirrored as in public data sets, its state is theirs, and its episode k of a task is our trial k with
env_seed 0: it starts from the same init state, and the policy draws from the same seed.

A policy of a lab's own data set gets `raw` as well, by the names of the columns and in the units of the recording.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ghost.data.lerobot import STATE
from ghost.errors import GhostError
from ghost.files import canonical
from ghost.forms import has_form, require
from ghost.libero.conventions import D_STATE
from ghost.libero.sensing import Raw, Senses
from ghost.libero.tasks import CAMERAS, trial_seeds

SEED = range(2**32)
VIEWS = dict(zip(CAMERAS, ("agentview", "wrist"), strict=True))  # the simulation's camera -> vla-eval's name
ACTIONS = {
    "position": {"name": "position", "dims": 3, "format": "delta_xyz", "range": [-1, 1]},
    "rotation": {"name": "rotation", "dims": 3, "format": "axis_angle", "range": [-3.15, 3.15]},
    "gripper": {"name": "gripper", "dims": 1, "format": "binary_close_positive", "range": [-1, 1]},
}
PICTURE = {"name": "image", "dims": 0, "format": "rgb_hwc_uint8"}
PROPRIOCEPTION = {"name": "state", "dims": D_STATE, "format": "eef_pos3_axisangle3_gripper2"}
LANGUAGE = {"name": "language", "dims": 0, "format": "language"}


def specifications(senses: Senses) -> dict[str, Any]:
    """What a harness must know: which observations to send, and what the actions mean."""
    if senses.convention.foreign:
        return _of_a_robot(senses)
    views = [VIEWS[senses.convention.cameras[camera.rsplit(".", 1)[-1]]] for camera in senses.cameras]
    wanted = {"send_wrist_image": "wrist" in views, "send_state": True, "quat_no_antipodal": True}
    seen = dict.fromkeys(views, PICTURE) | {"state": PROPRIOCEPTION, "language": LANGUAGE}
    return {"observation_params": wanted, "observation_spec": seen, "action_spec": ACTIONS}


def _of_a_robot(senses: Senses) -> dict[str, Any]:
    """The same for a lab's own robot: columns by the names of the data set, in its own units."""
    scales = {STATE: senses.state, "action": senses.action}
    vectors = {
        name: {"name": name, "dims": len(scale.names), "names": list(scale.names)}
        for name, scale in scales.items()
        if scale
    }
    seen = dict.fromkeys(senses.cameras, PICTURE) | {STATE: vectors[STATE], "language": LANGUAGE}
    return {"observation_spec": seen, "action_spec": {"action": vectors["action"]}}


def episode_of(payload: Mapping[str, Any]) -> tuple[int, bool]:
    """The seed of an episode that begins, and whether whole chunks are asked for."""
    if "ghost" in payload:
        require(payload["ghost"], {"seed": SEED}, "episode_start: ghost")
        return payload["ghost"]["seed"], True
    task: Any = payload.get("task")
    if has_form(task, {"task_id": SEED, "episode_idx": SEED}):
        return trial_seeds(0, task["task_id"], task["episode_idx"])[1], False
    named = {str(key): value for key, value in task.items()} if isinstance(task, dict) else {}
    return int.from_bytes(hashlib.sha256(canonical(named).encode()).digest()[:4], "big"), False


def observation_of(payload: Mapping[str, Any], senses: Senses) -> tuple[Raw, str]:
    """What is seen, by the columns of the data set, and the instruction."""
    require(payload.get("task_description"), str, "an observation: task_description")
    instruction = payload["task_description"]
    if "raw" in payload:
        require(payload["raw"], {str: np.ndarray}, "an observation: raw")
        return payload["raw"], instruction
    if senses.convention.foreign:
        raise GhostError(f"an observation has no raw: a map with {', '.join((STATE, *senses.cameras))}")
    if senses.convention.scripted:
        raise GhostError("this policy reads poses of the scene, which only our own simulators show")
    require(payload, {"images": {str: np.ndarray}, "states": np.ndarray}, "an observation")
    raw = {STATE: np.asarray(payload["states"], np.float32)}
    if raw[STATE].shape != (D_STATE,):
        raise GhostError(f"an observation: states must have {D_STATE} values, not {raw[STATE].shape}")
    for camera in senses.cameras:
        view = VIEWS[senses.convention.cameras[camera.rsplit(".", 1)[-1]]]
        picture = payload["images"].get(view)
        if picture is None or picture.ndim != 3 or picture.dtype != np.uint8:
            raise GhostError(f"an observation: images must have {view!r}, [height, width, 3] uint8")
        raw[camera] = picture if senses.convention.mirrored else np.ascontiguousarray(picture[:, ::-1])
    return raw, instruction
