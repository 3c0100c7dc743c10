"""The policy server: one process, one device, a backbone and its decoders, for as many simulators as connect.

    python -m ghost.serving.server --features <manifest> --trained <manifest> --seeds 42 --unix <socket>

Each connection is a session, with one episode at a time. The observations that wait are planned together, up to `rows`
in a pass; what is planned for one does not depend on the others (`ghost.libero.policy`). What is not a message ends its
own connection. An observation that cannot be planned is an error for its own simulator. A fault of the device ends the
server, so that every simulator knows.

The server listens on a Unix socket or on this machine. For other machines it needs a token, which comes from a file, as
the password of the user `ghost`: ws://ghost:<token>@host:port. Pages of a browser are refused. GET /health answers when
the policy is loaded.
"""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from websockets.asyncio.server import ServerConnection, basic_auth, serve, unix_serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from ghost.backbones.groot_environment import device
from ghost.errors import GhostError, exit_on_error
from ghost.libero.policy import Asked, Planned, Policy, Session
from ghost.runs.records import Run, open_runs
from ghost.serving.observing import episode_of, observation_of, specifications
from ghost.serving.protocol import (
    ACTION,
    END,
    ERROR,
    HARNESS,
    HELLO,
    LIMIT_BYTES,
    OBSERVATION,
    START,
    USER,
    VERSION,
    Message,
    identity,
    pack,
    unpack,
)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST = 16  # characters of a token
MOST_SESSIONS = 512
PING_S, PATIENCE_S = 20.0, 120.0  # loading a model keeps other threads waiting
UNPLANNABLE = (GhostError, ValueError, TypeError, IndexError, KeyError)  # what a bad observation leads to


@dataclass
class Playing:
    """The episode of a connection."""

    session: Session
    whole: bool  # whole chunks are asked for, not single actions
    left: deque[np.ndarray] = field(default_factory=deque)  # of the last chunk
    told: str = ""


class Server:
    def __init__(self, policy: Policy, runs: Mapping[str, Any], execute: int, token: str = "") -> None:
        self.policy, self.runs, self.execute = policy, runs, execute
        self.check = basic_auth(realm=USER, credentials=(USER, token)) if token else None
        self.waiting: asyncio.Queue[tuple[Asked, asyncio.Future[Planned]]] = asyncio.Queue()
        self.sessions, self.ended = 0, False
        # a thread of torch's own number: sums split over threads round differently
        self.pool = ThreadPoolExecutor(1, initializer=partial(torch.set_num_threads, 1))

    async def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer /health, and refuse who may not connect."""
        if request.path == "/health":
            return connection.respond(HTTPStatus.OK, '{"status": "ok"}\n')
        if "Origin" in request.headers:
            return connection.respond(HTTPStatus.FORBIDDEN, "no browsers\n")
        if self.sessions >= MOST_SESSIONS:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_SESSIONS} sessions are open\n")
        return await self.check(connection, request) if self.check else None

    async def session(self, connection: ServerConnection) -> None:
        """One connection, from its first message to its last."""
        self.sessions += 1
        playing: Playing | None = None
        try:
            async for frame in connection:
                try:
                    message = unpack(frame)
                except GhostError as error:
                    await connection.send(pack(Message(ERROR, {"error": str(error)})))
                    await connection.close(1003, "not a message")
                    return
                try:
                    if message.type == START:
                        seed, whole = episode_of(message.payload)
                        playing = Playing(self.policy.session(seed), whole)
                    elif message.type == END:
                        playing = None
                    else:
                        kind, payload = await self.answer(message, playing)
                        await connection.send(pack(Message(kind, payload, message.seq)))
                except UNPLANNABLE as error:
                    said = f"{error}" if isinstance(error, GhostError) else f"{type(error).__name__}: {error}"
                    await connection.send(pack(Message(ERROR, {"error": said}, message.seq)))
        except ConnectionClosed:  # a simulator was killed: its job says so
            pass
        finally:
            self.sessions -= 1

    async def answer(self, message: Message, playing: Playing | None) -> tuple[str, dict[str, Any]]:
        if message.type == HELLO:
            about = {"harness_version": HARNESS, "protocol_version": VERSION, "model_server": USER, "capabilities": {}}
            return HELLO, {**about, **specifications(self.policy.senses), "ghost": dict(self.runs)}
        if message.type != OBSERVATION:
            raise GhostError(f"a simulator sends no message of type {message.type!r}")
        if playing is None:
            raise GhostError("an observation came before its episode_start")
        raw, instruction = observation_of(message.payload, self.policy.senses)
        if playing.whole:
            planned = await self.plan(Asked(playing.session, raw, instruction))
            return ACTION, {"actions": planned.actions, "phase": planned.phase}
        if not playing.left or playing.told != instruction:
            planned = await self.plan(Asked(playing.session, raw, instruction))
            playing.left, playing.told = deque(planned.actions[: self.execute]), instruction
        return ACTION, {"actions": playing.left.popleft().astype(np.float32)}

    async def plan(self, asked: Asked) -> Planned:
        if self.ended:
            raise GhostError("the server ends")
        answer: asyncio.Future[Planned] = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((asked, answer))
        return await answer

    async def plan_forever(self) -> None:
        """Plan for all who wait, as many at a time as a pass has rows."""
        batch: list[tuple[Asked, asyncio.Future[Planned]]] = []
        try:
            while True:
                batch = [await self.waiting.get()]
                while len(batch) < self.policy.rows and not self.waiting.empty():
                    batch.append(self.waiting.get_nowait())
                await self.plan_batch(batch)
        finally:
            self.ended = True
            while not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            for _, answer in batch:
                answer.cancel()

    async def plan_batch(self, batch: list[tuple[Asked, asyncio.Future[Planned]]]) -> None:
        async def plan(asked: list[Asked]) -> list[Planned]:
            return await asyncio.get_running_loop().run_in_executor(self.pool, self.policy.plan, asked)

        try:
            found = await plan([asked for asked, _ in batch])
            for (_, answer), planned in zip(batch, found, strict=True):
                _tell(answer, planned)
        except UNPLANNABLE:  # one of them; nothing was planned, so each can ask again
            for asked, answer in batch:
                try:
                    _tell(answer, (await plan([asked]))[0])
                except UNPLANNABLE as error:
                    _tell(answer, error)

    async def serve(self, place: "Place", beside: bool) -> None:
        """Until we are asked to end; `beside` a job, until its end of our standard input is closed."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if beside:
            loop.add_reader(sys.stdin.fileno(), partial(_at_end, stop))
        async with place.listen(self), asyncio.TaskGroup() as tasks:
            planning = tasks.create_task(self.plan_forever())
            print(f"serving on {place}", file=sys.stderr, flush=True)
            await stop.wait()
            planning.cancel()
        if beside and place.unix:  # a job that was killed cannot tidy up
            place.unix.unlink(missing_ok=True)
            with suppress(OSError):  # the job does it
                place.unix.parent.rmdir()


@dataclass(frozen=True)
class Place:
    """Where a server listens."""

    unix: Path | None
    host: str
    port: int

    def __str__(self) -> str:
        return f"unix:{self.unix}" if self.unix else f"ws://{self.host}:{self.port}"

    def listen(self, server: Server) -> AbstractAsyncContextManager[Any]:
        options: dict[str, Any] = {
            "process_request": server.admit,
            "max_size": LIMIT_BYTES,
            "max_queue": 2,  # frames that wait in a connection
            "compression": None,
            "ping_interval": PING_S,
            "ping_timeout": PATIENCE_S,
        }
        if self.unix:
            return unix_serve(server.session, str(self.unix), **options)
        return serve(server.session, self.host, self.port, **options)


def run(
    features: Path,
    trained: Path,
    seeds: tuple[int, ...] = (),
    rows: int = 1,
    execute: int = 8,
    unix: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: Path | None = None,
    beside: bool = False,
) -> None:
    """Serve trained decoders with the backbone of their features.

    Args:
        features: the manifest of the feature cache.
        trained: the manifest of the training.
        seeds: the seeds of its runs, which act together; without them, all.
        rows: of each pass of the networks: how many simulators are planned for at once.
        execute: for harnesses that ask at every step: so many actions of a chunk are executed before the next plan.
        unix: the Unix socket to listen on, in place of host and port.
        host: the address to listen on.
        port: and its port.
        token_file: a file with the token that clients must know; needed where other machines can connect.
        beside: end when standard input ends.
    """
    place, token = Place(unix, host, port), _token(token_file)
    if not unix and host not in LOOPBACK and not token:
        raise GhostError(f"other machines can connect to {host}: name a file with a token (--token-file)")
    (cache,) = open_runs(features)
    runs = chosen(trained, seeds)
    backbone = cache.record()["module"].removeprefix("ghost.backbones.")
    policy = Policy.load(backbone, cache, runs, rows, device())
    server = Server(policy, identity(cache, runs, rows), execute, token)
    os.umask(0o077)  # a socket is its owner's
    asyncio.run(server.serve(place, beside))


def chosen(trained: Path, seeds: tuple[int, ...]) -> list[Run]:
    """The runs of a training that act together."""
    runs = open_runs(trained)
    missing = set(seeds) - {run.seed for run in runs}
    if missing or not runs:
        there = ", ".join(str(run.seed) for run in runs)
        raise GhostError(f"{trained} has no run with seed {min(missing, default='')}; its seeds are {there}")
    return [run for run in runs if not seeds or run.seed in seeds]


def _token(path: Path | None) -> str:
    token = path.read_text(encoding="utf-8").strip() if path else ""
    if path and not (len(token) >= SHORTEST and token.isascii() and token.isprintable() and " " not in token):
        raise GhostError(f"{path}: a token has at least {SHORTEST} signs of ASCII and no spaces")
    return token


def _tell(answer: asyncio.Future[Planned], found: Planned | Exception) -> None:
    if answer.done():  # its simulator is gone
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def _at_end(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        stop.set()


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(run, config=(tyro.conf.FlagCreatePairsOff,)))
