"""Start a step fast: `python -m ghost.runs.warm ghost.steps.train ...` does as `python -m ghost.steps.train ...`.

Importing torch takes longer than most of our jobs. So `snakemake` on one machine, the head, starts one process that
imports the heavy libraries, none of our own modules, and forks once per job (`fork_server`). The command above hands
its arguments, environment and open files over, waits, and ends as the step did. Where there is no warm process (a
cluster's job, a user, a job with more threads, a warm process that was killed) it forks itself: a cold start with the
same result.

Nothing is left behind. A step ends with its command and with the process that forked it. A command ends with its head.
The warm process goes when the head does, after the last step. Its socket has no name in the file system. The
temporary files of steps are in a folder of their head, which goes with the head or, when everything was killed at once,
at the start of the next one. All stay in the head's process group, as without it.
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import re
import runpy
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from ghost.runs.ending import why
from ghost.runs.fork_server import GRACE_S, STARTED, Server, end_with, is_ours, stat_of

WARM = "GHOST_WARM"  # the variable that names socket and head, set for the jobs of one `snakemake`
NAME = re.compile(r"ghost-(?P<head>\d+)-(?P<born>\d+)-(?P<group>\d+)-[0-9a-f]+")
THREADS = "OMP_NUM_THREADS"  # libraries read it when they are imported: a job that wants more than one starts cold
LIBRARIES = (
    *("torch", "pandas", "scipy.stats", "seaborn", "sklearn.metrics", "tyro", "typeguard", "safetensors.numpy"),
    *("packaging.markers", "yaml"),
)
LINUX = sys.platform == "linux"  # elsewhere there are no such sockets, and a step runs in its command
GONE = "ghost: error: the Snakemake that started this step is gone"
ANSWER_S = 120.0  # the warm process has this long to start a step: at first it imports its libraries


def start() -> None:
    """Start the warm process for the jobs of this one: it ends with us, at the end of its standard input."""
    if not LINUX:
        return
    name = f"ghost-{os.getpid()}-{born(os.getpid())}-{os.getpgrp()}-{secrets.token_hex(8)}"
    own_temporary_folder(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen(64)
        os.environ[WARM] = name
        command = [sys.executable, "-m", "ghost.runs.warm", "--serve", str(listener.fileno())]
        end, _ = os.pipe()  # nobody writes; it is open as long as we live
        # S603: the command is this very program
        subprocess.Popen(command, stdin=end, pass_fds=[listener.fileno()], env={**os.environ, THREADS: "1"})  # noqa: S603
        os.close(end)


def temporary_folder(name: str) -> Path:
    """For the temporary files of all steps of a head."""
    return Path(tempfile.gettempdir()) / name


def own_temporary_folder(name: str) -> None:
    """Make it, and remove those whose heads were killed. A head locks its own, so it is free when the head is gone."""
    mine = temporary_folder(name)
    mine.mkdir(mode=0o700)
    fcntl.flock(os.open(mine, os.O_RDONLY), fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, mine, ignore_errors=True)
    for folder in mine.parent.glob("ghost-*"):
        with suppress(OSError):  # another one removes it as well, or a head holds it
            if NAME.fullmatch(folder.name) and folder.stat().st_uid == os.getuid():
                descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                finally:
                    os.close(descriptor)


def born(process: int) -> str:
    """When a process started, in ticks since the machine did; "" when it is gone or only a zombie."""
    fields = stat_of(process)
    return fields[19] if fields and fields[0] not in "ZX" else ""


def run(module: str, arguments: list[str]) -> None:
    """What `python -m module arguments` does, and says of itself in the records."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _leave)
    tempfile.tempdir = None  # it is asked again: the environment is that of the step now
    sys.argv = [module, *arguments]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def run_and_end(module: str, arguments: list[str]) -> NoReturn:
    """Run a step in a process of its own, and end as Python does, but for its last look at all objects.

    This look writes to every page of the libraries, which a forked process then has to copy: 0.3 s of each step.
    multiprocessing ends its processes so, too.
    """
    try:
        run(module, arguments)
    except SystemExit as end:
        if end.code:
            raise
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _leave(number: int, _: Any) -> NoReturn:
    """End by an exception, so that the step removes its temporary files; once, whoever else asks meanwhile."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def serve(descriptor: int) -> None:
    """The warm process. In its children this goes on as the step."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the steps; we end after them
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()  # else a collection in a child would copy every page that it only looks at
    with socket.socket(fileno=descriptor) as listener:
        request = Server(listener, sys.stdin.fileno()).serve()
        if request is None:
            shutil.rmtree(temporary_folder(os.environ[WARM]), ignore_errors=True)
            return
        listener.detach()  # it is the server's; a child has closed its own
    Path("/proc/self/comm").write_text(request["module"], encoding="ascii")  # its name in top and ps
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for name in [name for name in sys.modules if name.startswith("ghost.")]:
        del sys.modules[name]  # a step imports our modules as they are now
    run_and_end(request["module"], request["arguments"])


class Head:
    """The Snakemake that started this command, as the variable names it; none for a user or on a cluster."""

    def __init__(self, name: str) -> None:
        self.socket, self.descriptor = "", -1
        if not (found := NAME.fullmatch(name)):
            return
        with suppress(OSError):
            self.descriptor = os.pidfd_open(int(found["head"]))
        if born(int(found["head"])) == found["born"]:
            self.socket = f"\0{name}"
            if (folder := temporary_folder(name)).is_dir():
                os.environ |= dict.fromkeys(("TMPDIR", "TMP", "TEMP", "TEMPDIR"), str(folder))
        elif int(found["group"]) == os.getpgrp():
            sys.exit(GONE)
        else:  # the variable is an old one
            self.descriptor = -1

    def wait(self, descriptor: int) -> None:
        """Wait until a file can be read, and leave when the head is gone."""
        watched = [each for each in (descriptor, self.descriptor) if each >= 0]
        if descriptor not in select.select(watched, [], [])[0]:
            sys.exit(GONE)


def ask(head: Head, module: str, arguments: list[str]) -> int | None:
    """The exit code of a step that the warm process ran for us; None when it started none."""
    place = {"folder": str(Path.cwd()), "environment": dict(os.environ)}
    request = json.dumps({"module": module, "arguments": arguments, **place}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(head.socket)
            if not is_ours(connection):
                return None
            socket.send_fds(connection, [len(request).to_bytes(8)], [0, 1, 2])
            connection.sendall(request)
            if connection.recv(1) != STARTED:
                return None
        except OSError:
            return None
        head.wait(connection.fileno())
        answer = b""
        with suppress(OSError):
            answer = connection.recv(16)
    if not answer:
        print("ghost: error: the warm process that ran this step was killed, and the step with it", file=sys.stderr)
    return int(answer or 1)


def cold(head: Head, module: str, arguments: list[str]) -> int:
    """The exit code of a step that a child of ours runs. In the child this goes on as the step."""
    command = os.getpid()
    process = os.fork()
    if not process:
        end_with(command)
        run_and_end(module, arguments)
    signal.signal(signal.SIGTERM, _leave)
    handle = os.pidfd_open(process)
    try:
        head.wait(handle)
    except KeyboardInterrupt:  # the step was interrupted as well
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except SystemExit:
        os.kill(process, signal.SIGTERM)
    if not select.select([handle], [], [], GRACE_S)[0]:
        os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main() -> None:
    """The command line: `--serve DESCRIPTOR`, or a module and its arguments."""
    if sys.argv[1] == "--serve":
        serve(int(sys.argv[2]))
        return
    module, *arguments = sys.argv[1:]
    if not LINUX:
        run(module, arguments)
        return
    head, code = Head(os.environ.get(WARM, "")), None
    if head.socket and os.environ.get(THREADS, "1") == "1":
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of ours above the step's own last words
        code = ask(head, module, arguments)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if code is None:
        code = cold(head, module, arguments)
    if said := why(code):
        print(f"ghost: error: {said}", file=sys.stderr)
    sys.exit(code if code >= 0 else 128 - code)  # as a shell says it of a step that a signal ended


if __name__ == "__main__":
    main()
