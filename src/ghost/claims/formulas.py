"""Formulas of articles, run on the numbers that they print. A ledger names those of its article:
`formulas: ghost_attractor_networks`.

Each formula is a function that the ledger's derivations may call beside the general ones of ghost.claims.consistency.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ghost.claims.intervals import Interval

Exact = Callable[[str], float]  # the number that a claim prints


class GhostAttractorNetworks:
    """The size of the decoder, and the double well of the switching experiment."""

    def __init__(self, exact: Exact) -> None:
        self._exact = exact

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {name: getattr(self, name) for name in ("ghost_parameters", "basin", "gru_steps", "flow")}

    def ghost_parameters(self) -> int:
        hidden, context, latent, both, token, state, action, horizon = (
            round(self._exact(f"setting:{name}"))
            for name in (
                *("ghost.hidden", "ghost.d_context", "ghost.d_latent", "potential.input"),
                *("features.d_token", "features.d_state", "features.d_action", "features.horizon"),
            )
        )
        layers = (
            *((token, hidden), (hidden, context), (context, 1)),  # compressor with its attention pooling
            *((state, hidden), (hidden, latent)),  # state encoder
            *((both, hidden), (hidden, hidden), (hidden, 1)),  # potential
            *((both, hidden), (hidden, latent)),  # drift
            *((latent, hidden), (hidden, horizon * latent)),  # horizon network
            *((latent, hidden), (hidden, action)),  # decoder
        )
        return sum((inputs + 1) * outputs for inputs, outputs in layers)

    def _switch(self, name: str) -> float:
        return self._exact(f"setting:switch_speed.{name}")

    def _slope(self) -> np.poly1d:
        """The slope of the tilted double well."""
        stiffness, tilt, d = map(self._switch, ("stiffness", "tilt", "d"))
        return np.poly1d([4 * stiffness, 0, -4 * stiffness * d**2, -tilt])

    def basin(self) -> float:
        """The minimum of the tilted double well on the right."""
        return float(self._slope().roots.real.max())

    def gru_steps(self) -> int:
        """How many recurrent updates lead from basin A to basin B: each keeps the same share of the distance."""
        kept, distance = 1 - self._switch("gru_alpha"), 2 * self.basin()
        return math.ceil(math.log(self._switch("tolerance") / distance, kept))

    def flow(self, what: str) -> Interval:
        """A property of the contraction ratios, over all step sizes that give the printed counts of control steps."""
        slope, target = self._slope(), self.basin()
        depths = [round(self._switch(f"euler_steps.{k}")) for k in (1, 2, 3)]
        counts = [round(self._exact(f"fig:switch_speed/ghost_n{depth}/steps_to_converge")) for depth in depths]
        dt = np.arange(1, 400) / 1000
        z, distances = np.full_like(dt, -target), [np.full_like(dt, 2 * target)]
        for _ in range(40):
            with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long diverge
                z = z - dt * slope(z)
            distances.append(np.nan_to_num(np.abs(z - target), nan=np.inf))
        away = np.array(distances) > self._switch("tolerance")  # [41, dt]
        arrived = 1 + np.max(np.where(away, np.arange(41)[:, None], -1), axis=0)  # after the last step outside
        chosen = np.all(np.ceil(arrived / np.array(depths)[:, None]) == np.array(counts)[:, None], axis=0)
        before, after = np.array(distances)[:15, chosen], np.array(distances)[1:16, chosen]
        far = before > 1e-9  # nearer, the ratio is rounding
        lowest, highest = (np.divide(after, before, out=np.full_like(before, end), where=far) for end in (np.inf, 0.0))
        steps = {"min_ratio_step": np.argmin(lowest, axis=0), "max_ratio_step": np.argmax(highest, axis=0)}
        found = lowest[0] if what == "first_ratio" else 1.0 + steps[what]
        return Interval(float(found.min()), float(found.max())) if found.size else Interval(math.nan, math.nan)


FORMULAS: Mapping[str, Callable[[Exact], Any]] = {"ghost_attractor_networks": GhostAttractorNetworks}
