"""The stand-in backbone for LIBERO-10: tokens from what cameras would show and what the instruction says.

A fine-tuned vision-language model finds the things that an instruction names, and tells how they lie to the hand and
to where they shall go. This one does just that, from poses instead of pixels: it reads the instruction (`GROUNDING`,
the ten that it knows), takes the poses of the things named, and writes down for each of the two parts of the task

* the thing relative to the hand, and relative to its place, each plainly and through tanh at four scales, as a network
  that must both cross a table and close two fingers on a knob would have it;
* how the thing is turned, how high it stands, how far its joint is moved (knob, drawer, door), whether it is there;

together with the hand's pose and a random vector for the words. Which part stands first is drawn at random for each
instruction, so the order in which the expert takes them is not given away: a policy must learn it from demonstrations
and words. The stand-in knows neither the sub-phase, nor what is done already, nor the future. Token 0 has all of it,
tokens 1 and 2 a part of the task each, the rest one word each.
"""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from ghost.backbones import Backbone, Observations, stand_in, word_vectors
from ghost.data.features import Sizes
from ghost.errors import GhostError, did_you_mean
from ghost.libero.tasks import ROWS, TASKS, THINGS, Goal
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one

SCALES_M = (0.01, 0.03, 0.1, 0.3)
OFFSET = 3 * (1 + len(SCALES_M))  # an offset, written at all scales
PART = 2 * OFFSET + 3 + 6 + 3 + 2  # of one part of a task
PARTS = 2
HAND = 9
WORDS = 24
WIDTH = PARTS * PART + HAND + WORDS  # at least the token's
GROUNDING = {task.instruction: task.goals for task in TASKS}


@dataclass(frozen=True)
class Settings:
    tokens: int  # T
    d_token: int  # D
    weights_seed: int

    def __post_init__(self) -> None:
        at_least_one(self, "tokens")
        if self.d_token < WIDTH:
            raise ValueError(f"d_token must be at least {WIDTH}, got {self.d_token}")


def start(settings: Settings, sizes: Sizes, runs: list[Run]) -> Backbone:
    return stand_in(partial(encode, settings), runs)


def encode(settings: Settings, observations: Observations) -> np.ndarray:
    """Tokens [n, T, D] float16."""
    n = len(observations)
    things = observations.scene("things", len(THINGS), 9)
    hand, joints = observations.scene("hand", HAND), observations.scene("joints", 3)
    parts = np.zeros((n, PARTS, PART), np.float32)
    words = np.zeros((n, settings.tokens, WORDS), np.float32)
    for instruction in sorted(set(observations.instructions)):
        here = np.array([text == instruction for text in observations.instructions])
        if instruction not in GROUNDING:
            raise GhostError(
                f"the stand-in backbone does not know {instruction!r}{did_you_mean(instruction, GROUNDING)}"
            )
        for index, goal in enumerate(shuffled_goals(instruction, settings.weights_seed)):
            parts[here, index] = _part(goal, things[here], hand[here], joints[here])
        words[here] = _words(settings, instruction)
    tokens = np.zeros((n, settings.tokens, settings.d_token), np.float32)
    tokens[:, 0, : PARTS * PART] = parts.reshape(n, -1)
    tokens[:, 0, PARTS * PART : PARTS * PART + HAND] = hand
    tokens[:, 0, PARTS * PART + HAND : WIDTH] = words[:, 0]
    for index in range(1, settings.tokens):
        if index <= PARTS:
            tokens[:, index, (index - 1) * PART : index * PART] = parts[:, index - 1]
        tokens[:, index, PARTS * PART + HAND : WIDTH] = words[:, index]
    return tokens.astype(np.float16)


@cache
def shuffled_goals(instruction: str, weights_seed: int) -> tuple[Goal, ...]:
    """The parts of a task, in an order that says nothing about the expert's."""
    goals = sorted(GROUNDING[instruction], key=lambda goal: goal.thing)
    rng = np.random.default_rng([weights_seed, *instruction.encode()])
    return tuple(goals[index] for index in rng.permutation(len(goals)))


def _part(goal: Goal, things: np.ndarray, hand: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """One part of a task [n, PART]; all zeros when its thing is not in sight."""
    thing, place = things[:, ROWS[goal.thing]], things[:, ROWS[goal.place]]
    seen = np.any(thing != 0, axis=1, keepdims=True) & np.any(place != 0, axis=1, keepdims=True)
    to_hand, to_place = thing[:, :3] - hand[:, :3], thing[:, :3] - place[:, :3]
    joint = joints[:, [goal.joint]] if goal.joint >= 0 else np.zeros((len(things), 1), np.float32)
    parts = [
        *(_offset(offset) for offset in (to_hand, to_place)),
        5 * (place[:, :3] - hand[:, :3]),
        thing[:, 3:],
        joint,
        np.tanh(joint / 0.1),
        np.tanh(joint / 0.01),
        thing[:, 2:3],
        np.ones((len(things), 1)),
    ]
    return np.asarray(np.concatenate(parts, axis=1) * seen, dtype=np.float32)


def _offset(offset: np.ndarray) -> np.ndarray:
    return np.concatenate([5 * offset, *(np.tanh(offset / scale) for scale in SCALES_M)], axis=1)


@cache
def _words(settings: Settings, instruction: str) -> np.ndarray:
    """[T, WORDS]: the mean of all words' vectors in the first token, one word each in those behind the parts."""
    vectors = word_vectors(instruction, WORDS, settings.weights_seed)
    rows = np.zeros((settings.tokens, WORDS), np.float32)
    rows[0] = np.mean(vectors, axis=0) * np.sqrt(len(vectors))
    for index, vector in zip(range(1 + PARTS, settings.tokens), vectors, strict=False):
        rows[index] = vector
    return rows
