"""The warm process: it forks a step for every connection and answers with the exit code of the step.

A connection brings the size of a request, three open files and the request as JSON. It may also bring anything else,
or nothing: whatever a client does, it is closed and nothing is forked. A step that starts says so itself, over its
connection. So a client that hears nothing before the end knows that nothing was started.
"""

import ctypes
import json
import os
import selectors
import signal
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

LIMIT_BYTES = 16 << 20  # of a request; Linux allows less for a command line and its environment
REQUEST_S = 10.0  # a client has this long to send its request
WAITING = 64  # clients whose requests are not complete
GRACE_S = 5.0  # from SIGTERM to SIGKILL: a step may remove its temporary files
TICK_S = 0.1  # how often we look for what is overdue, while there is anything
STARTED = b"+"  # what a step says first
FIELDS = {"module": str, "arguments": list, "folder": str, "environment": dict}
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>


def end_with(parent: int) -> None:
    """The kernel ends this process when its parent, the process that forked it, ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)


def is_ours(connection: socket.socket) -> bool:
    """Whether the other end belongs to the same user: anybody on the machine may connect to such a socket."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(user == os.getuid())


def stat_of(process: int) -> list[str]:
    """The fields of /proc/<process>/stat from the third on: state, parent, ...; empty when there is no such process."""
    try:
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def children() -> list[int]:
    """Our own, and those that became ours because their parent ended."""
    processes = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal()]
    return [process for process in processes if stat_of(process)[1:2] == [str(os.getpid())]]


@dataclass
class Request:
    """A connection whose request is not complete."""

    connection: socket.socket
    until_s: float
    streams: list[int] = field(default_factory=list)
    content: bytes = b""

    def read(self) -> dict[str, Any] | None:
        """The request when it is complete, None before; ValueError or OSError when it is not a request."""
        if not self.content:
            received, self.streams, flags, _ = socket.recv_fds(self.connection, 1 << 16, 3)
            if len(self.streams) != 3 or flags & socket.MSG_CTRUNC:
                raise ValueError("not three open files")
        else:
            received = self.connection.recv(1 << 16)
        if not received:
            raise ValueError("the client went away")
        self.content += received
        size = int.from_bytes(self.content[:8])
        if (len(self.content) >= 8 and size > LIMIT_BYTES) or len(self.content) > 8 + size:
            raise ValueError("too long")
        return checked(self.content[8:]) if len(self.content) == 8 + size else None

    def close(self) -> None:
        self.connection.close()
        for stream in self.streams:
            os.close(stream)


def checked(content: bytes) -> dict[str, Any]:
    try:
        asked: dict[str, Any] = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(asked, dict) or {key: type(value) for key, value in asked.items()} != FIELDS:
        raise ValueError("not a request")
    if not all(isinstance(text, str) for text in [*asked["arguments"], *asked["environment"].values()]):
        raise ValueError("not texts")
    return asked


class Server:
    """Forks steps until its head is gone, its steps have ended, and so has all that they left."""

    def __init__(self, listener: socket.socket, head: int) -> None:
        self.listener, self.head = listener, head  # a file that is at its end when the head is gone
        self.requests: dict[int, Request] = {}
        self.steps: set[int] = set()
        self.ending: dict[int, float] = {}  # processes that were asked to end, and when we kill them
        self.sweep_until_s = 0.0
        self.selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self.on(head, self.head_gone)
        self.on(listener.fileno(), self.accept)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)

    def on(self, descriptor: int, then: Callable[[], Any]) -> None:
        self.selector.register(descriptor, selectors.EVENT_READ, then)

    def serve(self) -> dict[str, Any] | None:
        """The request to run, in a child; None in the server itself, at its end."""
        while self.head in self.selector.get_map() or self.steps or self.is_busy():
            for key, _ in self.selector.select(TICK_S if self.is_busy() else None):
                known = self.selector.get_map().get(key.fd) == key  # no earlier one of this round closed it
                if known and (request := key.data()) is not None:
                    return request  # type: ignore[no-any-return]
            self.close_overdue()
            self.sweep()
        return None

    def is_busy(self) -> bool:
        return bool(self.requests or self.ending) or time.monotonic() < self.sweep_until_s

    def head_gone(self) -> None:
        self.selector.unregister(self.head)

    def accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:  # the client went away
            return
        connection.setblocking(False)
        if not is_ours(connection) or len(self.requests) >= WAITING:
            connection.close()
            return
        request = Request(connection, time.monotonic() + REQUEST_S)
        self.requests[connection.fileno()] = request
        self.on(connection.fileno(), partial(self.receive, request))

    def receive(self, request: Request) -> dict[str, Any] | None:
        try:
            asked = request.read()
        except (OSError, ValueError):
            self.forget(request).close()
            return None
        return asked and self.fork(self.forget(request), asked)

    def forget(self, request: Request) -> Request:
        self.selector.unregister(request.connection)
        return self.requests.pop(request.connection.fileno())

    def close_overdue(self) -> None:
        for request in [each for each in self.requests.values() if time.monotonic() > each.until_s]:
            self.forget(request).close()

    def fork(self, request: Request, asked: dict[str, Any]) -> dict[str, Any] | None:
        server = os.getpid()
        try:
            process = os.fork()
        except OSError:  # no memory, or too many processes: the client does without us
            request.close()
            return None
        if not process:
            self.become(request, server)
            return asked
        self.steps.add(process)
        command, handle = request.connection.detach(), os.pidfd_open(process)
        self.on(command, partial(self.command_gone, process, command))
        self.on(handle, partial(self.step_ended, process, command, handle))
        for stream in request.streams:
            os.close(stream)
        return None

    def become(self, request: Request, server: int) -> None:
        """In the child: no files but those of the command, and the server's end is ours."""
        end_with(server)
        try:
            request.connection.send(STARTED)
        except OSError:  # nobody waits for it
            os._exit(1)
        for waiting in self.requests.values():
            waiting.close()
        for key in list(self.selector.get_map().values()):
            if key.fd != self.head and key.fileobj not in self.requests:
                os.close(key.fd)
        self.selector.close()
        for number, stream in enumerate(request.streams):
            os.dup2(stream, number)
        request.close()

    def command_gone(self, process: int, command: int) -> None:
        """Nobody waits for the step any more."""
        self.selector.unregister(command)
        self.end(process)

    def step_ended(self, process: int, command: int, handle: int) -> None:
        self.selector.unregister(handle)
        os.close(handle)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self.steps.discard(process)
        self.ending.pop(process, None)
        if command in self.selector.get_map():
            self.selector.unregister(command)
            with suppress(OSError):
                os.write(command, str(code).encode())
        os.close(command)
        self.sweep_until_s = time.monotonic() + TICK_S

    def end(self, process: int) -> None:
        """Ask a process to end; kill it when it has not ended later (it may be stopped, or deep in compiled code)."""
        if process not in self.ending:
            self.ending[process] = time.monotonic() + GRACE_S
            os.kill(process, signal.SIGTERM)
        elif time.monotonic() > self.ending[process]:
            os.kill(process, signal.SIGKILL)

    def sweep(self) -> None:
        """End what is overdue, and the processes that a step left: they became ours when it ended."""
        if not self.ending and time.monotonic() > self.sweep_until_s:
            return
        for process in self.steps & self.ending.keys():
            self.end(process)
        for process in set(children()) - self.steps:
            if os.waitpid(process, os.WNOHANG)[0]:
                self.ending.pop(process, None)
                self.sweep_until_s = time.monotonic() + TICK_S  # its own children may be ours now
            else:
                self.end(process)
