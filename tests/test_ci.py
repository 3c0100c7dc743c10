"""What must pass before a change lands: its parts, the hosted jobs that run them, and the cells that a change moves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from conftest import call
from ghost.study import builds

PARTS = ["test", "test-cluster", "test-groot"]


def run_parts(root: Path, folder: Path, *parts: str, fails: str = "none") -> tuple[list[str], int]:
    """`.ci/run` with a `make` that writes down what it is asked for."""
    asked = folder / "asked.txt"
    asked.write_text("")
    make = folder / "make"
    make.write_text(f'#!/bin/sh\necho "$@" >> {asked}\ncase "$*" in *{fails}*) exit 2;; esac\n')
    make.chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run([root / ".ci/run", *parts], cwd=folder, env=env, check=False)
    return asked.read_text().split(), done.returncode


def test_all_parts_run_or_the_one_that_is_named(root, tmp_path):
    asked, code = run_parts(root, tmp_path)
    assert [part for part in asked if part in PARTS] == PARTS
    assert code == 0
    assert run_parts(root, tmp_path, "test-groot") == (["test-groot"], 0)


def test_a_part_that_fails_ends_the_run(root, tmp_path):
    for part in PARTS:
        asked, code = run_parts(root, tmp_path, fails=part)
        assert asked[0] == "test"
        assert (code != 0, part in asked) == (True, True)
    assert run_parts(root, tmp_path, fails="test")[0] == ["test"]  # nothing after it


def test_the_hosted_jobs_run_every_part_and_keep_what_the_build_makes(root):
    jobs = yaml.safe_load((root / ".github/workflows/ci.yml").read_text())["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["part"] == PARTS
    assert any(".ci/run ${{ matrix.part }}" in step.get("run", "") for step in jobs["tests"]["steps"])
    (kept,) = [step["with"]["path"].split() for step in jobs["report"]["steps"] if "upload" in step.get("uses", "")]
    smoke = builds.load({"scale": "smoke"}, root)
    assert kept == [*map(str, smoke.pdfs), str(smoke.data / "audit.html")]


def test_the_workflows_call_what_is_there(root):
    targets = set(re.findall(r"^([\w./-]+):", (root / "Makefile").read_text(), re.M))
    for path in (root / ".github/workflows").glob("*.yml"):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            commands = [step["run"] for step in job["steps"] if "run" in step]
            for asked in re.findall(r"\bmake ([^\n]*)$", "\n".join(commands), re.M):
                assert set(asked.split()) <= targets | {"openssh-client", "procps", "python3.11-venv"}, asked
            for script in re.findall(r"\.ci/\w+", "\n".join(commands)):
                assert os.access(root / script, os.X_OK), script


@pytest.mark.slow
def test_the_cells_that_a_change_moves_are_listed_with_the_reason(project, tmp_path):
    changed = tmp_path / "changed"
    shutil.copytree(project, changed, symlinks=True)
    (changed / ".venv/bin").mkdir(parents=True)  # the commands come from the environment of the tests
    same = call(changed, ".ci/cells", str(project), "smoke")
    assert same.stdout == "No cell of the build `smoke` changed.\n"
    config = changed / "config/smoke.yaml"
    text = config.read_text()
    assert text.count("mus: 4\n") == 1
    config.write_text(text.replace("mus: 4\n", "mus: 5\n"))
    moved = call(changed, ".ci/cells", str(project), "smoke").stdout
    assert moved.startswith("Cells of the build `smoke` that changed (before, after, and why):\n\n```\n")
    assert "    dwell_time: mus 4 and 5\n" in moved
    assert "tab:lightweight" not in moved
