"""Analytic potentials: the three wells of the diagnostic, and the tilted double well of the switching speed.

Shapes: z is [..., 2] (three wells) or [...] (double well). w [..., 3] are the weights of the wells, the context c.
Leading axes broadcast, so the same call takes a grid, a trajectory or a single point.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

CENTRES = np.array([[-1.0, 1.0], [1.0, 1.0], [0.0, -1.0]])  # [3, 2] the velocity targets μ_k of appendix A
ACTIVE_WEIGHT = 1.0  # w_k of a well that no context collapses

Field = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ThreeWells:
    """U(z; w) = α|z|² - Σ_k w_k exp(-|z - μ_k|² / 2σ²), eq. (analytic_potential)."""

    alpha: float
    sigma: float

    def value(self, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        _, well = self._wells(z, w)
        return np.asarray(self.alpha * np.sum(z**2, axis=-1) - np.sum(well, axis=-1))  # [...]

    def gradient(self, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        offset, well = self._wells(z, w)
        return np.asarray(2 * self.alpha * z + np.sum(well[..., None] * offset, axis=-2) / self.sigma**2)

    def hessian(self, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        offset, well = self._wells(z, w)
        identity = np.eye(2)
        outer = offset[..., :, None] * offset[..., None, :]  # [..., 3, 2, 2]
        bend = well[..., None, None] * (identity - outer / self.sigma**2) / self.sigma**2
        return np.asarray(2 * self.alpha * identity + np.sum(bend, axis=-3))  # [..., 2, 2]

    def minima(self, w: np.ndarray) -> np.ndarray:
        """Every minimum [M, 2] under the weights w, by descent from the points of a lattice."""
        # Each Gaussian bends U by at most 1/σ² per unit of weight, so this step lies below 1/|Hessian|.
        step = 1 / (2 * self.alpha + float(np.sum(np.abs(w))) / self.sigma**2)
        gradient, hessian = partial(self.gradient, w=w), partial(self.hessian, w=w)
        return find_minima(gradient, hessian, grid(1.6, 13), step=step, steps=400, within=1.6)

    def _wells(self, z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        offset = z[..., None, :] - CENTRES  # [..., 3, 2]
        return offset, w * np.exp(-np.sum(offset**2, axis=-1) / (2 * self.sigma**2))  # [..., 3]


@dataclass(frozen=True)
class DoubleWell:
    """U(z; c) = stiffness (z² - d²)² - tilt (2c - 1) z: c = 0 favours Basin A (z < 0), c = 1 Basin B."""

    stiffness: float
    tilt: float
    d: float

    def force(self, c: float) -> float:
        """The constant force h that the context c adds to -U'."""
        return self.tilt * (2 * c - 1)

    def context(self, h: float) -> float:
        """The context under which the constant force is h: the inverse of `force`."""
        return (1 + h / self.tilt) / 2

    def value(self, z: np.ndarray, c: float) -> np.ndarray:
        return np.asarray(self.stiffness * (z**2 - self.d**2) ** 2 - self.force(c) * z)

    def gradient(self, z: np.ndarray, c: float) -> np.ndarray:
        return np.asarray(4 * self.stiffness * z * (z**2 - self.d**2) - self.force(c))

    def curvature(self, z: np.ndarray) -> np.ndarray:
        """U''(z). The tilt is linear in z, so U'' does not depend on the context."""
        return np.asarray(4 * self.stiffness * (3 * z**2 - self.d**2))

    def equilibria(self, c: float) -> np.ndarray:
        """Every real root of the cubic U' = 0, ascending."""
        roots = np.roots([4 * self.stiffness, 0.0, -4 * self.stiffness * self.d**2, -self.force(c)])
        return np.sort(roots[np.abs(roots.imag) < 1e-9].real)

    def minima(self, c: float) -> np.ndarray:
        """The equilibria that lie at the bottom of a basin, ascending."""
        roots = self.equilibria(c)
        return roots[self.curvature(roots) > 0]


def grid(reach: float, points: int) -> np.ndarray:
    """The points [points², 2] of a square lattice of half-width `reach`, row by row from the bottom left."""
    axis = np.linspace(-reach, reach, points)
    x, y = np.meshgrid(axis, axis)
    return np.stack([x.ravel(), y.ravel()], axis=-1)


def nearest(points: np.ndarray, z: np.ndarray) -> np.ndarray:
    """For every z [..., 2] the index of the nearest of `points` [N, 2]."""
    return np.asarray(np.linalg.norm(z[..., None, :] - points, axis=-1).argmin(axis=-1))


def find_minima(
    gradient: Field, hessian: Field, starts: np.ndarray, *, step: float, steps: int, within: float
) -> np.ndarray:
    """The minima [M, 2] that gradient descent from `starts` [S, 2] reaches, from left to right.

    Descent brings a start into the convex bowl of a basin. Newton's method then brings it to the bottom. A start is
    given up if it leaves the square of half-width `within`, or if it is in no bowl after `steps` (it stalled on a
    saddle). End points closer than 0.01 count as one minimum.
    """
    z = starts
    for _ in range(steps):
        z = z - step * gradient(z)
        z = z[np.all(np.abs(z) <= within, axis=-1)]
    for _ in range(8):  # quadratic convergence: more than enough
        z = z[np.linalg.eigvalsh(hessian(z))[:, 0] > 0]
        z = z - np.linalg.solve(hessian(z), gradient(z)[..., None])[..., 0]
        z = z[np.all(np.abs(z) <= within, axis=-1)]
    z = z[np.linalg.norm(gradient(z), axis=-1) < 1e-9]
    found: list[np.ndarray] = []
    for end in z:
        if all(np.linalg.norm(end - other) > 0.01 for other in found):
            found.append(end)
    minima = np.array(found).reshape(-1, 2)
    return minima[np.lexsort((minima[:, 1], minima[:, 0]))]
