"""The messages between simulators and a policy server: those of vla-eval 0.8.0, protocol version 1.

A message is one binary frame of a websocket: msgpack of {type, payload, seq, timestamp}. Types: hello, episode_start,
observation, action, episode_end, error. An array is a map with `__ndarray__`, a picture may be one with `__image__`.

What arrives may be anything. A frame has at most LIMIT_BYTES. An array has numbers of a fixed size, and just as many
bytes as its shape says. A picture has a known format and at most MOST_PIXELS. There is no pickle. Everything else is a
`GhostError`.
"""

import io
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np

from ghost.errors import GhostError, one_line
from ghost.forms import COUNT, require, shortened
from ghost.runs.records import Run

VERSION, HARNESS = 1, "0.8.0"
HELLO, START, END = "hello", "episode_start", "episode_end"
OBSERVATION, ACTION, ERROR = "observation", "action", "error"
TYPES = (HELLO, START, END, OBSERVATION, ACTION, ERROR)
LIMIT_BYTES = 32 << 20  # of a frame: four pictures of 1920 x 1080, uncompressed
MOST_PIXELS = 4096 * 4096
MOST_AXES = 8
FRAME = {"type": str, "payload": dict, "seq": COUNT, "timestamp": float}
ARRAY = {"data": bytes, "dtype": str, "shape": [COUNT]}
PICTURE = {"data": bytes, "format": str}
NUMBERS = "biuf"  # kinds of numpy's types: no objects, no texts, no records
USER = "ghost"  # in the address of a server with a token: ws://ghost:<token>@host:port


@dataclass(frozen=True)
class Message:
    type: str
    payload: dict[str, Any]
    seq: int = 0


def pack(message: Message) -> bytes:
    frame = {"type": message.type, "payload": message.payload, "seq": message.seq, "timestamp": time.time()}
    packed: bytes = msgpack.packb(frame, default=_plain, use_bin_type=True)
    return packed


def unpack(frame: bytes | str) -> Message:
    if isinstance(frame, str):
        raise GhostError("a message must be binary, this is text")
    try:
        given = msgpack.unpackb(frame, object_hook=_array, raw=False, strict_map_key=True)
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise GhostError(f"a message of {len(frame)} bytes is not msgpack: {shortened(one_line(str(error)))}") from None
    require(given, FRAME, "a message")
    if given["type"] not in TYPES:
        raise GhostError(f"a message of type {shortened(given['type'])!r}; known are {', '.join(TYPES)}")
    return Message(given["type"], given["payload"], given["seq"])


def identity(features: Run, trained: Sequence[Run], rows: int) -> dict[str, Any]:
    """What a client of ours checks in the server's hello: that this is the policy that it means."""
    return {"features": features.run_id, "trained": [run.run_id for run in trained], "rows": rows}


def _plain(value: Any) -> Any:
    """What msgpack does not know."""
    if isinstance(value, np.ndarray):
        whole = np.ascontiguousarray(value)
        return {"__ndarray__": True, "data": whole.tobytes(), "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"no message can hold {type(value).__name__}")


def _array(value: dict[str, Any]) -> Any:
    """A map as what it stands for."""
    if "__image__" in value:
        return _picture(value)
    if "__ndarray__" not in value:
        return value
    require(value, ARRAY, "an array")
    return _numbers(value["data"], value["dtype"], value["shape"])


def _numbers(data: bytes, kind: str, shape: list[int]) -> np.ndarray:
    try:
        dtype = np.dtype(kind)
    except (TypeError, ValueError, SyntaxError):
        raise GhostError(f"an array of type {shortened(kind)!r}") from None
    if dtype.kind not in NUMBERS or dtype.subdtype is not None:
        raise GhostError(f"an array of type {shortened(kind)!r}: only numbers are taken")
    if len(shape) > MOST_AXES or math.prod(shape) * dtype.itemsize != len(data):
        raise GhostError(f"an array {shortened(str(shape))} of {dtype}, with {len(data)} bytes")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _picture(value: Mapping[str, Any]) -> np.ndarray:
    """[height, width, channels] uint8."""
    require(value, PICTURE, "a picture")
    if value["format"] == "raw":
        require(value, ARRAY, "a picture")
        return _numbers(value["data"], value["dtype"], value["shape"])
    from PIL import Image  # only other harnesses compress

    known = {"png": "PNG", "jpeg": "JPEG"}
    if value["format"] not in known:
        raise GhostError(f"a picture of format {shortened(value['format'])!r}; known are raw, png, jpeg")
    try:
        with Image.open(io.BytesIO(value["data"]), formats=[known[value["format"]]]) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise GhostError(f"a picture of {picture.width} x {picture.height} pixels; {MOST_PIXELS} are taken")
            return np.asarray(picture)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise GhostError(f"a picture that is no {value['format']}: {shortened(one_line(str(error)))}") from None
