"""The sub-phases of a demonstration, from its recording alone: where the hand is, how far it is open, its commands.

Public demonstrations of LIBERO record no phases. The article's eight are "inferred", and it does not say how. This rule
is ours. A *grip* is a stretch of time in which the commands close the hand, and it holds something (its fingers stay
apart) or moves while it is shut, as when it pushes a drawer. Of each grip

    reach    from the end of the last grip until the hand closes; of a shut hand, until it moves straight to the end
    grasp    until the hand moves away with what it holds
    carry    until it is over the place where it lets go
    place    until it has let go and left that place

A grip that begins where the last one ended is a second try at the same object. All other grips after the first one are
the second object's. So there are (reach, grasp, carry, place) for the first object, and again for the second. Nothing
that only a simulator knows is used.
"""

import numpy as np

from ghost.libero.hand import Phase

SHORTEST_STEPS = 9  # of a grip: the hand needs as many to close
HELD_M = 0.003  # fingers that are apart by more in the last quarter of a grip, or most of a long one, hold something
PUSHED_M = 0.05  # a shut hand that travels further pushes something
STRAIGHT = 0.9  # of a path: distance of its ends to its length; an arc of 90 degrees has 0.9
MOVED_M, TURNED_RAD = 0.015, 0.15  # further than this from where it closed, the hand carries
OVER_M = 0.015  # in the plane, from the place where it lets go
LEFT_M = 0.06  # from that place
SAME_M = 0.06  # a grip that begins so near to the end of the last one is another try


def infer_phases(hand: np.ndarray, rotation: np.ndarray, opening: np.ndarray, closing: np.ndarray) -> np.ndarray:
    """Sub-phases [S] from position [S, 3], rotation [S, 3, 3] and opening [S] m of the hand, and commands [S] bool."""
    phases = np.zeros(len(hand), np.int64)
    part, begin, last = 0, 0, None
    for first, after, held in grips(hand, opening, closing):
        if last is not None and not (held and np.linalg.norm(hand[first] - hand[last]) < SAME_M):
            part = 1
        last = min(after, len(hand) - 1)  # where it lets go
        if held:
            stops = _held_stops(hand, rotation, first, after, last)
        else:
            push = _push_start(hand, first, after)
            stops = (push, push, after)
        end = _left(hand, closing, after, last)
        for phase, start, stop in zip(Phase, (begin, *stops), (*stops, end), strict=True):
            phases[start:stop] = len(Phase) * part + phase
        begin = end
    if last is not None:
        phases[begin:] = len(Phase) * part + Phase.PLACE
    return phases


def grips(hand: np.ndarray, opening: np.ndarray, closing: np.ndarray) -> list[tuple[int, int, bool]]:
    """Of each grip its first step, the first step after it, and whether something is held."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], closing, [False]]).astype(np.int8)))
    found = []
    for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        length = after - first
        if length < SHORTEST_STEPS:
            continue
        held = bool(np.median(opening[after - length // 4 : after]) > HELD_M)
        held |= length > 2 * SHORTEST_STEPS and bool(np.median(opening[first + SHORTEST_STEPS : after]) > HELD_M)
        if held or np.linalg.norm(hand[first:after] - hand[first], axis=1).max() > PUSHED_M:
            found.append((first, after, held))
    return found


def _held_stops(hand: np.ndarray, rotation: np.ndarray, first: int, after: int, last: int) -> tuple[int, int, int]:
    """The ends of reach, grasp and carry."""
    away = np.linalg.norm(hand[first:after] - hand[first], axis=1) > MOVED_M
    away |= _turned(rotation[first], rotation[first:after]) > TURNED_RAD
    carry = first + int(away.argmax()) if away.any() else after
    over = np.linalg.norm(hand[carry:after, :2] - hand[last, :2], axis=1) < OVER_M
    apart = np.flatnonzero(~over)
    # a knob is turned, not carried: the hand stays where it is until it lets go
    return first, carry, carry + int(apart[-1]) + 1 if len(apart) else after


def _push_start(hand: np.ndarray, first: int, after: int) -> int:
    """From where on the path is nearly straight until the end."""
    path = hand[first:after]
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)[::-1].cumsum()[::-1]  # [n - 1]: from each step to the end
    ends = np.linalg.norm(path[-1] - path[:-1], axis=1)
    bent = np.flatnonzero(ends < STRAIGHT * lengths)
    return first + (int(bent[-1]) + 1 if len(bent) else 0)


def _turned(rotation: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Angles [n] between a rotation [3, 3] and others [n, 3, 3]."""
    cosine = (np.einsum("ij,nij->n", rotation, others) - 1) / 2
    return np.asarray(np.arccos(np.clip(cosine, -1, 1)))


def _left(hand: np.ndarray, closing: np.ndarray, after: int, last: int) -> int:
    """The step at which the open hand has left the place where it let go, or closes again."""
    for step in range(after, len(hand)):
        if closing[step] or np.linalg.norm(hand[step] - hand[last]) > LEFT_M:
            return step
    return len(hand)
