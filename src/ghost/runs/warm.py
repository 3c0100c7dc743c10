"""Start a step fast: `python -m ghost.runs.warm ghost.steps.train ...` does as `python -m ghost.steps.train ...`.

Importing torch takes longer than most of our jobs. So `snakemake` on one machine starts one process that imports the
heavy libraries, none of our own modules, and forks once per job; the command above hands its arguments, environment and
open files over, waits, and ends as the step did; a step whose command is killed is ended. Whoever runs it elsewhere (a
cluster's job, a user) gets a cold start and the same result. All stay in Snakemake's process group, as with that one.
The warm process goes when Snakemake does, after its last job.
"""

import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

SOCKET = "GHOST_WARM"  # the variable that names the socket, set for the jobs of one `snakemake`
THREADS = "OMP_NUM_THREADS"  # libraries read it when they are imported: a job that wants more than one starts cold
LIBRARIES = ("torch", "pandas", "scipy.stats", "seaborn", "tyro", "safetensors.numpy")


def start() -> None:
    """Start the warm process for the jobs of this one: it ends with us, at the end of its standard input."""
    path = Path(tempfile.mkdtemp(prefix="ghost-")) / "warm"  # a folder that only its user can enter
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        os.environ[SOCKET] = str(path)
        command = [sys.executable, "-m", "ghost.runs.warm", "--serve", str(listener.fileno())]
        end, _ = os.pipe()  # nobody writes; it is open as long as we live
        # S603: the command is this very program
        subprocess.Popen(command, stdin=end, pass_fds=[listener.fileno()], env={**os.environ, THREADS: "1"})  # noqa: S603
        os.close(end)


class Server:
    """Forks a step for every connection and answers with its exit code."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.selector = selectors.DefaultSelector()
        self.on(sys.stdin.fileno(), self.head_gone)
        self.on(listener.fileno(), self.fork)

    def on(self, descriptor: int, then: Callable[[], Any]) -> None:
        self.selector.register(descriptor, selectors.EVENT_READ, then)

    def serve(self) -> dict[str, Any] | None:
        """What to run, in a child; None in the server itself, at its end."""
        while len(self.selector.get_map()) > 1:  # besides the listener there is the head or a step
            for key, _ in self.selector.select():
                if key.fd in self.selector.get_map() and (request := key.data()) is not None:
                    return request  # type: ignore[no-any-return]
        return None

    def head_gone(self) -> None:
        self.selector.unregister(sys.stdin.fileno())

    def fork(self) -> dict[str, Any] | None:
        connection = self.listener.accept()[0]
        size, streams, _, _ = socket.recv_fds(connection, 8, 3)
        request: dict[str, Any] = json.loads(connection.recv(int.from_bytes(size), socket.MSG_WAITALL))
        command = connection.detach()
        process = os.fork()
        if not process:
            os.close(command)
            for key in list(self.selector.get_map().values()):
                os.close(key.fd)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            return request
        for stream in streams:
            os.close(stream)
        self.on(command, partial(self.command_gone, process, command))
        handle = os.pidfd_open(process)
        self.on(handle, partial(self.step_ended, process, command, handle))
        return None

    def command_gone(self, process: int, command: int) -> None:
        """Nobody waits for the step any more."""
        self.selector.unregister(command)
        os.kill(process, signal.SIGTERM)

    def step_ended(self, process: int, command: int, handle: int) -> None:
        self.selector.unregister(handle)
        os.close(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if command in self.selector.get_map():
            self.selector.unregister(command)
            with suppress(BrokenPipeError):
                os.write(command, str(code).encode())
        os.close(command)


def run(module: str, arguments: list[str]) -> None:
    """What `python -m module arguments` does, and says of itself in the records."""
    sys.argv = [module, *arguments]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def serve(descriptor: int) -> None:
    """The warm process. In its children this goes on as the step."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the steps; we end after them
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()  # else a collection in a child would copy every page that it only looks at
    with socket.socket(fileno=descriptor) as listener:
        request = Server(listener).serve()
        if request is None:
            path = Path(os.environ[SOCKET])
            path.unlink()
            path.parent.rmdir()
            return
        listener.detach()  # it is the server's; a child has closed its own
    Path("/proc/self/comm").write_text(request["module"], encoding="ascii")  # its name in top and ps
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    run(request["module"], request["arguments"])


def ask(path: str, module: str, arguments: list[str]) -> int | None:
    """The exit code of a step that the warm process ran for us; None when there is no such process."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError:
            return None
        place = {"folder": str(Path.cwd()), "environment": dict(os.environ)}
        request = json.dumps({"module": module, "arguments": arguments, **place}).encode()
        socket.send_fds(connection, [len(request).to_bytes(8)], [0, 1, 2])
        connection.sendall(request)
        answer = connection.recv(16)
    if not answer:
        print("ghost: error: the warm process that ran this step ended", file=sys.stderr)
    return int(answer or 1)


def main() -> None:
    """The command line: `--serve DESCRIPTOR`, or a module and its arguments."""
    if sys.argv[1] == "--serve":
        serve(int(sys.argv[2]))
        return
    module, *arguments = sys.argv[1:]
    path = os.environ.get(SOCKET)
    if path and os.environ.get(THREADS, "1") == "1":
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of ours above the step's own last words
        if (code := ask(path, module, arguments)) is not None:
            sys.exit(code if code >= 0 else 128 - code)  # as a shell says it of a step that a signal ended
    run(module, arguments)


if __name__ == "__main__":
    main()
