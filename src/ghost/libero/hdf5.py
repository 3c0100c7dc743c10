"""LIBERO's own files of human demonstrations, <task>_demo.hdf5, as a LeRobot data set.

    data/demo_<i>/actions                                     [S, 7]
    data/demo_<i>/obs/ee_states, gripper_states               [S, 6] hand and axis-angle, [S, 2] fingers
    data/demo_<i>/obs/agentview_rgb, eye_in_hand_rgb          [S, 128, 128, 3] uint8, bottom-up as robosuite has them

The pictures are turned by 180 degrees, as everybody turns them, so that they show the mirror image that other data sets
show. A file may come from anywhere: what leads out of it (external links, virtual data) is refused.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from ghost.data.lerobot import ACTION, STATE
from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.errors import GhostError, one_line
from ghost.libero.conventions import CONVENTIONS
from ghost.libero.tasks import TASKS

NAME = "hdf5"  # of the convention
ENDING = "_demo.hdf5"
FPS = 20
LONGEST, SIDE = 10_000, 1024  # steps of an episode, pixels of a picture: more is no demonstration of LIBERO's
CAMERAS = tuple(CONVENTIONS[NAME].cameras)


def is_hdf5(folder: Path) -> bool:
    return any(folder.rglob(f"*{ENDING}"))


def convert(folder: Path, tasks: Sequence[int], to: Path) -> Path:
    """Write the demonstrations of these tasks, of which there is a file, as a LeRobot data set."""
    places = []
    for path in sorted(folder.rglob(f"*{ENDING}")):
        found = [task for task in tasks if TASKS[task].file == path.name.removesuffix(ENDING)]
        with _opened(path) as file:
            names = sorted(_group(file, "data", path), key=lambda name: (len(name), name))
            places += [(path, name, found[0]) for name in names if found and name.startswith("demo_")]
    if not places:
        raise GhostError(f"{folder} has no file <task>{ENDING} of these tasks of LIBERO-10")
    write_dataset(to, _Demonstrations(places), fps=FPS, robot="Panda in LIBERO", episodes_per_file=1)
    return to


class _Demonstrations(Sequence[Recording]):
    """Read when they are asked for: all pictures together would not fit into the memory."""

    def __init__(self, places: list[tuple[Path, str, int]]) -> None:
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        chosen = self.places[index]
        return [_read(*place) for place in chosen] if isinstance(chosen, list) else _read(*chosen)


def _read(path: Path, name: str, task: int) -> Recording:
    with _opened(path) as file:
        episode = _group(_group(file, "data", path), name, path)
        seen = _group(episode, "obs", path)
        action = _array(episode, "actions", (7,), path)
        state = np.concatenate(
            [_array(seen, "ee_states", (6,), path), _array(seen, "gripper_states", (2,), path)], axis=1
        )
        films = {f"observation.images.{camera}": _film(seen, camera, path) for camera in CAMERAS}
    columns = {STATE: state.astype(np.float32), ACTION: action.astype(np.float32)}
    return Recording(TASKS[task].instruction, columns, films)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise GhostError(f"{path} is not an HDF5 file of LIBERO's: {one_line(str(error))}") from None


def _own(group: Any, name: str, path: Path) -> Any:
    """What has this name in a group of the file itself."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise GhostError(f"{path}: {group.name} has no {name!r} of its own")
    return group[name]


def _group(parent: Any, name: str, path: Path) -> Any:
    found = _own(parent, name, path)
    if not isinstance(found, h5py.Group):
        raise GhostError(f"{path}: {found.name} is no group")
    return found


def _array(group: Any, name: str, shape: tuple[int, ...], path: Path, kinds: str = "f") -> np.ndarray:
    """An array [S, *shape]; its size is looked at before it is read."""
    found = _own(group, name, path)
    if not isinstance(found, h5py.Dataset) or found.is_virtual or found.external:
        raise GhostError(f"{path}: {found.name} is no array of the file itself")
    if found.shape[1:] != shape or not 0 < found.shape[0] <= LONGEST or found.dtype.kind not in kinds:
        raise GhostError(f"{path}: {found.name} is {found.dtype} {found.shape}, expected at most {(LONGEST, *shape)}")
    return np.asarray(found[:])


def _film(group: Any, name: str, path: Path) -> np.ndarray:
    found = _own(group, name, path)
    sides = getattr(found, "shape", ())[1:3]
    if len(sides) != 2 or not all(0 < side <= SIDE for side in sides) or found.dtype != np.uint8:
        raise GhostError(f"{path}: {found.name} holds no pictures")
    return np.ascontiguousarray(_array(group, name, (*sides, 3), path, "u")[:, ::-1, ::-1])
