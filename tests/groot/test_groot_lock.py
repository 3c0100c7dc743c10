"""GR00T's environment on the CPU: what is installed is what is locked, and what is locked is what is asked for."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement

from conftest import ROOT
from ghost.runs.environment import installed, read_lock
from locked import asked_for

pytestmark = pytest.mark.groot
PINS = read_lock(ROOT / "workflow/envs/groot-cpu.lock")


def test_what_runs_here_is_what_is_locked():
    here = installed()
    assert {name: here.get(name, "missing").partition("+")[0] for name in PINS} == PINS


def test_the_lock_is_what_the_declaration_asks_for_and_nothing_else():
    """From pyproject.toml along what each installed package says that it needs, without what is left out."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ghost"]
    left_out = {*asked["groot-cpu"]["exclude"]}
    forced = {need.name: need for need in map(Requirement, asked["groot-cpu"]["override"])}
    assert asked_for(asked["groot"]["requires"], PINS, left_out, forced) == {*PINS}
