"""Whether a recording is written as its convention says, judged by the recording alone."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ghost.data.lerobot import LeRobotDataset
from ghost.errors import GhostError
from ghost.libero.conventions import CONVENTIONS, SCRIPTED, find_convention

# Each threshold lies far from what a right recording shows and from what a wrong one shows; the tests have both.
RATES_HZ = (20, 10)  # LIBERO's own; openpi's conversion calls the same steps 10 a second
GRIPPER_SLACK = 0.2  # of the gap of the convention's two numbers: smoothed commands pass, another pair is off by 1/2
CLOSING_STEPS = 9  # the hand needs as many to close or to open: 8 cm at 1 cm a step, and one to begin
STILL = 1e-4  # a component of a command below this does nothing; OpenVLA's filter, which made the data sets "no_noops"
MOST_NOOPS_PERCENT = 10  # OpenVLA's filter leaves none; a few may come back by rounding. Unfiltered sets have more
FOLLOWS = 0.2  # least correlation of the hand's way with its commands: about 0.9 for ours, below 0 for a wrong sign
Episode = tuple[np.ndarray, np.ndarray]  # states [S, 8] and actions [S, 7], raw


def choose_convention(dataset: LeRobotDataset) -> str:
    """The convention that the names of the columns fit. What the gripper's numbers mean is checked afterwards."""
    columns = dataset.info["features"].keys()
    seen = {column.rsplit(".", 1)[-1] for column in columns}
    fits = [
        name
        for name, convention in CONVENTIONS.items()
        if name != SCRIPTED and {convention.state, convention.action} <= columns and convention.cameras.keys() <= seen
    ]
    if len(fits) != 1:
        known = ", ".join(name for name in CONVENTIONS if name != SCRIPTED)
        raise GhostError(
            f"{dataset.folder}: the columns fit {' and '.join(fits) or 'no known data set'}; name the libero_convention"
            f" ({known})"
        )
    return fits[0]


def check_convention(name: str, episodes: Sequence[Episode], fps: float, where: Path) -> None:
    """Refuse a recording that contradicts its convention, with a line that says what is seen."""
    convention = find_convention(name)
    if fps not in RATES_HZ:
        raise GhostError(f"{where}: {fps:g} steps a second; LIBERO has {RATES_HZ[0]}, so steps were left out or added")
    gripper = np.concatenate([action[:, 6] for _, action in episodes])
    low, high = sorted((convention.opens, convention.closes))
    slack = GRIPPER_SLACK * (high - low)
    used = (gripper.min() < low + slack, gripper.max() > high - slack)
    if gripper.min() < low - slack or gripper.max() > high + slack or not all(used):
        raise GhostError(
            f"{where}: the gripper's commands run from {gripper.min():g} to {gripper.max():g}, but the convention"
            f" {name!r} opens at {convention.opens:g} and closes at {convention.closes:g}"
        )
    closed, opened = _openings(episodes, name)
    if len(closed) and len(opened) and np.mean(closed) > np.mean(opened):
        raise GhostError(
            f"{where}: the fingers are further apart where the convention {name!r} closes them"
            f" ({1000 * np.mean(closed):.0f} mm) than where it opens them ({1000 * np.mean(opened):.0f} mm): its"
            " gripper has the other sign"
        )
    _check_frame(name, episodes, where)
    share = noop_percent([action for _, action in episodes])
    if not convention.noops and share > MOST_NOOPS_PERCENT:
        raise GhostError(
            f"{where}: {share:.0f} % of the steps command nothing, but data sets of the convention {name!r} leave such"
            " steps out"
        )


def _check_frame(name: str, episodes: Sequence[Episode], where: Path) -> None:
    """Along each axis the hand follows its commands, and those along this axis more than the others.

    Correlations alone miss a swap: a hand that goes diagonally follows either command. The coefficients of all three
    commands together tell them apart.
    """
    moved = np.concatenate([np.diff(state[:, :3], axis=0) for state, _ in episodes])  # [n, 3]
    asked = np.concatenate([action[:-1, :3] for _, action in episodes])
    gains, *_ = np.linalg.lstsq(asked - asked.mean(axis=0), moved - moved.mean(axis=0))  # [3 commanded, 3 moved]
    for axis, letter in enumerate("xyz"):
        if min(moved[:, axis].std(), asked[:, axis].std()) == 0:
            continue
        if np.corrcoef(moved[:, axis], asked[:, axis])[0, 1] < FOLLOWS:
            raise GhostError(
                f"{where}: the hand does not follow its commands along {letter}: state and action are not those of"
                f" {name!r}"
            )
        strongest = int(np.abs(gains[:, axis]).argmax())
        if strongest != axis:
            raise GhostError(
                f"{where}: along {letter} the hand follows its commands along {'xyz'[strongest]}: state and action are"
                f" not in one frame, as those of {name!r} are"
            )


def _openings(episodes: Sequence[Episode], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The opening of the hand in metres, some steps after a command to close and after one to open."""
    convention, found = find_convention(name), ([], [])  # type: ignore[var-annotated]
    for state, action in episodes:
        closing = convention.closing(action)
        for told, kept in zip((True, False), found, strict=True):
            run = np.convolve(closing == told, np.ones(CLOSING_STEPS), "full")[: len(closing)] == CLOSING_STEPS
            kept.append((state[:, 6] - state[:, 7])[run])
    return np.concatenate(found[0]), np.concatenate(found[1])


def noop_percent(actions: Sequence[np.ndarray]) -> float:
    """Steps that move nothing and leave the gripper as it was, of all."""
    still = [
        (np.abs(action[:, :6]) < STILL).all(axis=1) & np.concatenate([[False], np.diff(action[:, 6]) == 0])
        for action in actions
    ]
    return float(100 * np.mean(np.concatenate(still)))
