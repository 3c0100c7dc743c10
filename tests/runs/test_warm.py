"""A warm start does what a cold one does: same streams, folder, environment, exit code; it ends with its command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ghost.runs import warm

STEP = """
import json, os, signal, sys, time
seen = {"argv": sys.argv[1:], "command": sys.orig_argv[1:], "folder": os.getcwd(), "name": __name__,
        "variable": os.environ.get("VARIABLE"), "torch": "torch" in sys.modules, "pid": os.getpid()}
print(json.dumps(seen), flush=True)
print(sys.stdin.read(), file=sys.stderr)
what = sys.argv[1]
if what == "exit": sys.exit(int(sys.argv[2]))
if what == "kill": os.kill(os.getpid(), signal.SIGKILL)
if what == "raise": raise ValueError("from the step")
if what == "wait": time.sleep(100)
"""


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """A process that started the warm one, as Snakemake does; yields its folder, environment and itself."""
    folder = tmp_path_factory.mktemp("head")
    (folder / "step.py").write_text(STEP)
    code = (
        "import os, sys; from ghost.runs import warm; warm.start(); print(os.environ[warm.SOCKET], flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    socket = process.stdout.readline().strip()
    yield folder, {**os.environ, "GHOST_WARM": socket, "VARIABLE": "told"}, process
    process.kill()


def command(head, *arguments, **changed):
    folder, environment, _ = head
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "input": "typed"} | changed
    return subprocess.run([sys.executable, "-m", "ghost.runs.warm", "step", *arguments], timeout=60, **options)


def test_the_step_sees_what_the_command_was_given(head, tmp_path):
    folder = tmp_path.resolve()
    done = command(head, "nothing", "two words", cwd=folder)
    seen = json.loads(done.stdout)
    assert seen["argv"] == ["nothing", "two words"]
    assert seen["command"] == ["-m", "step", "nothing", "two words"]  # what the record of a run says
    assert (seen["folder"], seen["variable"], seen["name"]) == (str(folder), "told", "__main__")
    assert seen["torch"]
    assert done.stderr == "typed\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code"), [(("exit", "7"), 7), (("kill",), 128 + signal.SIGKILL), (("raise",), 1)]
)
def test_the_command_ends_as_its_step(head, arguments, code):
    done = command(head, *arguments)
    assert done.returncode == code
    assert ("ValueError: from the step" in done.stderr) == (arguments == ("raise",))


def test_a_killed_command_ends_its_step(head):
    asked, step = begin(head)
    asked.kill()
    assert ended(step)


def test_ctrl_c_ends_the_step_and_not_the_warm_process(head):
    asked, step = begin(head)
    assert os.getpgid(step) == os.getpgid(asked.pid) == os.getpgid(head[2].pid)  # whoever ends the group ends it all
    os.kill(step, signal.SIGINT)
    assert asked.wait(60) == 128 + signal.SIGINT
    assert command(head, "exit", "0").returncode == 0


@pytest.mark.parametrize("changed", [{"GHOST_WARM": "/nowhere/warm"}, {"OMP_NUM_THREADS": "2"}])
def test_without_a_warm_process_or_with_more_threads_the_start_is_cold(head, changed):
    _, environment, _ = head
    done = command(head, "exit", "3", env={**environment, **changed})
    seen = json.loads(done.stdout)
    assert done.returncode == 3
    assert not seen["torch"]
    assert seen["command"] == ["-m", "step", "exit", "3"]


def test_it_ends_with_its_head_after_the_last_job(head):
    folder, environment, process = head
    arguments = [sys.executable, "-m", "ghost.runs.warm", "step", "exit", "5"]
    asked = subprocess.Popen(arguments, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    asked.stdout.readline()  # the step runs, and waits for its input
    process.kill()
    asked.stdin.close()
    assert asked.wait(60) == 5
    socket = Path(environment["GHOST_WARM"])
    deadline_s = time.monotonic() + 60
    while socket.parent.exists() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not socket.parent.exists()


def test_none_of_our_own_modules_is_kept_warm():
    assert not [library for library in warm.LIBRARIES if library.startswith("ghost")]


def begin(head):
    """A command whose step runs for long, and the step's process."""
    folder, environment, _ = head
    arguments = [sys.executable, "-m", "ghost.runs.warm", "step", "wait"]
    asked = subprocess.Popen(arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return asked, json.loads(asked.stdout.readline())["pid"]


def ended(process: int) -> bool:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        state = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False
