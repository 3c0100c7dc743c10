"""A warm start does what a cold one does: same streams, folder, environment, exit code. Nothing outlives its head."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ghost.runs import warm

STEP = """
import json, os, signal, sys, time
from pool import print_and_wait
def main():
    seen = {"argv": sys.argv[1:], "command": sys.orig_argv[1:], "folder": os.getcwd(), "name": __name__,
            "variable": os.environ.get("VARIABLE"), "torch": "torch" in sys.modules, "pid": os.getpid()}
    print(json.dumps(seen), flush=True)
    print(sys.stdin.read(), file=sys.stderr)
    what = sys.argv[1]
    if what == "exit": sys.exit(int(sys.argv[2]))
    if what == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise": raise ValueError("from the step")
    if what == "last": last_words()
    if what == "wait": time.sleep(100)
    if what == "deaf": signal.signal(signal.SIGTERM, signal.SIG_IGN); print("deaf", flush=True); time.sleep(100)
    if what == "tidy":
        try: time.sleep(100)
        finally: time.sleep(0.5); open("tidied", "w").close()
    if what == "litter":
        import tempfile; print(tempfile.mkdtemp(), flush=True); time.sleep(100)
    if what == "pool":
        from ghost.runs.units import run_all
        next(iter(run_all(print_and_wait, [1, 2, 3], 2)))
    if what == "child":
        import subprocess; print(subprocess.Popen(["sleep", "100"]).pid, flush=True); time.sleep(100)
def last_words():
    import atexit, tempfile, threading, weakref
    atexit.register(print, "at exit")
    threading.Thread(target=lambda: (time.sleep(0.5), print("a thread"))).start()
    main.folder = tempfile.TemporaryDirectory()
    print(main.folder.name)
    sys.stdout.write("not flushed\\n")
if __name__ == "__main__": main()
"""
POOL = """
import os, time
def print_and_wait(item): print(os.getpid(), flush=True); time.sleep(100)
"""


def start_head(folder):
    """A process that starts the warm one, as Snakemake does; its folder, environment and itself."""
    (folder / "step.py").write_text(STEP)
    (folder / "pool.py").write_text(POOL)
    code = "import os; from ghost.runs import warm; warm.start(); print(os.environ['GHOST_WARM'], flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    name = process.stdout.readline().strip()
    return folder, {**os.environ, "GHOST_WARM": name, "VARIABLE": "told", "PYTHONPATH": str(folder)}, process


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    """One that is not harmed."""
    started = start_head(tmp_path_factory.mktemp("head"))
    yield started
    started[2].kill()


@pytest.fixture
def own_head(tmp_path):
    """One for a test that harms it."""
    started = start_head(tmp_path)
    yield started
    started[2].kill()


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


@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_exit_functions_and_what_is_not_flushed_are_not_lost(head, threads):
    """A step that went well ends without Python's own end, warm or cold."""
    done = command(head, "last", env={**head[1], "OMP_NUM_THREADS": threads})
    _, folder, *said = done.stdout.splitlines()
    assert said == ["not flushed", "a thread", "at exit"]
    assert not Path(folder).exists()
    assert (done.returncode, done.stderr) == (0, "typed\n")


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


@pytest.mark.parametrize(
    "changed",
    [
        {"GHOST_WARM": "/nowhere/warm"},
        {"GHOST_WARM": "ghost-1-1-1-00"},
        {"GHOST_WARM": "ghost-4194000-1-1-00"},
        {"OMP_NUM_THREADS": "2"},
    ],
)
def test_without_a_warm_process_or_with_more_threads_the_start_is_cold(head, changed):
    _, environment, _ = head
    done = command(head, "exit", "3", env={**environment, **changed})
    seen = json.loads(done.stdout)
    assert done.returncode == 3
    assert not seen["torch"]
    assert seen["command"] == ["-m", "step", "exit", "3"]


# ---- clients that go wrong


def connect(head) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(address(head))
    return connection


def address(head) -> str:
    name = head[1]["GHOST_WARM"]
    return name if name.startswith("/") else f"\0{name}"


def sends(content: bytes, files: int = 3, size: int | None = None):
    """A client that sends this and waits for the server to close."""

    def send(head) -> bytes:
        with connect(head) as connection, suppress(ConnectionResetError, BrokenPipeError):
            header = (len(content) if size is None else size).to_bytes(8)
            socket.send_fds(connection, [header], [os.open(os.devnull, os.O_RDWR)] * files)
            if content:
                connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1)
        return b""

    return send


def goes_away(head) -> bytes:
    connect(head).close()
    return b""


def sends_half_a_header(head) -> bytes:
    with connect(head) as connection:
        connection.send(b"123")
    return b""


ASKED = {"module": "os", "arguments": [], "folder": "/", "environment": {}}
BAD = {
    "goes away": goes_away,
    "half a header": sends_half_a_header,
    "nothing": sends(b"", size=0),
    "less than it said": sends(b"{}", size=1000),
    "more than it said": sends(b"{} {}", size=2),
    "a huge size": sends(b"{}", size=1 << 60),
    "garbage": sends(os.urandom(100_000)),
    "no files": sends(json.dumps(ASKED).encode(), files=0),
    "two files": sends(json.dumps(ASKED).encode(), files=2),
    "many files": sends(json.dumps(ASKED).encode(), files=100),
    "no request": sends(b"[1]"),
    "a key too many": sends(json.dumps({**ASKED, "more": 1}).encode()),
    "numbers": sends(json.dumps({**ASKED, "arguments": [1]}).encode()),
    "deep nesting": sends(b"[" * 200_000),
}


@pytest.mark.parametrize("client", BAD.values(), ids=BAD)
def test_whatever_a_client_sends_it_is_closed_and_the_next_one_is_served(head, client):
    warm_process = children_of(head[2].pid)
    open_before = open_files(warm_process[0])
    assert client(head) == b""
    assert command(head, "exit", "7").returncode == 7
    assert json.loads(command(head, "exit", "0").stdout)["torch"]
    assert children_of(head[2].pid) == warm_process
    assert children_of(warm_process[0]) == []
    assert open_files(warm_process[0]) <= open_before + 1  # of a client before, whose end it has not seen


def test_slow_clients_do_not_make_others_wait(head):
    slow = [connect(head) for _ in range(40)]
    for connection in slow[:20]:
        connection.send(b"123")
    started_s = time.monotonic()
    assert command(head, "exit", "7").returncode == 7
    assert time.monotonic() - started_s < 30
    for connection in slow:
        connection.settimeout(60)
        assert connection.recv(1) == b""  # after its deadline
        connection.close()
    assert json.loads(command(head, "exit", "0").stdout)["torch"]


# ---- the ends of head, warm process, command and step


def test_it_ends_with_its_head_and_leaves_nothing(own_head):
    asked, step = begin(own_head)
    (server,) = children_of(own_head[2].pid)
    own_head[2].kill()
    own_head[2].wait()
    assert asked.wait(60) != 0
    assert ended(step)
    assert ended(server)
    with pytest.raises(OSError, match=r"refused|No such file"):
        connect(own_head)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_warm_process_is_killed_its_steps_end_and_the_command_says_why(own_head, number):
    asked, step = begin(own_head, stderr=subprocess.PIPE, text=True)
    (server,) = children_of(own_head[2].pid)
    os.kill(server, number)
    assert asked.wait(60) == 1
    assert ended(step)
    assert asked.stderr.read().strip() == (
        "ghost: error: the warm process that ran this step was killed, and the step with it"
    )
    done = command(own_head, "exit", "3")  # the next step is done cold
    assert done.returncode == 3
    assert not json.loads(done.stdout)["torch"]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize("threads", ["1", "2"])
def test_temporary_files_of_steps_go_with_the_head(tmp_path, temporary, threads):
    killed = start_head(tmp_path)
    asked, _ = begin(killed, "litter", env={**killed[1], "OMP_NUM_THREADS": threads})
    made = Path(asked.stdout.readline().decode().strip())
    assert made.parent.parent == temporary
    assert made.parent.stat().st_mode & 0o77 == 0  # nobody else reads it
    (server,) = children_of(killed[2].pid)
    killed[2].kill()
    killed[2].wait()
    assert ended(server)
    assert list(temporary.iterdir()) == []


def test_when_all_is_killed_at_once_they_go_with_the_next_head(tmp_path, temporary):
    killed, other = start_head(tmp_path), start_head(tmp_path)
    for process in (*children_of(killed[2].pid), killed[2].pid):
        os.kill(process, signal.SIGKILL)
    killed[2].wait()
    (temporary / killed[1]["GHOST_WARM"] / "litter").write_text("x")
    (temporary / "ghost-of-somebody").mkdir()
    started = start_head(tmp_path)
    assert {path.name for path in temporary.iterdir()} == {
        "ghost-of-somebody",
        other[1]["GHOST_WARM"],
        started[1]["GHOST_WARM"],
    }
    for head in (other, started):
        head[2].communicate("\n")  # it ends by itself
    assert [path.name for path in temporary.iterdir()] == ["ghost-of-somebody"]


@pytest.mark.parametrize("what", ["pool", "child"])
def test_what_a_killed_step_started_ends_too(head, what):
    asked, step = begin(head, what, env={**head[1], "OMP_NUM_THREADS": "1"})
    others = [int(asked.stdout.readline()) for _ in range(2 if what == "pool" else 1)]
    os.kill(step, signal.SIGKILL)
    assert asked.wait(60) == 128 + signal.SIGKILL
    assert all(ended(process) for process in others)


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_a_stopped_and_deaf_step_goes_with_its_head(own_head, start):
    asked, step = begin_deaf(own_head, start)
    own_head[2].kill()
    own_head[2].wait()
    assert asked.wait(60) != 0
    assert ended(step)


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_a_stopped_and_deaf_step_goes_with_its_command(head, start):
    asked, step = begin_deaf(head, start)
    asked.terminate()
    assert asked.wait(60) != 0
    assert ended(step)


def begin_deaf(head, start):
    """A step that ignores SIGTERM and is stopped besides."""
    asked, step = begin(head, "deaf", env={**head[1], "OMP_NUM_THREADS": "1" if start == "warm" else "2"})
    asked.stdout.readline()
    os.kill(step, signal.SIGSTOP)
    return asked, step


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_step_whose_command_is_asked_to_end_removes_its_temporary_files(head, threads):
    (head[0] / "tidied").unlink(missing_ok=True)
    asked, step = begin(head, "tidy", env={**head[1], "OMP_NUM_THREADS": threads})
    time.sleep(0.5)
    for process in (step, asked.pid):  # as when the whole process group is asked
        os.kill(process, signal.SIGTERM)
    assert asked.wait(60) != 0
    assert ended(step)
    assert (head[0] / "tidied").exists()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_log_names_the_signal_that_ended_a_step(head, threads):
    done = command(head, "kill", env={**head[1], "OMP_NUM_THREADS": threads})
    assert done.returncode == 128 + signal.SIGKILL
    assert (
        "SIGKILL ended this step: the kernel or the cluster ended it, most often because memory ran out" in done.stderr
    )


def test_none_of_our_own_modules_is_kept_warm():
    assert not [library for library in warm.LIBRARIES if library.startswith("ghost")]


def begin(head, what="wait", **changed):
    """A command whose step runs for long, and the step's process."""
    folder, environment, _ = head
    arguments = [sys.executable, "-m", "ghost.runs.warm", "step", what]
    options = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | changed
    asked = subprocess.Popen(arguments, **options)
    return asked, json.loads(asked.stdout.readline())["pid"]


def open_files(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def children_of(process: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def ended(process: int) -> bool:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        state = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False
