"""Growth of the work: seconds for 1, 2, 4 and 8 times the smallest size, each against the smallest, in turns.

samples/<n>    an epoch of Ghost at laptop widths over n samples
tokens/<n>     an update with n tokens a sample
seeds/<n>      an epoch of n seeds, one after the other as a job trains them
episodes/<n>   n episodes of LIBERO under the same actions
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ghost.benches import Pair, Place, in_turns
from ghost.benches.rollouts import demonstrate, episode
from ghost.benches.training import WIDTHS, synthetic
from ghost.data.samples import Samples
from ghost.decoders import ghost
from ghost.study.benchmarks import GROWTH
from ghost.training.loop import Fit, Training, be_deterministic

REPEATS = 5


def measure(place: Place) -> list[Pair]:
    be_deterministic()
    return [pair for name in GROWTH for pair in grow(name)]


def grow(name: str) -> list[Pair]:
    sizes = [GROWTH[name] * times for times in (1, 2, 4, 8)]
    return [
        Pair(f"{name}/{size}", repeat, size_s, taken_s[0], "s")
        for repeat, taken_s in enumerate(in_turns([WORK[name](size) for size in sizes], REPEATS))
        for size, size_s in zip(sizes, taken_s, strict=True)
    ]


def epochs(samples: int = 512, tokens: int = 8, seeds: int = 1) -> Callable[[], object]:
    """An epoch of every seed, over noise."""
    sizes, settings, size = WIDTHS["laptop"]
    data = Samples(synthetic(replace(sizes, tokens=tokens), samples), np.arange(samples))
    training = Training(10**6, size, 1e-3)
    fits = [Fit(ghost, settings, training, data, seed, Path("unused")) for seed in range(seeds)]

    def act() -> None:
        for fit in fits:
            fit.epoch()

    return act


def episodes(count: int) -> Callable[[], object]:
    actions = demonstrate()
    return lambda: [episode(actions) for _ in range(count)]


WORK: dict[str, Callable[[int], Callable[[], object]]] = {
    "samples": lambda n: epochs(samples=n),
    "tokens": lambda n: epochs(tokens=n),
    "seeds": lambda n: epochs(seeds=n),
    "episodes": episodes,
}
