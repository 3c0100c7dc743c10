"""GR00T's environment on the CPU: what is installed is what is locked, and what is locked is what is asked for."""

from __future__ import annotations

import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from conftest import ROOT
from ghost.runs.environment import installed, plain, read_lock

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
    waiting = [Requirement(text) for text in asked["groot"]["requires"]]
    found: set[tuple[str, str]] = set()
    while waiting:
        need = waiting.pop()
        name = plain(need.name)
        if name in left_out:
            continue
        need = forced.get(name, need)
        assert name in PINS, f"{need} is not locked: ghost lock"
        assert need.specifier.contains(PINS[name], prereleases=True), f"{need}, but the lock has {PINS[name]}"
        for extra in {"", *need.extras} - {extra for known, extra in found if known == name}:
            found.add((name, extra))
            needs = [Requirement(text) for text in metadata.requires(name) or ()]
            waiting += [other for other in needs if other.marker is None or other.marker.evaluate({"extra": extra})]
    assert {name for name, _ in found} == {*PINS}
