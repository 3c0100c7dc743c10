"""Dwell time in a saddle-node ghost: measured by integration and compared with Lemma 1.

There are three measurements. None of them uses the closed form that it is compared with:
- the normal form dz/dt = μ + z² across [-window, window], against π/√μ;
- the tilted double well with force h = h_c + excess, from the bottom of Basin A at h = 0 (z = -d) to the barrier at
  h = 0 (z = 0), against π/√(a excess);
- the normal form with a constant drift b of either sign, inside the ghost region |∇U| = μ + z² <= δ, against the lower
  bound L/(δ + |b|). δ and b are multiples of μ, and b > -μ because else a fixed point would hold the trajectory.

The passage through a finite window is shorter than the limit. The deviation shrinks with √μ / window.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, product

import numpy as np
from scipy.integrate import solve_ivp

from ghost.data.results import Measured, Outcome
from ghost.dynamics.normal_form import dwell_bound, passage_time, saddle_node
from ghost.dynamics.potentials import DoubleWell
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least, positive


@dataclass(frozen=True)
class Settings:
    mu_lowest: float
    mu_highest: float
    mus: int  # how many, evenly spaced in log μ
    window: float
    stiffness: float
    tilt: float
    d: float
    excess_lowest: float
    excess_highest: float
    excesses: int
    delta_ratios: tuple[float, ...]  # δ/μ
    drift_ratios: tuple[float, ...]  # b/μ

    def __post_init__(self) -> None:
        positive(self, "window", "stiffness", "tilt", "d")
        at_least(2, self, "mus", "excesses")  # to fit a slope
        for low, high in (("mu_lowest", "mu_highest"), ("excess_lowest", "excess_highest")):
            if not 0 < getattr(self, low) < getattr(self, high):
                raise ValueError(f"0 < {low} < {high} must hold, got {getattr(self, low)}, {getattr(self, high)}")
        if not self.delta_ratios or min(self.delta_ratios) <= 1:
            raise ValueError(f"delta_ratios must exceed 1, or the ghost is empty, got {self.delta_ratios}")
        if not self.drift_ratios or min(self.drift_ratios) <= -1:
            raise ValueError(f"drift_ratios must exceed -1, or the trajectory is held, got {self.drift_ratios}")


def run(settings: Settings, *, seed: int, progress: Progress) -> Outcome:
    """Nothing here is random. The seed is part of every simulation's signature."""
    s = settings
    mu = np.geomspace(s.mu_lowest, s.mu_highest, s.mus)
    excess = np.geomspace(s.excess_lowest, s.excess_highest, s.excesses)
    lemma = list(product(mu, s.delta_ratios, s.drift_ratios))
    done, total = count(1), len(mu) + len(excess) + len(lemma)

    def passage(flow: Flow, start: float, end: float, scale: float, text: str) -> float:
        taken = integrate(flow, start, end, scale=scale)
        progress(next(done), total, text)
        return taken

    measured = np.array(
        [passage(normal_form(m, 0.0), -s.window, s.window, math.sqrt(m), f"normal form, mu {m:.1e}") for m in mu]
    )
    limit = np.array([passage_time(m) for m in mu])
    found = compare("normal_form", mu, measured, limit)
    arrays = {"normal_form/mu": mu, "normal_form/dwell": measured, "normal_form/theory": limit}

    well = DoubleWell(s.stiffness, s.tilt, s.d)
    node = saddle_node(well)
    flows = [downhill(well, well.context(node.h_c + e)) for e in excess]
    measured = np.array(
        [
            passage(flow, -s.d, 0.0, math.sqrt(e / node.a), f"double well, excess {e:.1e}")
            for flow, e in zip(flows, excess, strict=True)
        ]
    )
    limit = np.array([node.passage_time_limit(e) for e in excess])
    found += compare("double_well", excess, measured, limit)
    found += [Measured("double_well", "critical_tilt", node.h_c), Measured("double_well", "curvature", node.a)]
    arrays |= {"double_well/excess": excess, "double_well/dwell": measured, "double_well/theory": limit}

    over_bound = np.empty(len(lemma))
    for i, (m, delta_ratio, drift_ratio) in enumerate(lemma):
        delta, drift = delta_ratio * m, drift_ratio * m
        half = math.sqrt(delta - m)  # μ + z² <= δ
        dwell = passage(normal_form(m, drift), -half, half, half, "Lemma 1")
        over_bound[i] = dwell / dwell_bound(2 * half, delta, abs(drift))
    found += [
        Measured("lemma1", "min_dwell_over_bound", float(over_bound.min()), len(lemma)),
        Measured("lemma1", "max_dwell_over_bound", float(over_bound.max()), len(lemma)),
    ]
    arrays |= {
        "lemma1/dwell_over_bound": over_bound.reshape(len(mu), len(s.delta_ratios), len(s.drift_ratios)),
        "lemma1/delta_ratio": np.array(s.delta_ratios),
        "lemma1/drift_ratio": np.array(s.drift_ratios),
    }
    return Outcome(found, arrays)


Flow = Callable[[float], float]


def normal_form(mu: float, drift: float) -> Flow:
    """The velocity μ + z² + b."""
    return lambda z: mu + z * z + drift


def downhill(well: DoubleWell, c: float) -> Flow:
    """The velocity -U'(z; c)."""
    return lambda z: float(-well.gradient(np.array(z), c))


def integrate(flow: Flow, start: float, end: float, *, scale: float) -> float:
    """The time that dz/dt = flow(z) takes from `start` to `end`; `scale` is the length to resolve."""

    def arrival(_: float, z: np.ndarray) -> float:
        return float(z[0]) - end

    arrival.terminal = True  # type: ignore[attr-defined]
    solution = solve_ivp(
        lambda _, z: [flow(z[0])],
        (0.0, math.inf),
        [start],
        method="DOP853",
        events=arrival,
        rtol=1e-10,
        atol=1e-10 * scale,
    )
    return float(solution.t_events[0][0])


def compare(condition: str, parameter: np.ndarray, measured: np.ndarray, theory: np.ndarray) -> list[Measured]:
    """The fitted exponent of measured ~ parameter^slope, and the largest relative deviation from the theory."""
    slope = np.polyfit(np.log(parameter), np.log(measured), 1)[0]
    deviation = np.abs(measured / theory - 1)
    return [
        Measured(condition, "slope", float(slope), len(parameter)),
        Measured(condition, "largest_relative_deviation", float(deviation.max()), len(parameter)),
    ]
