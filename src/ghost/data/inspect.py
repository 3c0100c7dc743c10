"""What is in a LeRobot data set, and a first configuration for it: `ghost inspect <data set>`."""

from pathlib import Path

import numpy as np
import yaml

from ghost.data.lerobot import ACTION, STATE, TASK, Columns, LeRobotDataset
from ghost.data.normalisation import Scale
from ghost.data.recorded import Settings, check_camera, choose_tasks, find_data_set, measure, tasks_of
from ghost.errors import GhostError
from ghost.files import write_text
from ghost.forms import shortened
from ghost.runs.outside import is_on_hub
from ghost.study.sources import NAME

HORIZON = 17  # the article's
TEST_SHARE = 0.2
FEW = 5  # episodes of a task that are too few for honest statistics


def inspect(path: str, names: Columns, revision: str = "") -> tuple[LeRobotDataset, str]:
    """The data set, and a description of it. What is missing or doubtful stands in its last lines."""
    is_on_hub(path, revision, "inspect", "--revision")
    source = LeRobotDataset.open(find_data_set(path, revision), names)
    lengths, every = source.lengths(), range(len(source))
    normalisation, _ = measure(source, every, Settings(path, state=names.state, action=names.action))
    info = source.info
    lines = [
        f"{path}: LeRobot {info['codebase_version']}, robot {info.get('robot_type') or 'not named'}, {source.fps:g} Hz",
        f"episodes  {len(source)} of {lengths.min()} to {lengths.max()} steps, {lengths.sum()} steps in all",
        "tasks",
    ]
    tasks = with_task(source)
    lines += [f"  {len(own):6} episodes  {shortened(task)}" for task, own in tasks.items()]
    lines.append("cameras" if source.cameras else "cameras   none")
    for camera in source.cameras:
        shape = "x".join(map(str, info["features"][camera].get("shape") or ["?"]))
        lines.append(f"  {camera}  {shape}  {'video' if camera in source.filmed else 'pictures in the data files'}")
    for kind, scale in (("state", normalisation.state), ("action", normalisation.action)):
        lines += [f"{kind:<9} {len(scale.low)} dimensions in column {getattr(names, kind)!r}", *_dimensions(scale)]
    groups = normalisation.action.groups
    lines += [f"  group {name}: {own[0]} to {own[-1]}" for name, own in groups.items()]
    return source, "\n".join([*lines, *(f"note      {line}" for line in notes(source, tasks))])


def with_task(source: LeRobotDataset) -> dict[str, list[int]]:
    """The episodes in which each task appears, in the order of the tasks. An episode may have several."""
    own = [tasks_of(source, index) for index in range(len(source))]
    found = {task: [index for index, tasks in enumerate(own) if task in tasks] for task in choose_tasks(source, ())}
    return {task: episodes for task, episodes in found.items() if episodes}


def _dimensions(scale: Scale) -> list[str]:
    return [
        f"  {number:3} {name}  {f'always {low:g}' if low == high else f'{low:g} to {high:g}'}"
        for number, (name, low, high) in enumerate(zip(scale.names, scale.low, scale.high, strict=True))
    ]


def notes(source: LeRobotDataset, tasks: dict[str, list[int]]) -> list[str]:
    """What is missing, and what a build would refuse or could not say much about."""
    found = []
    listed, announced = len(source), source.info.get("total_episodes", len(source))
    if listed != announced:
        found.append(f"meta/info.json announces {announced} episodes, the meta data list {listed}")
    if sum(map(len, tasks.values())) > listed:
        found.append("some episodes have several tasks; in a split they count for the task that they begin with")
    unused = dict.fromkeys(task for task in source.tasks.values() if task not in tasks)
    found += [f"task {task!r} has no episode; `tasks` must leave it out" for task in unused]
    found += [
        f"task {task!r} has one episode; `tasks` must leave it out" for task, own in tasks.items() if len(own) < 2
    ]
    found += [
        f"task {task!r} has {len(own)} episodes; intervals will be wide"
        for task, own in tasks.items()
        if 2 <= len(own) < FEW
    ]
    if not source.cameras:
        found.append("no camera: neither `backbone: pixels` nor `backbone: groot` can be used")
    if source.lengths().max() < HORIZON:
        found.append(f"no episode has {HORIZON} steps; choose a shorter horizon")
    if not source.modality:
        found.append("no meta/modality.json: action_groups can name groups of dimensions")
    for camera in source.cameras:
        try:
            check_camera(source, camera, range(len(source)))
        except GhostError as error:
            found.append(str(error))
    return found


def write_config(source: LeRobotDataset, path: str, revision: str, names: Columns, build: str) -> str:
    """Write a first config/<name>.yaml; returns what to do with it."""
    to = Path("config", f"{build}.yaml")
    if not NAME.fullmatch(build):
        raise GhostError(f"--write: the name of a build has small letters, digits and _, got {build!r}")
    if to.exists():
        raise GhostError(f"{to} is there already; choose another name, or remove it")
    tasks = [task for task, own in with_task(source).items() if len(own) > 1]
    if not tasks:
        raise GhostError(f"{source.folder}: no task has two episodes, so none can be trained on and tested")
    columns = {"state": (names.state, STATE), "action": (names.action, ACTION), "task": (names.task, TASK)}
    renamed = {key: given for key, (given, usual) in columns.items() if given != usual}
    groups = {
        name: [part["start"], part["end"]]
        for name, part in source.modality.get("action", {}).items()
        if part.get("original_key", names.action) == names.action and {"start", "end"} <= part.keys()
    }
    content = {
        "extends": "laptop",
        "demos": path if revision else str(Path(path).resolve()),
        **({"demos_revision": revision} if revision else {}),
        "backbone": "pixels" if source.cameras else "standin",
        "tasks": tasks,
        **({"cameras": list(source.cameras)} if source.cameras else {}),
        **({"action_groups": groups} if groups else {}),
        **({"columns": renamed} if renamed else {}),
        "normalisation": "limits",
        "horizon": int(min(HORIZON, np.max(source.lengths()))),
        "split": {"by": "episode", "test_share": TEST_SHARE},
    }
    head = "# Made by `ghost inspect`. docs/your-data.md explains the keys; `backbone: groot` takes GR00T N1.5.\n"
    write_text(to, head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))
    return f"wrote {to}; now: snakemake all --config scale={build}"
