"""Scripted experts for the ten tasks, from privileged state. An expert is a function of what is seen now:

    intent = expert(8, look)      # what to do from here: an action [7] and the sub-phase

It has no clock and no memory: sub-phase and target follow from where the hand and the things are. So an expert that
noise or a failed grip has pushed off its path goes on from where it is, and its intended action is the right label
there. A stateless policy can learn it for the same reason.

There are eight sub-phases: (reach, grasp, carry, place) for the first goal of a task, and again for the second. Pushing
a drawer or a door shut and turning a knob are "carry".

The hand is 20 cm wide along the fingers' axis, which decides most of the yaws. Heights and offsets are in metres. They
fit LIBERO's own assets as well as the primitives.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ghost.libero.fixtures import mug_into_oven, push_drawer, shut_oven, turn_knob
from ghost.libero.hand import OPEN, Move, Phase, action, vector
from ghost.libero.picking import Pick, book, bowl, can, into_basket, mug, on, packet, pot
from ghost.libero.tasks import TASKS, Look

PHASES = tuple(f"{phase.name.lower()} {part}" for part in ("first", "second") for phase in Phase)


@dataclass(frozen=True)
class Intent:
    action: np.ndarray  # [7]
    phase: int  # into PHASES


def expert(task: int, look: Look) -> Intent:
    """The intended action at this moment."""
    skills = SKILLS[task]
    for number, skill in enumerate(skills):
        move = skill(look)
        if move is not None:
            return Intent(action(look, move), len(Phase) * number + move.phase)
    rest = Move(look.hand + vector(0, 0, 0.05), 0.0, OPEN, Phase.PLACE)  # all is done: let go and rise
    return Intent(action(look, rest), len(Phase) * (len(skills) - 1) + Phase.PLACE)


WHITE_MUG = mug(1.0, (0.0153, -0.0015), 0.041, 0.108, 0.006)
YELLOW_MUG = mug(-1.0, (-0.0182, 0.0), 0.0425, 0.103, 0.009)
CADDY, BOOK_FOOT = on("caddy", 0.002, -0.004, -0.033), (-0.0005, -0.0122, 0.0)
STOVE_TOP = 0.0255 + 0.0662  # of a pot's origin above the cook region
# Two cans side by side need the basket's diagonal; two packets lie along its x axis.
SKILLS: tuple[tuple[Callable[[Look], Move | None], ...], ...] = (
    (
        into_basket("alphabet_soup", can, -0.022, -0.022, 0.155),
        into_basket("tomato_sauce", can, 0.022, 0.022, 0.155),
    ),
    (
        into_basket("cream_cheese", packet(0.0426, 0.003, 0.028), 0.0, -0.022, 0.130),
        into_basket("butter", packet(0.0396, 0.003), 0.0, 0.022, 0.130),
    ),
    (turn_knob, Pick("moka_pot", pot, on("stove", 0.01, 0.0, STOVE_TOP), 1.12, 1.20, near=0.03)),
    (Pick("bowl", bowl, on("drawer", 0.02, -0.018, -0.016), 1.05, 1.10, near=0.03, turned=True, slow=0.5), push_drawer),
    (
        Pick("white_mug", WHITE_MUG, on("plate", 0.0, 0.0, 0.006), 0.62, 0.70),
        Pick("yellow_mug", YELLOW_MUG, on("right_plate", 0.0, 0.0, 0.006), 0.62, 0.70),
    ),
    (Pick("book", book, CADDY, 1.10, 1.20, reference=BOOK_FOOT, near=0.03, turned=True, slow=0.5),),
    (
        Pick("pudding", packet(0.0464, 0.0), on("right_of_plate", 0.0, 0.025, 0.0415), 0.55, 0.56),
        Pick("white_mug", WHITE_MUG, on("plate", 0.0, 0.0, 0.006), 0.60, 0.64),
    ),
    (
        into_basket("alphabet_soup", can, -0.022, -0.022, 0.155),
        into_basket("cream_cheese", packet(0.0426, 0.003), 0.0, 0.022, 0.130),
    ),
    (
        Pick("other_moka_pot", pot, on("stove", 0.048, 0.01, STOVE_TOP), 1.12, 1.20, near=0.025),
        Pick("moka_pot", pot, on("stove", -0.048, 0.01, STOVE_TOP), 1.12, 1.20, near=0.025),
    ),
    (mug_into_oven, shut_oven),
)

assert [len(skills) for skills in SKILLS] == [len(task.goals) for task in TASKS]  # noqa: S101  # of our own tables
