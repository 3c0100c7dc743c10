"""The saddle-node ghost in one dimension: how long a trajectory stays where a basin used to be (Lemma 1)."""

import math
from dataclasses import dataclass

from ghost.dynamics.potentials import DoubleWell


def passage_time(mu: float, a: float = -math.inf, b: float = math.inf) -> float:
    """The exact time that dz/dt = μ + z², μ > 0, takes from a to b: the integral of dz / (μ + z²).

    From -∞ to ∞ it is π/√μ, the scaling of Lemma 1.
    """
    root = math.sqrt(mu)
    return (math.atan(b / root) - math.atan(a / root)) / root


def dwell_bound(length: float, delta: float, v0: float) -> float:
    """Lemma 1: the least time to cross a ghost region of this length, where |∇U| ≤ δ and the drift ≤ v₀."""
    return length / (delta + v0)


@dataclass(frozen=True)
class SaddleNode:
    """Where Basin A of the tilted double well disappears. Near z the flow is dx/dt = (h - h_c) + a x², x from z."""

    z: float
    h_c: float
    a: float

    def passage_time_limit(self, excess: float) -> float:
        """π/√(a (h - h_c)): the limit of the normal form, in the time of the double well."""
        return passage_time(self.a * excess)


def saddle_node(well: DoubleWell) -> SaddleNode:
    """Solve U' = U'' = 0: U'' = 0 gives z = -d/√3, U' = 0 then gives h_c, and a is half the slope of -U''."""
    z = -well.d / math.sqrt(3)
    return SaddleNode(z, h_c=8 * well.stiffness * well.d**3 / (3 * math.sqrt(3)), a=-12 * well.stiffness * z)
