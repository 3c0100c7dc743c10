"""Shapes, sites, parts and things: the terms in which `things.py` describes LIBERO's objects.

All lengths are in metres. A box is given by its half-sizes, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Vector = tuple[float, float, float]
ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Shape:
    kind: str  # box or cylinder
    at: Vector
    size: tuple[float, ...]  # box: three half-sizes; cylinder: radius, half-height
    quat: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)

    @property
    def volume(self) -> float:
        if self.kind == "box":
            return 8 * self.size[0] * self.size[1] * self.size[2]
        return float(2 * np.pi * self.size[0] ** 2 * self.size[1])


def box(at: Vector, half: Vector, *, tilt_x: float = 0.0, tilt_y: float = 0.0) -> Shape:
    """A box, turned about the x or the y axis."""
    cos, sin = float(np.cos((tilt_x or tilt_y) / 2)), float(np.sin((tilt_x or tilt_y) / 2))
    return Shape("box", at, half, (cos, sin, 0.0, 0.0) if tilt_x else (cos, 0.0, sin, 0.0))


def cylinder(at: Vector, radius: float, half: float, axis: str = "z") -> Shape:
    quarter = float(np.sqrt(0.5))
    turned = {"z": (1.0, 0.0, 0.0, 0.0), "y": (quarter, quarter, 0.0, 0.0)}
    return Shape("cylinder", at, (radius, half), turned[axis])


def ring(
    centre: tuple[float, float], radius: float, z: float, thickness: float, half: float, *, n: int, tilt: float = 0.0
) -> list[Shape]:
    """A round wall of n boxes, `half` high from its middle. With a `tilt` it opens upwards; at π/2 it lies flat."""
    boxes = []
    for angle in 2 * np.pi * np.arange(n) / n:
        x, y = centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)
        c, s = np.cos(angle / 2), np.sin(angle / 2)
        ct, st = np.cos(tilt / 2), np.sin(tilt / 2)
        quat = (c * ct, -s * st, c * st, s * ct)  # about z by the angle, then about the tangent by the tilt
        width = float(radius * np.tan(np.pi / n))
        boxes.append(Shape("box", (float(x), float(y), z), (thickness, width, half), tuple(map(float, quat))))
    return boxes


@dataclass(frozen=True)
class Site:
    """A region that a goal can name."""

    name: str
    at: Vector
    half: Vector
    quat: str = "1 0 0 0"


@dataclass(frozen=True)
class Part:
    """A body below the object's own: a drawer, a door, a knob."""

    name: str
    shapes: Sequence[Shape] = ()
    sites: Sequence[Site] = ()
    at: Vector = ORIGIN
    quat: str = "1 0 0 0"
    joint: tuple[str, ...] = ()  # name, type, axis, range, damping
    mass: float = 0.0  # with a joint: a point of inertia 1, as in LIBERO; else the shapes have the mass
    shapes_mass: float = 0.5
    parts: Sequence[Part] = ()


@dataclass(frozen=True)
class Thing:
    """An object or fixture of LIBERO."""

    folder: str
    name: str
    mass: float  # kg, of its own shapes
    rgb: Vector
    shapes: Sequence[Shape] = ()
    sites: Sequence[Site] = ()
    parts: Sequence[Part] = ()
    bottom_top_radius: Vector = (-0.06, 0.04, 0.025)  # for the placement at a reset, before the init state is set

    @property
    def path(self) -> str:
        inside = "" if self.folder == "articulated_objects" else f"{self.name}/"
        return f"{self.folder}/{inside}{self.name}.xml"


@dataclass(frozen=True)
class Room:
    """A scene: a floor and a table. LIBERO's code itself moves the parts of the kitchen's table."""

    name: str
    table: str
    slab: Shape | None = None
