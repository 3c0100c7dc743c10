"""Shared pieces: the repository's root, a copy of it to run in, a whole small build, a tiny experiment with runs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ghost.data.results import Measured, Outcome
from ghost.runs.driver import Plan, execute
from ghost.runs.records import Run, open_runs

ROOT = Path(__file__).parents[1]
# How many examples a property is tried on: `pytest --hypothesis-profile=long` for a long look.
if find_spec("hypothesis"):  # GR00T's environment has none, and no such tests
    from hypothesis import settings

    settings.register_profile("quick", max_examples=150, deadline=None, derandomize=True, database=None)
    settings.register_profile("long", max_examples=10_000, deadline=None, print_blob=True, database=None)
    settings.load_profile("quick")
SMOKE = ("--config", "scale=smoke")


def unit(nodeid: str) -> str:
    """What one worker of pytest-xdist gets as a whole: the tests of LIBERO, which share their runs; else a file."""
    file = nodeid.split("::")[0]
    return "libero" if file.startswith("tests/libero/") else file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a cluster or GR00T's environment is slow too: `-m "not slow"` leaves it out. Slow units come first,
    so that no worker waits for another at the end."""
    for item in items:
        if item.get_closest_marker("cluster") or item.get_closest_marker("groot"):
            item.add_marker("slow")
    slow = Counter(unit(item.nodeid) for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[unit(item.nodeid)])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """MuJoCo keeps the OpenGL that it found in the environment. Processes that tests start choose their own."""
    os.environ.pop("PYOPENGL_PLATFORM", None)


@pytest.hookimpl(optionalhook=True)  # GR00T's environment has no pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByUnit(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    config.option.loadscopereorder = False
    return ByUnit(config, log)


@pytest.fixture
def root() -> Path:
    return ROOT


def copy_project(to: Path) -> Path:
    """What git tracks (and would track), as a project of its own; `ghost` is imported from the copy."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.exists():
            shutil.copy(source, target)
    subprocess.run("git init -q && git add -A && git -c user.name=t -c user.email=t@t commit -qm t", cwd=to, shell=True)
    return to


def call(folder: Path, *command: str, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of our environment in a copy of the project. No terminal, stable hash order."""
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "src"),
        "PYTHONHASHSEED": "0",
        **environment,
    }
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def small_laptop(folder: Path) -> Path:
    """A copy whose laptop scale is as small as smoke, but for features as wide as GR00T's: shards above 1 MB."""
    copy_project(folder)
    smoke = (folder / "config/smoke.yaml").read_text()
    assert smoke.count("d_token: 32\n") == 1
    (folder / "config/laptop.yaml").write_text(smoke.replace("d_token: 32\n", "d_token: 2048\n"))
    return folder


@pytest.fixture(scope="session")
def whole_build(tmp_path_factory) -> Path:
    """`snakemake all` in a small copy, undisturbed: what Slurm, kills and clones are compared with. Read only."""
    folder = small_laptop(tmp_path_factory.mktemp("whole") / "project")
    call(folder, "snakemake", "all")
    return folder


def repeatable(folder: Path) -> dict[str, list[str]]:
    """Cells and results of a build, line by line, without those that a clock decides."""
    data = folder / "data/laptop"
    cells = (data / "cells.jsonl").read_text().splitlines()
    results = (data / "results.csv").read_text().splitlines()
    clock = ("latency,", "training_time,")
    timed = [line.rsplit(",", 1)[1] for line in results if line.startswith(clock)]  # run ids
    assert timed
    return {
        "cells": [line for line in cells if not any(run in line for run in timed)],
        "results": [line for line in results if not line.startswith(clock)],
    }


@pytest.fixture
def torch_as_it_was():
    """For tests of what makes torch deterministic and single-threaded."""
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_deterministic_debug_mode("default")
    torch.set_num_threads(threads)


def declaration(name: str = "tiny", **changes: Any) -> dict[str, Any]:
    """An experiment as steps receive it, of a study that does not exist: two seeds."""
    return {
        "name": name,
        "step": "simulate",
        "module": "ghost.simulations.switch_speed",
        "modules": ["ghost.steps.simulate"],
        "scale": "smoke",
        "settings": {"epochs": 3, "widths": [8, 4]},
        "places": {},
        "seeds": [7, 8],
        "needs": [],
        "reduced": {},
        "stand_ins": [],
        **changes,
    }


def make_runs(
    manifest: Path,
    outcome: Callable[[int], Outcome],
    *,
    needs: Sequence[Path] = (),
    reads: Sequence[Path] = (),
    **changes: Any,
) -> list[Run]:
    """Real runs by the real driver, whose outcome is a function of the seed."""
    declared = declaration(**{"needs": [path.parent.name for path in needs], **changes})
    execute(lambda job: Plan(lambda unit: outcome(unit.seed)), json.dumps(declared), manifest, needs, reads)
    return open_runs(manifest)


@pytest.fixture
def tiny_manifest(tmp_path: Path) -> Path:
    """Two real runs: the loss of seed s is s / 10."""
    manifest = tmp_path / "runs/tiny/manifest.json"
    make_runs(
        manifest, lambda seed: Outcome([Measured("train", "loss", seed / 10, 5)], {"curve": np.arange(4.0) + seed})
    )
    return manifest


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """A copy in which the smoke DAG has run once, for whichever worker asks first. Read only: `project` is a copy."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built"
    done = folder.with_suffix(".done")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
            copy_project(folder)
            said = call(folder, "snakemake", "all", *SMOKE).stderr
            assert re.search(r"\d+ of \d+ jobs done", said)
            assert "\x1b" not in said
            done.touch()
    return folder


@pytest.fixture(scope="module")
def project(built, tmp_path_factory) -> Path:
    """A finished smoke build, which the tests of a file may change."""
    folder = tmp_path_factory.mktemp("project") / "project"
    subprocess.run(["cp", "-a", built, folder], check=True)  # with times and hard links
    return folder


@pytest.fixture(scope="session")
def reference(built) -> dict[str, bytes]:
    """The files that the first run made."""
    made = [path for path in (built / "data/smoke").rglob("*") if path.is_file()]
    return {str(path.relative_to(built)): path.read_bytes() for path in made}
