"""A backbone of pixels that needs no weights: random features of patches, and a random vector per word.

T tokens, V cameras, P patches of a camera, h hidden, D token width. Any data set with cameras has features by it, on a
laptop. Like the other stand-in it is fixed: its weights are drawn from `weights_seed` and never trained.

* The picture of each camera is cut into P = rows x columns patches, and each patch is shrunk to SIDE x SIDE pixels.
* A random layer and tanh make h numbers of a patch, to which its place and some of the whole instruction are added.
* The first `text_tokens` tokens are the words of the instruction; then come the patches, camera by camera.
* A last random layer and an RMS norm make tokens [T, D] in half precision. Tokens that are left over are zeros.

It knows the pictures and the instruction, nothing else. It sees colours and places and understands neither.
"""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from PIL import Image

from ghost.backbones import Backbone, Observations, stand_in, word_rows
from ghost.data.features import Sizes
from ghost.errors import GhostError
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one

SIDE = 8  # pixels of a shrunk patch
CONTRAST = 4.0  # pixels become -CONTRAST / 2 to CONTRAST / 2, so that tanh bends


@dataclass(frozen=True)
class Settings:
    tokens: int  # T
    d_token: int  # D
    text_tokens: int  # of the T; the first ones
    hidden: int  # h
    weights_seed: int
    cameras: tuple[str, ...] = ()  # all, in the order of their names, when empty

    def __post_init__(self) -> None:
        at_least_one(self, "d_token", "text_tokens", "hidden")
        if not self.text_tokens < self.tokens:
            raise ValueError(f"text_tokens must leave some of {self.tokens} to the pictures, got {self.text_tokens}")


@dataclass(frozen=True)
class Weights:
    position: np.ndarray  # [T, h]: which token this is
    patch: np.ndarray  # [SIDE * SIDE * 3, h]
    out: np.ndarray  # [h, D]


@cache
def weights(settings: Settings) -> Weights:
    s, rng = settings, np.random.default_rng(settings.weights_seed)

    def normal(*shape: int, scale: float) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    pixels = SIDE * SIDE * 3
    return Weights(
        position=normal(s.tokens, s.hidden, scale=0.5),
        patch=normal(pixels, s.hidden, scale=pixels**-0.5),
        out=normal(s.hidden, s.d_token, scale=s.hidden**-0.5),
    )


def start(settings: Settings, sizes: Sizes, runs: list[Run]) -> Backbone:
    return stand_in(partial(encode, settings), runs)


def encode(settings: Settings, observations: Observations) -> np.ndarray:
    """Tokens [n, T, D] float16. Every sample is computed by itself, so that batches do not change the bytes."""
    s, w, n = settings, weights(settings), len(observations)
    cameras = s.cameras or tuple(sorted(observations.cameras))
    if not cameras:
        raise GhostError("the backbone `pixels` needs pictures, and the data set has no camera")
    rows, columns = grid(s.tokens - s.text_tokens, len(cameras))
    seen = [patches(observations.frames(camera), rows, columns) for camera in cameras]  # V of [n, P, pixels]
    words = np.stack(
        [word_rows(instruction, s.text_tokens, s.hidden, s.weights_seed) for instruction in observations.instructions]
    )  # [n, text, h]
    local = np.concatenate(seen, axis=1) @ w.patch  # [n, V * P, h]
    x = np.concatenate([words, local], axis=1) + 0.3 * words.mean(axis=1, keepdims=True)
    used = x.shape[1]
    tokens = np.tanh((x + w.position[:used]).astype(np.float32)) @ w.out
    rms = np.sqrt(np.square(tokens).mean(axis=-1, keepdims=True) + 1e-6)
    padded = np.zeros((n, s.tokens, s.d_token), np.float16)
    padded[:, :used] = tokens / rms
    return padded


def grid(tokens: int, cameras: int) -> tuple[int, int]:
    """Rows and columns of the patches of one camera, as square as the tokens allow."""
    each = tokens // cameras
    if not each:
        raise GhostError(f"{tokens} tokens for pictures are too few for {cameras} cameras; raise tokens")
    rows = int(np.sqrt(each))
    return rows, each // rows


def patches(pictures: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Pictures [n, height, width, 3] uint8 -> their shrunk patches [n, rows * columns, SIDE * SIDE * 3]."""
    size = (columns * SIDE, rows * SIDE)
    small = np.stack([np.asarray(Image.fromarray(each).resize(size, Image.Resampling.BOX)) for each in pictures])
    cut = small.reshape(len(small), rows, SIDE, columns, SIDE, 3).transpose(0, 1, 3, 2, 4, 5)
    scaled = CONTRAST * (cut.astype(np.float32) / 255 - 0.5)
    return np.ascontiguousarray(scaled.reshape(len(small), rows * columns, -1))
