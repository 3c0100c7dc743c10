"""Pictures of a LeRobot data set: frames of a video, or PNG and JPEG files in a column of the data.

All of them may come from elsewhere: a size that the meta data do not announce, a damaged file and any other format are
refused.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
from av.container import InputContainer
from av.video.stream import VideoStream
from PIL import Image, UnidentifiedImageError

from ghost.errors import GhostError, one_line
from ghost.forms import has_form

FORMATS = ("PNG", "JPEG")
SIDE = range(1, 4097)  # pixels
BYTES = "bytes"  # the field of a picture's struct; `path` beside it names the file that it came from


def is_picture(kind: pa.DataType) -> bool:
    """Whether a column of this type holds pictures."""
    return bool(pa.types.is_struct(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def decode_pictures(column: pa.ChunkedArray, shape: Any, where: str) -> np.ndarray:
    """Pictures [n, height, width, 3] uint8 of a column. `shape` is what the meta data say: [height, width, 3], or
    [3, height, width] as of a tensor. The files are the same."""
    if has_form(shape, [int]) and len(shape) == 3 and shape[0] == 3 != shape[2]:
        shape = [*shape[1:], 3]
    if not has_form(shape, [int]) or len(shape) != 3 or not all(side in SIDE for side in shape[:2]):
        raise GhostError(f"{where}: the meta data must say its shape, height, width and 3, got {shape!r}")
    files = column.to_pylist()
    return np.stack([_decode_picture(file, tuple(shape[:2]), where) for file in files])


def _decode_picture(file: Any, sides: tuple[int, int], where: str) -> np.ndarray:
    content = file.get(BYTES) if isinstance(file, dict) else file
    if not isinstance(content, bytes):
        raise GhostError(f"{where} holds no pictures: each must be the bytes of a PNG or JPEG file")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if (image.height, image.width) != sides:  # before it is decoded, which may take any memory
                raise GhostError(f"{where}: a picture of {image.height} x {image.width}, the meta data say {sides}")
            return np.asarray(image.convert("RGB"))
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise GhostError(f"{where}: a picture cannot be decoded ({one_line(str(error))})") from None


def check_video(path: Path, frames: int, camera: str) -> None:
    """Refuse a video that cannot be opened, whose header says fewer frames than its episodes have steps, or that ends
    before the frames of its header do. A header may stand before the frames, so that a truncated file still opens."""
    try:
        with av.open(str(path)) as container:
            streams = container.streams.video
            found = streams[0].frames if streams else 0  # 0 where the header does not say
            there = _frames_to_the_end(container, streams[0]) if found else 0
    except av.error.FFmpegError as error:
        raise GhostError(f"{path}: the video of camera {camera!r} is truncated or none ({error.strerror})") from None
    if not streams or 0 < found < frames:
        raise GhostError(f"{path}: camera {camera!r} has {found} frames, its episodes have {frames} steps")
    if there < found:
        raise GhostError(
            f"{path}: the video of camera {camera!r} is truncated: {there} of its {found} frames are whole"
        )


def _frames_to_the_end(container: InputContainer, stream: VideoStream) -> int:
    """Frames up to the last whole one, by the times at which they are decoded: what lies between the first frame and
    the last keyframe is not read, and nothing is decoded."""
    if stream.duration is None or stream.time_base is None or stream.average_rate is None:
        return stream.frames
    first = next(_decoding_times(container, stream), None)
    container.seek((stream.start_time or 0) + stream.duration, stream=stream)
    last = max(_decoding_times(container, stream), default=None)
    return 0 if first is None or last is None else round((last - first) * stream.time_base * stream.average_rate) + 1


def _decoding_times(container: InputContainer, stream: VideoStream) -> Iterator[int]:
    """Of the frames that are whole."""
    for packet in container.demux(stream):
        if packet.size and packet.dts is not None and not packet.is_corrupt:
            yield packet.dts


def decode_video(path: Path, fps: float, left: list[int]) -> Iterator[tuple[int, np.ndarray]]:
    """Frames of a video by number, in rising order. The error names a frame that is damaged or absent."""
    try:
        opened = av.open(str(path))
    except av.error.FFmpegError as error:
        raise GhostError(f"{path} is not a video: {error.strerror}") from None
    with opened as container:
        if not container.streams.video:
            raise GhostError(f"{path} has no video stream")
        stream = container.streams.video[0]
        stream.codec_context.options = {"err_detect": "explode"}  # else ffmpeg conceals damage and goes on
        if left and left[0] > 0 and stream.time_base:
            container.seek(int(left[0] / fps / stream.time_base), stream=stream)  # to the keyframe before
        for packet in container.demux(stream):
            if not left:
                return
            try:
                decoded = packet.decode()
            except av.error.FFmpegError as error:
                number = round(float((packet.pts or 0) * packet.time_base) * fps)
                raise GhostError(f"{path}: frame {number} cannot be decoded ({error.strerror})") from None
            for frame in decoded:
                number = round(float(frame.time or 0.0) * fps)
                if frame.is_corrupt:
                    raise GhostError(f"{path}: frame {number} cannot be decoded (corrupt)")
                if left and number == left[0]:
                    yield left.pop(0), frame.to_ndarray(format="rgb24")
    if left:
        raise GhostError(f"{path}: frame {left[0]} is missing")
