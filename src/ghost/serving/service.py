"""A policy server beside a job: the job starts it, its simulators connect, and it ends with the job, however that ends.

The server may need another environment than the simulators, as GR00T's does: `GHOST_SERVE` names the interpreter that
runs it, and that there shall be one. The job holds the other end of the server's standard input, so the server ends
also when the job is killed.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ghost.errors import GhostError
from ghost.libero.sensing import Senses
from ghost.runs.ending import why
from ghost.runs.records import MANIFEST, Run, open_runs
from ghost.serving.client import UNIX, Client
from ghost.serving.protocol import identity

SERVE = "GHOST_SERVE"
GROOT = "ghost.backbones.groot"
READY_S, LOOK_S, GRACE_S = 1800.0, 0.1, 10.0  # the weights of a large model come from a shared file system
LONGEST = 90  # bytes of a socket's name; Linux takes 107


@dataclass(frozen=True)
class Service:
    """A server that is to be started, and its address. Simulators in other processes receive it as well."""

    python: str
    features: Run
    trained: tuple[Run, ...]
    rows: int
    folder: Path  # for its socket

    @classmethod
    def asked_for(cls, features: Run, trained: Sequence[Run], rows: int) -> "Service | None":
        """The server of this job, if it shall have one."""
        python = os.environ.get(SERVE)
        return cls(python, features, tuple(trained), rows, _new_folder()) if python else None

    @property
    def address(self) -> str:
        return f"{UNIX}{self.folder}/policy"

    def client(self) -> Client:
        return Client(self.address, Senses.of(self.features), identity(self.features, self.trained, self.rows))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the server, and wait until it is ready; end it in every case."""
        self.folder.mkdir(mode=0o700)
        server = self._start()
        try:
            self._wait(server)
            yield
        except GhostError as error:
            if server.poll() is None:
                raise
            raise GhostError(f"{error}; the server ended first: {_ending(server.returncode)}") from None
        finally:
            if server.stdin:
                server.stdin.close()  # asks it to end
            try:
                server.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> "subprocess.Popen[bytes]":
        seeds = [str(run.seed) for run in self.trained]
        manifests = (str(run.folder.absolute() / MANIFEST) for run in (self.features, self.trained[0]))
        named = [f"{option}={value}" for option, value in zip(("--features", "--trained"), manifests, strict=True)]
        place = [f"--unix={self.address.removeprefix(UNIX)}", f"--rows={self.rows}", "--beside", "--seeds", *seeds]
        command = [self.python, "-m", "ghost.serving.server", *named, *place]
        # sums split over threads round differently, and the cores are the simulators'
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            # S603: our own module, by the interpreter that the build names
            return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603
        except OSError as error:
            raise GhostError(f"{SERVE}: {self.python} does not start: {error.strerror}") from None

    def _wait(self, server: "subprocess.Popen[bytes]") -> None:
        until = time.monotonic() + READY_S
        while not Path(self.address.removeprefix(UNIX)).exists():
            if server.poll() is not None:
                raise GhostError("the policy server did not start")
            if time.monotonic() > until:
                raise GhostError(f"the policy server is not ready after {READY_S:g} s")
            time.sleep(LOOK_S)
        self.client().close()


def become_server(
    trained: Path, features: Path | None, seed: int | None, ensemble: bool, python: str, options: Mapping[str, Any]
) -> NoReturn:
    """`ghost serve`: this process goes on as the server, by the interpreter that its backbone needs."""
    runs = [run for run in open_runs(trained) if ensemble or seed in (None, run.seed)][: None if ensemble else 1]
    if not runs:
        raise GhostError(f"{trained} has no run with seed {seed}")
    found = open_runs(features) if features else runs[0].inputs("cache_features")
    if len(found) != 1:
        raise GhostError(f"{trained}: the features that it was trained on are not beside it; name them (--features)")
    own = ".venv-groot/bin/python" if found[0].record()["module"] == GROOT else sys.executable
    given = {"features": found[0].folder / MANIFEST, "trained": trained, **options}
    named = [f"--{option}={value}" for option, value in given.items()]
    seeds = [str(run.seed) for run in runs]
    command = [python or own, "-m", "ghost.serving.server", *named, "--seeds", *seeds]
    try:
        os.execvp(command[0], command)  # noqa: S606  # our own module
    except OSError as error:
        raise GhostError(f"{command[0]} does not start: {error.strerror}; `make .venv-groot/ready` makes it") from None


def _ending(code: int) -> str:
    return why(code).replace("this step", "it") or f"exit code {code}, its own last lines are above"


def _new_folder() -> Path:
    """For a socket, whose name has a limit; jobs may have a long folder for temporary files."""
    name = f"ghost-serve-{secrets.token_hex(8)}"
    folder = Path(tempfile.gettempdir()) / name
    return folder if len(str(folder)) <= LONGEST else Path("/tmp") / name  # noqa: S108
