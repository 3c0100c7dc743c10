"""The other side of a policy server, a simulator or a robot: it starts episodes and asks for plans.

A server that is gone, slow or not the one that is meant is one clear line and the end of the job: the episode is not
recorded, and the next try of the job plays it again.
"""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect, unix_connect

from ghost.errors import GhostError, one_line
from ghost.forms import require, shortened
from ghost.libero.conventions import D_ACTION
from ghost.libero.policy import Planned
from ghost.libero.sensing import Raw, Senses
from ghost.serving.protocol import (
    ACTION,
    ERROR,
    HARNESS,
    HELLO,
    LIMIT_BYTES,
    OBSERVATION,
    START,
    VERSION,
    Message,
    pack,
    unpack,
)

UNIX = "unix:"  # begins the address of a server on a Unix socket
OPEN_S = 10.0
ANSWER_S = 900.0  # a plan on a device that many share; a server that ended is noticed at once
PHASE = range(-1, 1000)


class Robot:
    """A robot's side: it takes the policy that it finds, with actions of any width."""

    width = 0  # of the actions; 0: any

    def __init__(self, address: str, answer_s: float = ANSWER_S) -> None:
        """Connect. `hello` says what to send and what the actions mean."""
        self.seq, self.answer_s = 0, answer_s
        self.address = re.sub("//[^/]*@", "//", address)  # as errors show it: without a token
        self.open = ExitStack()
        options: dict[str, Any] = {"max_size": LIMIT_BYTES, "compression": None, "ping_interval": None}
        options |= {"open_timeout": OPEN_S}
        try:
            if address.startswith(UNIX):
                opening = unix_connect(address.removeprefix(UNIX), "ws://localhost/", **options)
            else:
                opening = connect(address, **options)
            self.connection: ClientConnection = self.open.enter_context(opening)
        except (OSError, InvalidHandshake, InvalidURI) as error:
            raise GhostError(f"no policy server at {self.address}: {one_line(str(error))}") from None
        self.hello = self._ask(HELLO, {"harness_version": HARNESS, "protocol_version": VERSION}, HELLO)

    def start(self, seed: int) -> None:
        self._send(START, {"ghost": {"seed": seed}})

    def plan(self, raw: Raw, instruction: str) -> Planned:
        answer = self._ask(OBSERVATION, {"raw": raw, "task_description": instruction}, ACTION)
        where = f"the policy server at {self.address}: its answer"
        require(answer, {"actions": np.ndarray, "phase": PHASE}, where)
        actions = answer["actions"]
        fits = actions.ndim == 2 and self.width in (0, actions.shape[1])
        if not fits or not len(actions) or not np.isfinite(actions).all():
            raise GhostError(f"{where} has actions {actions.shape}, expected finite ones [H, {self.width or 'd'}]")
        return Planned(actions.astype(np.float64), answer["phase"])

    def close(self) -> None:
        self.open.close()

    def _ask(self, kind: str, payload: dict[str, Any], wanted: str) -> dict[str, Any]:
        seq = self._send(kind, payload)
        try:
            answer = unpack(self.connection.recv(timeout=self.answer_s))
        except TimeoutError:
            self.close()
            raise GhostError(f"the policy server at {self.address} did not answer within {self.answer_s:g} s") from None
        except (WebSocketException, OSError) as error:
            raise self._gone(error) from None
        if answer.type == ERROR:
            raise GhostError(f"the policy server at {self.address}: {one_line(str(answer.payload.get('error')))}")
        if (answer.type, answer.seq) != (wanted, seq):
            raise GhostError(f"the policy server at {self.address} answered {answer.type} {answer.seq} to {kind} {seq}")
        return answer.payload

    def _send(self, kind: str, payload: dict[str, Any]) -> int:
        self.seq += 1
        try:
            self.connection.send(pack(Message(kind, payload, self.seq)))
        except (ConnectionClosed, OSError) as error:
            raise self._gone(error) from None
        return self.seq

    def _gone(self, error: Exception) -> GhostError:
        return GhostError(
            f"the policy server at {self.address} is gone ({shortened(one_line(str(error)))}): this episode is not"
            " recorded; run the job again, finished episodes are kept"
        )


class Client(Robot):
    """A simulator's side, as `ghost.libero.policy.Acting`."""

    width = D_ACTION

    def __init__(self, address: str, senses: Senses, runs: Mapping[str, Any], answer_s: float = ANSWER_S) -> None:
        """Connect. `runs` are those of the policy that is meant (`protocol.identity`)."""
        super().__init__(address, answer_s)
        self.senses = senses
        if self.hello.get("ghost") != runs:
            self.close()
            raise GhostError(f"the policy server at {self.address} serves {self.hello.get('ghost')}, not {dict(runs)}")
