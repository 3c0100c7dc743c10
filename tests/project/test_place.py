"""`ghost` works anywhere in a checkout; a path that cannot work is refused at once, and odd ones that can, do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import call, copy_project
from ghost.errors import GhostError
from ghost.project.place import check, find_root, from_root

ODD = "it's a build of [mine], 100% #1 (é)"


def ghost(folder, *arguments):
    command = [Path(sys.executable).with_name("ghost"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("below", [".", "src/ghost/decoders", "tests"])
def test_ghost_finds_the_root_upwards(root, below):
    done = ghost(root / below, "list", "decoders", "--filter", "neural_ode", "--scale", "smoke")
    assert done.stdout == "neural_ode  src/ghost/decoders/neural_ode.py  neural_ode\n", done.stderr


def test_outside_it_says_where_to_go(tmp_path, root):
    done = ghost(tmp_path, "list", "decoders")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"ghost: error: {tmp_path} is not in a checkout of this project: go to one; there is one in {root}\n"
    )
    assert ghost(tmp_path, "list", "--help").returncode == 0


def test_paths_that_the_user_gave_stay_where_the_user_is(tmp_path, root, monkeypatch):
    for part in ("Snakefile", "config", "src/ghost", "data/smoke"):
        (tmp_path / part).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "data")
    seen = {}
    from_root(lambda **given: seen.update(given, folder=Path.cwd()))(a=Path("x"), b=(Path("y"), Path("/z")), c="x")
    assert seen == {
        "a": tmp_path / "data/x",
        "b": (tmp_path / "data/y", Path("/z")),
        "c": "x",
        "folder": tmp_path,
    }
    assert find_root(tmp_path / "data/smoke") == tmp_path


@pytest.mark.parametrize("character", [":", "\n", '"', "$", "`", "\\", "{"])
def test_a_path_that_cannot_work_is_named(tmp_path, root, character):
    folder = tmp_path / f"a{character}b"
    folder.mkdir()
    with pytest.raises(GhostError, match=r"^the path .* holds '.{1,2}': .*; move the checkout to another folder$"):
        check(folder)
    check(tmp_path / ODD)
    for part in (
        "Makefile",
        "src",
        "config",
        "requirements.lock",
        "pyproject.toml",
        "Snakefile",
        "workflow",
        "profiles",
    ):
        (folder / part).symlink_to(root / part)
    made = subprocess.run(["make", "paper"], cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert f"holds {character!r}" in made.stderr
    assert not (folder / ".venv").exists()
    assert f"holds {character!r}" in ghost(folder, "list").stderr


@pytest.mark.slow
def test_snakemake_refuses_it_with_one_line(tmp_path):
    folder = copy_project(tmp_path / "a:b")
    done = call(
        folder, "snakemake", "--config", "scale=smoke", check=False, PYTHONPATH=os.environ.get("PYTHONPATH", "")
    )
    assert done.returncode == 1
    assert "holds ':'" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("latexmk"), reason="no TeX")
def test_an_odd_path_builds(tmp_path):
    """A drawing by TeX, a run in a warm process, a figure with matplotlib's own TeX, its cells."""
    folder = copy_project(tmp_path / ODD)
    targets = [
        f"data/smoke/{name}"
        for name in ("figures/method.pdf", "figures/switch_speed.pgf", "cells/fig_switch_speed.jsonl")
    ]
    call(folder, "snakemake", *targets, "--config", "scale=smoke")
    assert all((folder / target).stat().st_size > 100 for target in targets)
