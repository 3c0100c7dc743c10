"""The image: its recipe asks for what Makefile and the lock have, and with it every job runs in the container."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from conftest import ROOT, SMOKE, call, copy_project

ENVS = ("cuda.lock", "image.sh", "install.sh")
PARTS = ["Makefile", "requirements.lock", *(f"workflow/envs/{name}" for name in ENVS)]
# An Apptainer that writes down the command, and runs it here.
SHIM = """#!/bin/bash
if [ "$1" = "--version" ]; then echo "apptainer version 1.3.0"; exit; fi
echo "$*" >> "{log}"
until [ "$1" = ghost.sif ]; do shift || exit 9; done
shift
exec "$@"
"""


def test_both_recipes_run_the_same_steps():
    for recipe in ("Dockerfile", "workflow/envs/ghost.def"):
        text = (ROOT / recipe).read_text()
        assert "debian:12-slim" in text
        assert "bash /opt/build/image.sh /opt/build" in text
        for part in PARTS:
            assert part in text
    kept = (ROOT / ".dockerignore").read_text()
    assert re.findall(r"^!(.*)$", kept, re.M) == PARTS


def test_the_image_has_the_packages_that_make_installs(tmp_path):
    """The steps up to the first that needs root, with an apt-get that writes down what it is asked for."""
    said = tmp_path / "said.txt"
    tool = tmp_path / "apt-get"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {said}\n[ "$1" != install ]\n')
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = call(ROOT, "bash", "workflow/envs/image.sh", str(ROOT), check=False, PATH=path)
    assert done.returncode != 0  # it stops where a package cannot be installed
    asked = said.read_text().split()
    listed = re.findall(r"^(?:TEX|OPENGL) := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert len(listed) == 2
    assert {"python3.11-venv", "git", *" ".join(listed).split()} <= set(asked)


@pytest.mark.slow
def test_with_apptainer_every_job_runs_in_the_image(tmp_path):
    folder = copy_project(tmp_path / "project")
    (folder / "ghost.sif").write_text("an image")
    log, tools = tmp_path / "apptainer.log", tmp_path / "bin"
    tools.mkdir()
    for name in ("apptainer", "singularity"):
        tool = tools / name
        tool.write_text(SHIM.format(log=log))
        tool.chmod(0o755)
    target = "data/smoke/runs/switch_speed/manifest.json"
    path = f"{Path(sys.executable).parent}:{tools}:{os.environ['PATH']}"
    call(folder, "snakemake", target, "--sdm", "apptainer", *SMOKE, PATH=path)
    assert (folder / target).exists()
    assert "ghost.steps.simulate" in log.read_text()
