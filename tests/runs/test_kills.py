"""A small real build, killed at random moments: the head, the warm process, a step, or all of them, by any signal.

Ten kills are part of the tests. Two hundred take about half an hour:

    GHOST_KILLS=200 pytest -s tests/runs/test_kills.py
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from conftest import SMOKE, copy_project

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("GHOST_KILLS", "10"))
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
VICTIMS = ("head", "warm process", "step", "all")
DATA = Path("data/smoke")
# simulations, demonstrations, features, trainings, a rollout in LIBERO, cells and a figure
TARGETS = [
    str(DATA / name)
    for name in ("runs/mlp/manifest.json", "runs/libero_mlp_rollout/manifest.json", "cells/fig_switch_speed.jsonl")
] + [str(DATA / "figures/switch_speed.pdf")]
LONGEST_S = 240.0  # for a build to end, whatever was killed
MARK = "GHOST_KILLS_MARK"


class Build:
    """A copy of the project, with a temporary folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.temporary = copy_project(folder / "project"), folder / "temporary"
        self.temporary.mkdir()
        self.mark = f"{os.getpid()}-{folder}"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONHASHSEED": "0",
            "TMPDIR": str(self.temporary),
            MARK: self.mark,
        }
        command = ["snakemake", *arguments, "--cores", "2"]
        pipe = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=environment, start_new_session=True, **pipe)

    def make(self) -> subprocess.Popen[str]:
        return self.start(*TARGETS, "--keep-going", *SMOKE)

    def unlock(self) -> None:
        """What Snakemake tells a user to do, when there is a lock."""
        if any((self.folder / ".snakemake/locks").glob("*")):
            assert end_of(self.start("--unlock", *SMOKE)) == (0, "")

    def processes(self) -> dict[int, str]:
        """Process id -> command line, of all that this build started."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.mark}\0".encode() in (folder / "environ").read_bytes():
                    found[int(folder.name)] = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
            except OSError:
                continue
        return {process: line for process, line in found.items() if line}  # a zombie has none

    def results(self) -> dict[str, bytes]:
        files = [*(self.folder / DATA / "runs").glob("*/manifest.json"), *(self.folder / DATA / "cells").glob("*")]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in sorted(files)}

    def left(self) -> list[str]:
        """Temporary files and folders, but for what is Snakemake's: an empty folder for each time that it was killed,
        and the files of its solver where it was killed while it chose jobs."""
        found = [*(self.folder / DATA).rglob(".*"), *self.temporary.iterdir()]
        return [str(path) for path in found if not is_of_snakemake(path)]

    def clean(self) -> None:
        shutil.rmtree(self.folder / DATA)
        shutil.rmtree(self.folder / ".snakemake/metadata")


def is_of_snakemake(path: Path) -> bool:
    return "-pulp." in path.name or (path.name.startswith("snakemake") and not any(path.iterdir()))


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code, and what is wrong with its end."""
    try:
        _, said = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return 1, f"still ran after {LONGEST_S:.0f} s"
    of_snakemake = re.search("^Traceback", said, re.MULTILINE)  # those in the logs of steps are indented
    is_wrong = of_snakemake and "KeyboardInterrupt" not in said  # which Python says while Snakemake starts
    return process.returncode, said if is_wrong else ""


def kill(build: Build, head: subprocess.Popen[str], chance: random.Random) -> str:
    """Kill something; returns what was done."""
    number, victim = chance.choice(SIGNALS), chance.choice(VICTIMS)
    running = build.processes()
    warm = [process for process, line in running.items() if "ghost.runs.warm --serve" in line]
    forked = [process for process in running if parent_of(process) in warm]  # steps, which look like the warm process
    steps = [process for process in running if process not in (head.pid, *set(warm) - set(forked))]
    if head.poll() is not None:
        return "nothing: it had ended"
    if victim == "all":
        os.killpg(head.pid, number)
    else:
        of_kind = {"head": [head.pid], "warm process": sorted(set(warm) - set(forked)), "step": sorted(steps)}[victim]
        if not of_kind:
            return f"nothing: no {victim} yet"
        try:
            os.kill(chance.choice(of_kind), number)
        except ProcessLookupError:
            return f"nothing: the {victim} had ended"
    return f"{victim} {number.name}"


def parent_of(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kills_of_a_build(build: Build, head: subprocess.Popen[str], chance: random.Random) -> list[str]:
    """Up to four, mostly while steps run, sometimes while Snakemake starts, until the head is one of them; or none."""
    if chance.random() < 0.1:
        return []
    if chance.random() < 0.85:
        until_s = time.monotonic() + 60
        while head.poll() is None and time.monotonic() < until_s and len(build.processes()) < 3:
            time.sleep(0.1)
    done = []
    while len(done) < 4 and head.poll() is None:
        time.sleep(chance.uniform(0, 5))
        done.append(kill(build, head, chance))
        if done[-1].startswith(("head", "all")):
            break
    return [what for what in done if not what.startswith("nothing")]


def orphans(build: Build) -> list[str]:
    """What still runs ten seconds after its head ended."""
    until_s = time.monotonic() + 10
    while (running := build.processes()) and time.monotonic() < until_s:
        time.sleep(0.1)
    for process in running:
        os.kill(process, signal.SIGKILL)
    return [f"an orphan: {line}" for line in running.values()]


def test_kills_spoil_nothing_and_leave_nothing(tmp_path):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would ours
    build, chance = Build(tmp_path), random.Random(20260729 + KILLS)
    assert end_of(build.make()) == (0, "")
    expected, done, builds = build.results(), Counter(), 0
    assert len(expected) >= 6
    wrong = differences(build, expected)
    build.clean()
    started_s = time.monotonic()
    while sum(done.values()) < KILLS:
        head = build.make()
        killed = kills_of_a_build(build, head, chance)
        code, said = end_of(head)
        done.update(killed)
        found = [said] * bool(said) + orphans(build)
        build.unlock()
        if code == 0 and "head SIGTERM" not in killed:  # asked so, Snakemake ends early and is content
            builds += 1
            found += differences(build, expected)
            build.clean()
        now_s = time.monotonic() - started_s
        print(
            f"{now_s:6.0f} s {sum(done.values()):4d}  {', '.join(killed) or 'none'}: exit code {code}",
            *found,
            flush=True,
        )
        wrong += [f"after {', '.join(killed)}: {each}" for each in found]
    assert end_of(build.make()) == (0, "")
    wrong += differences(build, expected)
    print(f"{sum(done.values())} kills, {builds + 1} whole builds: {dict(sorted(done.items()))}")
    assert wrong == []


def differences(build: Build, expected: dict[str, bytes]) -> list[str]:
    """What is wrong with a whole build: other results, files or folders that are left."""
    made = build.results()
    unlike = [name for name in sorted({*made, *expected}) if made.get(name) != expected.get(name)]
    return [f"not as without kills: {name}" for name in unlike] + [f"left: {path}" for path in build.left()]
