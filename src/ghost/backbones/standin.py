"""The stand-in backbone: tokens of GR00T's shape and type from what a camera and the instruction would tell.

T tokens, D token width, P = T - text_tokens image patches, h hidden. Like a vision-language model it

* cuts the table into patches: a patch sees what lies near it (object, target, two distractors, both hands with their
  fingers), as the sum of a fixed random code per thing, stronger the nearer it is;
* has a random vector per word of the instruction, in the text tokens;
* mixes: every token also carries some of the whole scene and of the whole instruction, as attention would make it;
* is bothered by the lighting, and sees which kind of room it is in;
* ends in a random nonlinear layer and an RMS norm, in half precision.

Its weights are drawn from `weights_seed` and never trained. It knows nothing but the instruction and the data set's
observation.scene.* columns at that time step: neither the joints, nor the future, nor how the demonstrator will choose.
"""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from ghost.backbones import Backbone, Observations, stand_in, word_rows
from ghost.data.features import Sizes
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one

SCENE = {"object": 3, "target": 3, "distractors": 6, "hands": 6, "grippers": 2, "lighting": 2}  # columns, their widths
THINGS = 6  # object, target, two distractors, two hands
PLACES = 16  # kinds of rooms that it can tell apart


@dataclass(frozen=True)
class Settings:
    tokens: int  # T
    d_token: int  # D
    text_tokens: int  # of the T; the first ones
    hidden: int  # h
    weights_seed: int

    def __post_init__(self) -> None:
        at_least_one(self, "d_token", "text_tokens", "hidden")
        if not self.text_tokens < self.tokens:
            raise ValueError(f"text_tokens must leave some of {self.tokens} to the image, got {self.text_tokens}")


@dataclass(frozen=True)
class Weights:
    position: np.ndarray  # [T, h]: which token this is
    patch: np.ndarray  # [P, 2]: where it looks, on the table [-1, 1]²
    present: np.ndarray  # [6, h]: code of a thing, by how near it is
    height: np.ndarray  # [6, h]: of how high it stands
    fingers: np.ndarray  # [2, h]: of how open a hand is
    place: np.ndarray  # [PLACES, h]
    lighting: np.ndarray  # [2, h]
    mix: np.ndarray  # [20, h]: the whole scene, into every token
    out: np.ndarray  # [h, D]


@cache
def weights(settings: Settings) -> Weights:
    s, rng = settings, np.random.default_rng(settings.weights_seed)
    patches = s.tokens - s.text_tokens

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    side = int(np.ceil(np.sqrt(patches)))
    centres = (2 * np.arange(side) + 1) / side - 1
    grid = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
    return Weights(
        position=normal(s.tokens, s.hidden, scale=0.5),
        patch=grid[:patches].astype(np.float32),
        present=normal(THINGS, s.hidden),
        height=normal(THINGS, s.hidden),
        fingers=normal(2, s.hidden),
        place=normal(PLACES, s.hidden, scale=0.5),
        lighting=normal(2, s.hidden, scale=0.2),
        mix=normal(3 * THINGS + 2, s.hidden, scale=0.3),
        out=normal(s.hidden, s.d_token, scale=s.hidden**-0.5),
    )


def start(settings: Settings, sizes: Sizes, runs: list[Run]) -> Backbone:
    return stand_in(partial(encode, settings), runs)


def encode(settings: Settings, observations: Observations) -> np.ndarray:
    """Tokens [n, T, D] float16. Every sample is computed by itself, so that batches do not change the bytes."""
    s, w, n = settings, weights(settings), len(observations)
    scene = {name: observations.scene(name, width) for name, width in SCENE.items()}
    place = np.asarray(observations.columns["observation.scene.place"], dtype=np.int64).reshape(n) % PLACES
    parts = [scene[name] for name in ("object", "target", "distractors", "hands")]
    things = np.concatenate(parts, axis=-1).reshape(n, THINGS, 3)
    words = np.stack(
        [word_rows(instruction, s.text_tokens, s.hidden, s.weights_seed) for instruction in observations.instructions]
    )  # [n, text, h]

    spacing = 2 / np.sqrt(len(w.patch))
    away = things[:, None, :, :2] - w.patch[:, None]  # [n, P, 6, 2]
    near = np.exp(-np.square(away).sum(axis=-1) / (2 * spacing**2))  # [n, P, 6]
    local = near @ w.present + (near * things[:, None, :, 2]) @ w.height
    local += (near[..., -2:] * scene["grippers"][:, None]) @ w.fingers
    whole = np.concatenate([things.reshape(n, 1, -1), scene["grippers"][:, None]], axis=-1) @ w.mix  # [n, 1, h]
    light = scene["lighting"][:, None]
    local = local * (1 + 0.1 * light[..., :1]) + light @ w.lighting + w.place[place][:, None]

    x = np.concatenate([words, local], axis=1) + whole + 0.3 * words.mean(axis=1, keepdims=True) + w.position
    tokens = np.tanh(x.astype(np.float32)) @ w.out  # [n, T, D]
    rms = np.sqrt(np.square(tokens).mean(axis=-1, keepdims=True) + 1e-6)
    return np.asarray(tokens / rms, dtype=np.float16)
