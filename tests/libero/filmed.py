"""A small filmed data set of LIBERO as public ones are: written without our conventions, so that these can be wrong.

    MUJOCO_GL=osmesa python filmed.py <folder> <version> <task> <episodes> [<pixels>]

Scripted experts act undisturbed, so what is recorded was executed. As on the hub: two cameras whose pictures are
robosuite's, turned by 180 degrees; hand, axis-angle and fingers by robosuite's own sensors; IPEC's gripper, 1 for an
open hand and 0 for a closed one; no phases. The simulation's own state at each step is in simulation.npz beside it.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from ghost.data.lerobot_writer import Recording
from ghost.libero import environment as simulation
from ghost.libero.assets import primitive_assets
from ghost.libero.experts import expert
from ghost.libero.stepping import environment
from ghost.libero.tasks import TASKS
from lerobot_v2 import write_version

CAMERAS = {"image": "agentview", "wrist_image": "robot0_eye_in_hand"}
LONGEST = 300


def act(env, task: int, seed: int, *, seen: bool) -> tuple[Recording, dict[str, np.ndarray]]:
    """One episode of the expert, and the simulation's state [S + 1, ...] before every step and at the end."""
    from robosuite.utils.transform_utils import quat2axisangle

    env.reset(None, seed)
    rows, views, states = [], {name: [] for name in CAMERAS if seen}, [_state(env)]
    phases = []
    while not env.success():
        sensed = env._libero._get_observations(force_update=True)
        vector = quat2axisangle(sensed["robot0_eef_quat"].copy())
        intent = expert(task, env.look())
        recorded = intent.action.copy()
        recorded[6] = (1 - recorded[6]) / 2
        rows.append((np.concatenate([sensed["robot0_eef_pos"], vector, sensed["robot0_gripper_qpos"]]), recorded))
        phases.append(intent.phase)
        for name, film in views.items():
            bottom_up = env.render(CAMERAS[name])[::-1]  # as robosuite has it
            film.append(bottom_up[::-1, ::-1])
        env.step(intent.action)
        states.append(_state(env))
        if len(rows) > LONGEST:
            raise AssertionError(f"the expert did not end task {task} from seed {seed}")
    state, action = (np.stack(column).astype(np.float32) for column in zip(*rows, strict=True))
    videos = {f"observation.images.{name}": np.stack(film) for name, film in views.items()}
    kept = {key: np.stack([one[key] for one in states]) for key in states[0]}
    columns = {"observation.state": state, "action": action}
    return Recording(TASKS[task].instruction, columns, videos), {**kept, "phase": np.array(phases)}


def _state(env) -> dict[str, np.ndarray]:
    placed = {"body_pos": env.model.body_pos.copy(), "body_quat": env.model.body_quat.copy()}
    return {"qpos": env.data.qpos.copy(), "qvel": env.data.qvel.copy(), "gripper": np.array(env._gripper), **placed}


def set_state(env, states: dict[str, np.ndarray], step: int) -> None:
    """Put the simulation where it was at a recorded step."""
    import mujoco

    env.model.body_pos[:], env.model.body_quat[:] = states["body_pos"][step], states["body_quat"][step]
    env.data.qpos[:], env.data.qvel[:] = states["qpos"][step], states["qvel"][step]
    env._gripper, env._goal_rotation = float(states["gripper"][step]), None
    mujoco.mj_forward(env.model, env.data)


def write_filmed(
    folder: Path, version: str, task: int, episodes: int, *, seen: bool = True, first_seed: int = 100
) -> Path:
    env = environment(task, primitive_assets())
    made = [act(env, task, first_seed + number, seen=seen) for number in range(episodes)]
    write_version(version, folder, [recording for recording, _ in made], fps=20, robot="franka")
    arrays = {f"{number}/{key}": value for number, (_, states) in enumerate(made) for key, value in states.items()}
    np.savez_compressed(folder.with_suffix(".npz"), **arrays)
    return folder


def read_states(folder: Path, episode: int) -> dict[str, np.ndarray]:
    with np.load(folder.with_suffix(".npz")) as file:
        return {name.partition("/")[2]: file[name] for name in file.files if name.partition("/")[0] == str(episode)}


if __name__ == "__main__":
    place, form, of_task, number, *pixels = sys.argv[1:]
    if pixels:
        simulation.IMAGE = int(pixels[0])
    write_filmed(Path(place), form, int(of_task), int(number))
