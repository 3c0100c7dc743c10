"""The ghost attractor mechanism, computed: two basins, then a ghost in place of the first, then the escape.

This is the tilted double well under a force h. (a) At h = 0 there are basins B1 and B2 with a barrier between them. (b)
At h = h_c + excess, just past the saddle-node, B1 has become a ghost: the region around the lost equilibrium where
|U'| <= delta. (c) A trajectory starts at the bottom of B1 when the force changes, stays in the ghost and ends in B2.

The edges of the ghost are exact: |U'| = delta where U' = 0 under the force h - delta, that is at the basin and the
barrier that this weaker force leaves. The paper draws this figure and gives no constants.
"""

from dataclasses import dataclass

import numpy as np

from ghost.data.results import Measured, Outcome
from ghost.dynamics.integrators import rollout
from ghost.dynamics.normal_form import dwell_bound, saddle_node
from ghost.dynamics.potentials import DoubleWell
from ghost.runs.progress import Progress
from ghost.runs.settings import positive


@dataclass(frozen=True)
class Settings:
    stiffness: float
    tilt: float
    d: float
    excess: float  # force past the saddle-node
    delta: float  # |U'| in the ghost is at most this
    dt: float
    duration_s: float
    tolerance: float  # a trajectory this near to B2 has arrived

    def __post_init__(self) -> None:
        positive(self, "stiffness", "tilt", "d", "excess", "dt", "tolerance")
        if not self.delta > self.excess:
            raise ValueError(f"delta must exceed excess {self.excess}, or the ghost is empty, got {self.delta}")
        if not self.duration_s > self.dt:
            raise ValueError(f"duration_s must exceed dt {self.dt}, got {self.duration_s}")


def run(settings: Settings, *, seed: int, progress: Progress) -> Outcome:
    """Nothing here is random. The seed is part of every simulation's signature."""
    s = settings
    well = DoubleWell(s.stiffness, s.tilt, s.d)
    node = saddle_node(well)
    h = node.h_c + s.excess
    stable, ghost = well.context(0.0), well.context(h)
    b1, top, b2 = well.equilibria(stable)
    new_b2 = well.minima(ghost)[-1]
    left, right = well.equilibria(well.context(h - s.delta))[:2]  # the ghost's edges

    steps = round(s.duration_s / s.dt)
    z = np.array(rollout(lambda z: -well.gradient(z, ghost), b1, s.dt, steps))  # [steps + 1]
    inside = (z >= left) & (z <= right)
    arrived = np.flatnonzero(np.abs(z - new_b2) <= s.tolerance)
    dwell_s = s.dt * float(inside.sum())
    arrival_s = s.dt * float(arrived[0]) if len(arrived) else float("nan")
    progress(1, 1, f"dwell {dwell_s:.2f} s")

    measured = [
        Measured("stable", "barrier_height", float(well.value(top, stable) - well.value(b1, stable))),
        Measured("ghost", "dwell_s", dwell_s),
        Measured("ghost", "width", float(right - left)),
        Measured("ghost", "lemma1_bound_s", dwell_bound(float(right - left), s.delta, 0.0)),
        Measured("ghost", "normal_form_limit_s", node.passage_time_limit(s.excess)),
        Measured("ghost", "min_speed", float(np.abs(well.gradient(z[inside], ghost)).min())),
        Measured("escape", "arrival_s", arrival_s),
        Measured("escape", "final_distance", float(abs(z[-1] - new_b2))),
    ]
    axis = np.linspace(-1.5 * s.d, 1.5 * s.d, 301)
    arrays = {
        "landscape/z": axis,
        "landscape/u_stable": well.value(axis, stable),
        "landscape/u_ghost": well.value(axis, ghost),
        "stable/equilibria": np.array([b1, top, b2]),
        "ghost/edges": np.array([left, right]),
        "ghost/b2": np.array([new_b2]),
        "trajectory/time_s": s.dt * np.arange(steps + 1),
        "trajectory/z": z,
        "trajectory/u": well.value(z, ghost),
        "trajectory/speed": np.abs(well.gradient(z, ghost)),
        "trajectory/in_ghost": inside.astype(np.float32),
    }
    return Outcome(measured, arrays)
