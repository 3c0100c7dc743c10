"""The primitives have every name that LIBERO-10 rests on, and nearly the sizes and masses of its own assets."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from ghost.libero.assets import package_folder, primitive_assets
from ghost.libero.environment import Environment
from ghost.libero.shapes import ring
from ghost.libero.tasks import TASKS
from ghost.libero.things import THINGS

pytest_plugins = ("libero_fixtures",)

BY_NAME = {thing.name: thing for thing in THINGS}
TABLES = {"kitchen_table", "living_room_table", "study_table"}


def sections(task):
    """Objects and fixtures (name -> category), and the goal's words, read from the text of a BDDL file."""
    text = (package_folder() / "bddl_files/libero_10" / f"{task.file}.bddl").read_text()
    things = {}
    for section in ("fixtures", "objects"):
        for names, category in re.findall(r"([\w ]+?)\s+-\s+(\w+)", text.split(f"(:{section}")[1].split("(:")[0]):
            things |= dict.fromkeys(names.split(), category)
    goal = re.findall(r"\((?:In|On|Close|Turnon) ([\w ]+)\)", text.split("(:goal")[1])
    return things, {word for words in goal for word in words.split()}, text


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.file[:20])
def test_every_name_of_a_goal_is_there(task):
    things, goal, text = sections(task)
    assert task.instruction in text
    assert goal
    for name, category in things.items():
        if category not in TABLES:
            assert category in BY_NAME, f"{name}: no primitive for {category}"
    for word in goal:
        owner = next(name for name in sorted(things, key=len, reverse=True) if word.startswith(name))
        region = word.removeprefix(owner).removeprefix("_")
        if region and things[owner] not in TABLES:
            xml = ElementTree.parse(primitive_assets().folder / BY_NAME[things[owner]].path)
            assert region in {site.get("name") for site in xml.iter("site")}, word


def test_a_ring_is_round_and_closed():
    boxes = ring((0.1, 0.2), 0.04, 0.05, 0.002, 0.03, n=10)
    centres = np.array([box.at for box in boxes])
    assert np.hypot(*(centres[:, :2] - [0.1, 0.2]).T) == pytest.approx(0.04)
    gap = np.linalg.norm(centres[0] - centres[1])
    assert 2 * boxes[0].size[1] > gap  # neighbours meet


@pytest.mark.slow
def test_init_states_fit_and_nothing_is_done_yet():
    for number in range(len(TASKS)):
        env = Environment(number, primitive_assets())
        assert env.init_states.shape == (50, 1 + env.model.nq + env.model.nv)
        env.reset(0, 0)
        assert not env.success()
        height = env.look().things[:, 2]
        assert (height[height != 0] > 0.3).all()  # nothing fell off its table


@pytest.mark.slow
@pytest.mark.parametrize("task", [3, 4, 9])
def test_joints_sizes_and_masses_are_nearly_liberos(task, original_assets):
    ours, theirs = Environment(task, primitive_assets()), Environment(task, original_assets)
    names = [[model.joint(j).name for j in range(model.njnt)] for model in (ours.model, theirs.model)]
    assert names[0] == names[1]
    for env in (ours, theirs):
        env.reset(1, 3)
    for name in (name for name in names[0] if name.endswith("_joint0")):
        bodies = [env.model.jnt_bodyid[env.model.joint(name).id] for env in (ours, theirs)]
        masses = [env.model.body_subtreemass[body] for env, body in zip((ours, theirs), bodies, strict=True)]
        assert masses[0] == pytest.approx(masses[1], rel=0.05), name
    assert ours.look().things[:, :3] == pytest.approx(theirs.look().things[:, :3], abs=0.01)
