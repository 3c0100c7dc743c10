"""Messages: vla-eval's own code reads ours, we read vla-eval's, and everything else is one line."""

from contextlib import suppress

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vla_eval.protocol import messages as theirs
from vla_eval.protocol.numpy_codec import set_image_format

from ghost.errors import GhostError
from ghost.serving.protocol import ACTION, MOST_PIXELS, OBSERVATION, Message, pack, unpack

PICTURE = np.random.default_rng(0).integers(0, 256, (8, 6, 3), np.uint8)


def frame(**changes):
    return msgpack.packb({"type": OBSERVATION, "payload": {}, "seq": 1, "timestamp": 0.0, **changes})


def array(**changes):
    return {"__ndarray__": True, "data": b"\0" * 8, "dtype": "<f8", "shape": [1], **changes}


@pytest.mark.parametrize("form", ["raw", "png"])
def test_we_read_what_vla_eval_writes(form):
    set_image_format(form)
    try:
        sent = {"images": {"agentview": PICTURE}, "states": np.arange(8.0), "task_description": "put", "n": np.int64(3)}
        read = unpack(theirs.pack_message(theirs.Message(theirs.MessageType.OBSERVATION, sent, 5)))
    finally:
        set_image_format("png")
    assert (read.type, read.seq) == (OBSERVATION, 5)
    assert np.array_equal(read.payload["images"]["agentview"], PICTURE)
    assert np.array_equal(read.payload["states"], np.arange(8.0))
    assert (read.payload["task_description"], read.payload["n"]) == ("put", 3)


def test_vla_eval_reads_what_we_write():
    chunk = np.random.default_rng(1).standard_normal((16, 7))
    read = theirs.unpack_message(pack(Message(ACTION, {"actions": chunk, "phase": np.int64(2)}, 9)))
    assert (read.type, read.seq, read.payload["phase"]) == (theirs.MessageType.ACTION, 9, 2)
    assert np.array_equal(read.payload["actions"], chunk)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("text", "must be binary"),
        (b"", "is not msgpack"),
        (b"\x91" * 5000 + b"\x00", "is not msgpack"),
        (msgpack.packb([1]), "a message: it must be an object"),
        (frame(type="pickle"), "of type 'pickle'; known are hello"),
        (frame(seq=-1), "seq must be a whole number"),
        (frame(timestamp=float("nan")), "timestamp must be a finite number"),
        (frame(payload={"a": array(dtype="|O")}), "only numbers are taken"),
        (frame(payload={"a": array(dtype="f8,f8")}), "only numbers are taken"),
        (frame(payload={"a": array(dtype="(2,)f4")}), "only numbers are taken"),
        (frame(payload={"a": array(dtype="__import__('os')")}), "an array of type"),
        (frame(payload={"a": array(shape=[2])}), "with 8 bytes"),
        (frame(payload={"a": array(shape=[2**62, 2**62])}), "with 8 bytes"),
        (frame(payload={"a": array(shape=[1] * 40)}), "with 8 bytes"),
        (frame(payload={"a": array(data="text")}), "data must be bytes"),
        (frame(payload={"a": {"__image__": True, "format": "gif", "data": b""}}), "known are raw, png, jpeg"),
        (frame(payload={"a": {"__image__": True, "format": "png", "data": b"GIF89a"}}), "that is no png"),
        (frame(payload={"a": {"__image__": True, "format": "raw", "data": b"12"}}), "a picture: it must be an object"),
    ],
)
def test_what_is_no_message_is_one_line(sent, said):
    with pytest.raises(GhostError, match=said) as error:
        unpack(sent)
    assert len(str(error.value)) < 300


def test_a_picture_that_would_fill_the_memory_is_refused_before_it_is_read():
    import io

    from PIL import Image

    side = int(MOST_PIXELS**0.5) + 1
    bomb = io.BytesIO()
    Image.new("1", (side, side)).save(bomb, "PNG")
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(GhostError, match=f"a picture of {side} x {side} pixels"):
        unpack(frame(payload={"a": {"__image__": True, "format": "png", "data": bomb.getvalue()}}))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_one_line(sent):
    with suppress(GhostError):
        unpack(sent)


@given(st.integers(0, 10_000), st.integers(0, 255), st.sampled_from([PICTURE, np.arange(8.0), "put", 3]))
def test_any_changed_byte_is_a_message_or_one_line(place, byte, value):
    sent = bytearray(pack(Message(OBSERVATION, {"a": {"b": value}, "c": [value]}, 1)))
    sent[place % len(sent)] = byte
    with suppress(GhostError):
        unpack(bytes(sent))
