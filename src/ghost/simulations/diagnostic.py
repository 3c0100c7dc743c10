"""Diagnostic: three wells in two dimensions. Basin B1 collapses into a ghost and the trajectory escapes to B2.

The readout is the identity: the latent z is the action, a velocity target. The trajectory rests in B1 under c1 (all
weights 1) for `hold_s`. At time 0 the context becomes c2 (w_1 = collapsed_weight).

Definitions ("former minimum" is a minimum under c1):
- dwell: the time from 0 until the trajectory is nearer to another former minimum than to that of B1. B1 and B2 are
  mirror images, so on the way to B2 it ends where the trajectory crosses the former ridge z_1 = 0.
- dip: the first local minimum of the speed |dz/dt| after time 0. peak: the largest speed after the dip.
- delta: the largest |∇U(z; c2)| along the dwell, the δ of Lemma 1 for this ghost.
- critical_weight: the w_1 at which B1 disappears while the other weights are 1. c2 lies far beyond it, so the gradient
  at the former minimum is small compared with the peak's, but not near zero.

The paper does not publish α and σ. We took them from its dwell time of about 3.5 s, so the dwell time is no evidence:
among the pairs with three minima under c1, none near μ_1 under c2, one dip, one peak and an end in B2, the roundest
pair with such a dwell is α = 0.1, σ = 0.6 (3.64 s). The published dip at 1.5 s and peak at 3 s were not fitted, and
they do not fit: a single peak lies beyond the ridge, so it comes after the dwell, but 3 s is before 3.5 s. Where the
speed peaks before the ridge (α = 0.13, σ = 0.59: dip 1.15 s, peak 3.03 s, dwell 3.37 s), a second dip and a higher
second peak follow, which the paper does not show.
"""

from dataclasses import dataclass

import numpy as np

from ghost.data.results import Measured, Outcome
from ghost.dynamics.integrators import rollout
from ghost.dynamics.potentials import ACTIVE_WEIGHT, CENTRES, ThreeWells, grid, nearest
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least, below_one, positive


@dataclass(frozen=True)
class Settings:
    alpha: float
    sigma: float
    collapsed_weight: float  # w_1 under c2
    dt: float
    hold_s: float  # in B1 under c1, before the context changes
    duration_s: float  # after it
    reach: float  # half-width of the plotted square
    grid_points: int
    arrow_points: int

    def __post_init__(self) -> None:
        positive(self, "alpha", "sigma", "dt", "hold_s", "reach")
        below_one(self, "collapsed_weight")
        at_least(2, self, "grid_points", "arrow_points")
        if not self.duration_s > self.dt:
            raise ValueError(f"duration_s must exceed dt {self.dt}, got {self.duration_s}")


@dataclass(frozen=True)
class Escape:
    """The escape from B1. The module's docstring defines its quantities."""

    minima_c1: np.ndarray  # [M, 2]
    minima_c2: np.ndarray
    z: np.ndarray  # [T, 2] from the context change on
    speed: np.ndarray  # [T]
    dwell_s: float
    dip_s: float
    dip_speed: float
    peak_s: float
    peak_speed: float
    delta: float
    ends_in: int  # k of the nearest centre μ_k


def escape(settings: Settings) -> Escape:
    """Follow the trajectory from B1's minimum under c2. A time is nan if its event does not happen."""
    s = settings
    wells, (c1, c2) = ThreeWells(s.alpha, s.sigma), contexts(s)
    minima_c1, minima_c2 = wells.minima(c1), wells.minima(c2)
    start = minima_c1[nearest(minima_c1, CENTRES[0])]
    z = np.array(rollout(lambda z: -wells.gradient(z, c2), start, s.dt, round(s.duration_s / s.dt)))
    speed = np.linalg.norm(wells.gradient(z, c2), axis=-1)

    former = nearest(minima_c1, z)  # [T]
    left = np.flatnonzero(former != former[0])
    dips = 1 + np.flatnonzero((speed[1:-1] < speed[:-2]) & (speed[1:-1] <= speed[2:]))
    dip = int(dips[0]) if len(dips) else 0
    peak = dip + int(speed[dip:].argmax())
    return Escape(
        minima_c1=minima_c1,
        minima_c2=minima_c2,
        z=z,
        speed=speed,
        dwell_s=s.dt * float(left[0]) if len(left) else float("nan"),
        dip_s=s.dt * dip if len(dips) else float("nan"),
        dip_speed=float(speed[dip]) if len(dips) else float("nan"),
        peak_s=s.dt * peak,
        peak_speed=float(speed[peak]),
        delta=float(speed[: left[0] if len(left) else len(z)].max()),
        ends_in=1 + int(nearest(CENTRES, z[-1])),
    )


def run(settings: Settings, *, seed: int, progress: Progress) -> Outcome:
    """Nothing here is random. The seed is part of every simulation's signature."""
    s = settings
    wells = ThreeWells(s.alpha, s.sigma)
    found = escape(s)
    progress(1, 2, f"dwell {found.dwell_s:.2f} s")

    b2 = found.minima_c2[nearest(found.minima_c2, CENTRES[1])]
    measured = [
        Measured("c1", "minima", len(found.minima_c1)),
        Measured("c2", "minima", len(found.minima_c2)),
        Measured("c2", "gradient_at_b1", float(found.speed[0])),
        Measured("ghost", "critical_weight", critical_weight(wells)),
        *(Measured("ghost", name, getattr(found, name)) for name in ("dwell_s", "delta", "dip_s", "dip_speed")),
        *(Measured("escape", name, getattr(found, name)) for name in ("peak_s", "peak_speed", "ends_in")),
        Measured("escape", "final_distance", float(np.linalg.norm(found.z[-1] - b2))),
    ]

    hold = round(s.hold_s / s.dt)
    z = np.concatenate([np.repeat(found.z[:1], hold, axis=0), found.z])  # under c1 the trajectory stays at the minimum
    lattice, arrows = grid(s.reach, s.grid_points), grid(s.reach, s.arrow_points)
    arrays = {
        "grid/axis": np.linspace(-s.reach, s.reach, s.grid_points),
        "arrows/z": arrows,
        "trajectory/time_s": s.dt * np.arange(-hold, len(found.z)),
        "trajectory/z": z,
        "trajectory/speed": np.concatenate([np.zeros(hold), found.speed]),
        "trajectory/action": z,  # the identity readout
        "c1/minima": found.minima_c1,
        "c2/minima": found.minima_c2,
    }
    for name, w in zip(("c1", "c2"), contexts(s), strict=True):
        u = wells.value(lattice, w).reshape(s.grid_points, s.grid_points)  # [z_2, z_1]
        arrays |= {f"{name}/u": u.astype(np.float32), f"{name}/arrows": -wells.gradient(arrows, w)}
    progress(2, 2)
    return Outcome(measured, arrays)


def critical_weight(wells: ThreeWells) -> float:
    """The saddle-node of B1 between c1 and c2, by bisection to 1e-3."""
    dead, alive = 0.0, 1.0
    while alive - dead > 1e-3:
        middle = (dead + alive) / 2
        if len(wells.minima(np.array([middle, 1.0, 1.0]))) < len(CENTRES):
            dead = middle
        else:
            alive = middle
    return (dead + alive) / 2


def contexts(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """The well weights under c1 and under c2."""
    active = np.full(len(CENTRES), ACTIVE_WEIGHT)
    return active, np.array([settings.collapsed_weight, *active[1:]])
