"""The things and rooms that LIBERO-10 is made of, as boxes and cylinders: `primitives.py` writes them as assets.

Names of bodies, joints and sites are LIBERO's, since the BDDL goals and the official init states rest on them. Sizes
were read off LIBERO's collision geometry; rings of boxes there are rings of fewer boxes here, cans are cylinders. All
lengths are in metres, and a box is given by its half-sizes, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

Vector = tuple[float, float, float]


# ------------------------------------------------------------------------------------------------------------ shapes


@dataclass(frozen=True)
class Shape:
    kind: str  # box or cylinder
    at: Vector
    size: tuple[float, ...]  # box: three half-sizes; cylinder: radius, half-height
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

    @property
    def volume(self) -> float:
        if self.kind == "box":
            return 8 * self.size[0] * self.size[1] * self.size[2]
        return float(2 * np.pi * self.size[0] ** 2 * self.size[1])


def box(at: Vector, half: Vector, *, tilt_x: float = 0.0, tilt_y: float = 0.0) -> Shape:
    """A box, turned about the x or y axis."""
    cos, sin = np.cos((tilt_x or tilt_y) / 2), np.sin((tilt_x or tilt_y) / 2)
    return Shape("box", at, half, (float(cos), float(sin) if tilt_x else 0.0, 0.0 if tilt_x else float(sin), 0.0))


def cylinder(at: Vector, radius: float, half: float, axis: str = "z") -> Shape:
    quarter = float(np.sqrt(0.5))
    turned = {"z": (1.0, 0.0, 0.0, 0.0), "y": (quarter, quarter, 0.0, 0.0)}
    return Shape("cylinder", at, (radius, half), turned[axis])


def ring(
    centre: tuple[float, float], radius: float, z: float, thickness: float, half: float, *, n: int, tilt: float = 0.0
) -> list[Shape]:
    """A round wall of n boxes, `half` high from its middle; with `tilt` it opens upwards, at π/2 it lies flat."""
    boxes = []
    for angle in 2 * np.pi * np.arange(n) / n:
        x, y = centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)
        c, s = np.cos(angle / 2), np.sin(angle / 2)
        ct, st = np.cos(tilt / 2), np.sin(tilt / 2)
        quat = (c * ct, -s * st, c * st, s * ct)  # about z by the angle, then about the tangent by the tilt
        width = radius * np.tan(np.pi / n)
        boxes.append(
            Shape("box", (float(x), float(y), z), (thickness, float(width), half), tuple(map(float, quat)))  # type: ignore[arg-type]
        )
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
    at: Vector = (0.0, 0.0, 0.0)
    quat: str = "1 0 0 0"
    joint: dict[str, str] = field(default_factory=dict)
    mass: float = 0.0  # with a joint: a point of inertia 1, as LIBERO has it; else by the shapes
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


HOPE, SCANNED, TURBO, MOVING = (
    "stable_hope_objects",
    "stable_scanned_objects",
    "turbosquid_objects",
    "articulated_objects",
)
RED, BLUE, WHITE, BLACK = (0.8, 0.2, 0.15), (0.3, 0.4, 0.8), (0.9, 0.9, 0.9), (0.15, 0.15, 0.15)
GREEN, YELLOW, BROWN, GREY = (0.3, 0.6, 0.3), (0.9, 0.8, 0.3), (0.45, 0.3, 0.2), (0.6, 0.6, 0.62)


def carton(name: str, rgb: Vector) -> Thing:
    """Milk and orange juice stand on their local -y side."""
    shapes = [box((0.0, -0.015, 0.0), (0.0262, 0.0548, 0.0263)), box((0.0, 0.0505, 0.0), (0.0263, 0.011, 0.012))]
    return Thing(HOPE, name, 0.0317, rgb, shapes, bottom_top_radius=(-0.06, 0.04, 0.03))


def drawer(level: str, z: float, handle_z: float) -> Part:
    """A drawer of the cabinet, open at the top, which comes out along -y."""
    return Part(
        f"cabinet_{level}",
        [
            box((0.0033, -0.0735, z - 0.001), (0.109, 0.0045, 0.0315)),  # front
            box((0.0033, 0.0908, z), (0.107, 0.0036, 0.0321)),
            box((-0.1019, 0.0110, z), (0.0024, 0.0815, 0.0316)),
            box((0.1089, 0.0110, z), (0.0024, 0.0815, 0.0316)),
            box((0.0035, 0.0105, z - 0.0284), (0.107, 0.081, 0.004)),  # floor
            box((-0.0028, -0.1016, handle_z), (0.0445, 0.0082, 0.0077)),  # handle
            box((0.0292, -0.0835, handle_z), (0.0051, 0.0106, 0.0055)),
            box((-0.0356, -0.0835, handle_z), (0.0051, 0.0106, 0.0055)),
        ],
        [Site(f"{level}_region", (0.0033, 0.0113, z + 0.0018), (0.02993, 0.07561, 0.10224), "0.70711 0 0.70711 0")],
        joint={"name": f"{level}_level", "type": "slide", "axis": "0 1 0", "range": "-0.16 0.01", "damping": "50"},
        mass=3.0,
    )


THINGS = (
    Thing(
        HOPE,
        "alphabet_soup",
        0.0259,
        RED,
        [cylinder((0.0, -0.0006, -0.0034), 0.031, 0.0376, "y")],
        bottom_top_radius=(-0.04, 0.04, 0.025),
    ),
    Thing(HOPE, "tomato_sauce", 0.0266, RED, [cylinder((0.0, -0.0006, -0.0030), 0.0305, 0.0376, "y")]),
    Thing(
        HOPE,
        "cream_cheese",
        0.0062,
        BLUE,
        [box((0.0, 0.0, 0.0), (0.0406, 0.0213, 0.0089))],
        bottom_top_radius=(-0.025, 0.025, 0.03),
    ),
    Thing(
        HOPE,
        "butter",
        0.0052,
        YELLOW,
        [box((0.0, 0.0, 0.0), (0.0381, 0.0198, 0.0087))],
        bottom_top_radius=(-0.02, 0.02, 0.02),
    ),
    Thing(HOPE, "chocolate_pudding", 0.0102, BROWN, [box((-0.0005, 0.0, 0.0006), (0.0401, 0.0232, 0.0137))]),
    Thing(
        HOPE,
        "ketchup",
        0.0232,
        RED,
        [
            box((0.0004, -0.0394, 0.0008), (0.0281, 0.0331, 0.017)),
            box((0.0004, 0.0144, 0.0008), (0.0215, 0.022, 0.0183)),
            cylinder((0.0004, 0.0547, 0.0008), 0.016, 0.0185, "y"),
        ],
    ),
    carton("milk", WHITE),
    carton("orange_juice", YELLOW),
    Thing(
        SCANNED,
        "basket",
        0.1361,
        BROWN,
        [
            box((0.0025, 0.0, 0.0131), (0.0766, 0.0724, 0.0089)),
            box((-0.0727, 0.0, 0.0766), (0.0115, 0.0724, 0.064)),
            box((0.0756, 0.0, 0.0766), (0.0098, 0.0724, 0.064)),
            box((0.0, -0.0688, 0.0818), (0.0725, 0.0098, 0.0639)),
            box((0.0, 0.0688, 0.0818), (0.0725, 0.0098, 0.0639)),
        ],
        [Site("contain_region", (0.0, 0.0, 0.07185), (0.06108, 0.06108, 0.06949))],
    ),
    Thing(
        SCANNED,
        "plate",
        0.0115,
        WHITE,
        [
            cylinder((0.0, 0.0, 0.0031), 0.034, 0.0029),
            *ring((0.0, 0.0), 0.0483, 0.007, 0.0025, 0.0191, n=8, tilt=np.pi / 2 - 0.35),
        ],
    ),
    Thing(
        SCANNED,
        "akita_black_bowl",
        0.0056,
        BLACK,
        [
            cylinder((0.0, 0.0, 0.0042), 0.025, 0.0026),
            *ring((0.0, 0.0), 0.0336, 0.0096, 0.0012, 0.0119, n=12, tilt=1.05),
            *ring((0.0, 0.0), 0.0471, 0.0337, 0.0014, 0.0188, n=12, tilt=0.25),
        ],
    ),
    Thing(
        SCANNED,
        "chefmate_8_frypan",
        0.0502,
        BLACK,
        [
            cylinder((0.007, 0.0, 0.0068), 0.072, 0.006),
            *ring((0.007, 0.0), 0.089, 0.0223, 0.0036, 0.0213, n=12, tilt=0.5),
            box((0.12, 0.0, 0.0245), (0.018, 0.011, 0.0124)),
            box((0.1926, 0.0, 0.0441), (0.0667, 0.0127, 0.0146)),
        ],
    ),
    Thing(
        TURBO,
        "porcelain_mug",
        0.0165,
        WHITE,
        [
            cylinder((0.0153, -0.0015, 0.0076), 0.026, 0.0052),
            *ring((0.0153, -0.0015), 0.0345, 0.0260, 0.0016, 0.0190, n=10, tilt=0.35),
            *ring((0.0153, -0.0015), 0.0410, 0.0758, 0.0024, 0.0326, n=10),
            box((-0.0595, 0.0, 0.056), (0.0038, 0.008, 0.0198)),  # handle
            box((-0.0416, 0.0, 0.0286), (0.0198, 0.008, 0.0038), tilt_y=0.5),
            box((-0.0463, 0.0, 0.0834), (0.0198, 0.008, 0.0038), tilt_y=-0.5),
        ],
    ),
    Thing(
        TURBO,
        "white_yellow_mug",
        0.0309,
        YELLOW,
        [
            cylinder((-0.0182, 0.0, 0.0052), 0.028, 0.0050),
            *ring((-0.0182, 0.0), 0.0330, 0.0106, 0.0041, 0.0103, n=12, tilt=0.5),
            *ring((-0.0182, -0.0005), 0.0425, 0.0593, 0.0041, 0.0438, n=14),
            box((0.0641, 0.0, 0.056), (0.0041, 0.0088, 0.0292)),  # handle
            box((0.0402, 0.0, 0.0263), (0.0249, 0.0088, 0.0041), tilt_y=-0.2),
            box((0.0464, 0.0, 0.0796), (0.022, 0.0088, 0.0065)),
        ],
    ),
    Thing(
        TURBO,
        "red_coffee_mug",
        0.0294,
        RED,
        [
            cylinder((-0.0155, -0.0025, 0.0055), 0.027, 0.0025),
            *ring((-0.0155, -0.0025), 0.0315, 0.0645, 0.0035, 0.0655, n=10),
            box((0.0547, 0.0011, 0.080), (0.0046, 0.0073, 0.030)),
            box((0.0346, 0.0011, 0.1116), (0.0184, 0.0069, 0.0045)),
            box((0.0346, 0.0011, 0.050), (0.0184, 0.0069, 0.0045)),
        ],
    ),
    Thing(
        TURBO,
        "moka_pot",
        0.0682,
        GREY,
        [
            cylinder((0.0, 0.0015, 0.0004), 0.0335, 0.0666),
            box((0.0, -0.0420, 0.0450), (0.0125, 0.0120, 0.0190)),  # spout
            box((0.0, 0.0450, 0.0560), (0.0080, 0.0160, 0.0070)),  # handle
            box((0.0, 0.0740, 0.0420), (0.0066, 0.0160, 0.0220)),
            box((0.0001, 0.0615, 0.0080), (0.0066, 0.0121, 0.0101)),
            box((0.0, -0.0013, 0.0743), (0.0052, 0.0060, 0.0114)),  # knob of the lid
        ],
    ),
    Thing(TURBO, "black_book", 0.0425, BLACK, [box((-0.0005, -0.0122, 0.0694), (0.0143, 0.0552, 0.0672))]),
    Thing(
        TURBO,
        "wine_bottle",
        0.0154,
        GREEN,
        [
            cylinder((0.0, 0.0, 0.0370), 0.0195, 0.0360),
            cylinder((0.0, 0.0, 0.0811), 0.0125, 0.0080),
            cylinder((0.0, 0.0, 0.1210), 0.0072, 0.0370),
        ],
    ),
    Thing(
        TURBO,
        "wine_rack",
        0.1527,
        BROWN,
        [
            box((0.0, -0.0061, 0.2512), (0.1344, 0.0789, 0.0045), tilt_x=0.546),
            box((0.0, -0.0427, 0.1273), (0.1344, 0.0789, 0.0045), tilt_x=0.546),
            box((0.0, -0.0748, 0.2207), (0.1322, 0.0011, 0.0087), tilt_x=0.546),
            box((0.0, -0.1091, 0.0974), (0.1322, 0.0011, 0.0087), tilt_x=0.546),
            box((0.0, 0.0, 0.0120), (0.0900, 0.1240, 0.0120)),
            box((0.0, 0.0089, 0.1703), (0.0076, 0.0091, 0.1616), tilt_x=-0.277),
        ],
        [Site("top_region", (0.0, -0.08003, 0.21745), (0.10087, 0.022, 0.00251), "0.8549119 -0.5187733 0 0")],
    ),
    Thing(
        TURBO,
        "desk_caddy",
        0.278,
        BROWN,
        [
            box((0.0, 0.0, 0.0076), (0.0755, 0.2169, 0.0062)),  # floor
            box((0.0668, 0.0, 0.0868), (0.004, 0.2098, 0.0815)),  # back
            box((-0.0669, 0.0, 0.0395), (0.004, 0.2098, 0.0346)),  # front, lower
            box((-0.0669, -0.1398, 0.0877), (0.004, 0.0766, 0.0796)),
            box((0.0, -0.2094, 0.085), (0.0706, 0.0062, 0.0824)),
            box((0.0, -0.068, 0.085), (0.0706, 0.0062, 0.0824)),
            box((0.0, 0.0706, 0.0452), (0.0706, 0.0036, 0.0333)),
            box((0.0345, 0.0706, 0.110), (0.0320, 0.0036, 0.0330)),
            box((0.0, 0.2084, 0.0452), (0.0706, 0.0036, 0.0333)),
            box((0.0345, 0.2084, 0.110), (0.0320, 0.0036, 0.0330)),
            box((-0.0016, 0.0, 0.0552), (0.004, 0.0668, 0.0434)),  # between front and back compartment
        ],
        [
            Site("right_contain_region", (0.0063, -0.1434, 0.0656), (0.06196, 0.06216, 0.06046)),
            Site("left_contain_region", (0.0063, 0.1455, 0.0656), (0.06196, 0.06216, 0.06046)),
            Site("back_contain_region", (0.0336, -0.0006, 0.0856), (0.02775, 0.06216, 0.06046)),
            Site("front_contain_region", (-0.031, -0.0006, 0.0405), (0.02775, 0.06216, 0.03595)),
        ],
    ),
    Thing(
        MOVING,
        "flat_stove",
        0.0,
        GREY,
        parts=[
            Part(
                "base",
                parts=[
                    Part(
                        "burner",
                        [box((0.0, 0.0, 0.0), (0.095, 0.095, 0.02)), box((0.0, 0.0, 0.025), (0.095, 0.095, 0.0005))],
                        [Site("cook_region", (0.0, 0.0, 0.0), (0.075, 0.075, 0.0025))],
                        at=(0.15, 0.0, 0.0),
                        shapes_mass=1.48,
                        parts=[Part("burner_plate")],
                    ),
                    Part(
                        "button",
                        [
                            cylinder((0.0013, 0.0046, 0.0066), 0.046, 0.0062),
                            box((0.0013, 0.0090, 0.0255), (0.0122, 0.0430, 0.0243)),  # the bar to grip
                        ],
                        quat="0.7071068 0 0 0.7071068",
                        joint={
                            "name": "button",
                            "type": "hinge",
                            "axis": "0 0 1",
                            "range": "-0.005 2.1",
                            "damping": "1",
                        },
                        mass=3.0,
                    ),
                ],
            )
        ],
        bottom_top_radius=(-0.045, 0.045, 0.045),
    ),
    Thing(
        MOVING,
        "white_cabinet",
        0.0,
        WHITE,
        parts=[
            Part(
                "base",
                [
                    box((0.0040, 0.1095, 0.1143), (0.1191, 0.0023, 0.1058)),  # back
                    box((0.0040, 0.0163, 0.0069), (0.1228, 0.0896, 0.0020)),  # bottom
                    box((-0.1122, 0.0163, 0.1143), (0.0052, 0.0954, 0.1058)),
                    box((0.1190, 0.0163, 0.1143), (0.0052, 0.0954, 0.1058)),
                    box((0.0040, 0.0187, 0.0793), (0.1117, 0.0894, 0.0009)),  # between the drawers
                    box((0.0040, 0.0187, 0.1494), (0.1117, 0.0894, 0.0009)),
                    box((0.0040, 0.0158, 0.2216), (0.1273, 0.0941, 0.0014)),  # top
                ],
                [Site("top_side", (0.0035, 0.0157, 0.22152), (0.12534, 0.09438, 0.00147))],
                shapes_mass=0.176,
                parts=[
                    drawer("top", 0.1836, 0.1839),
                    drawer("middle", 0.1139, 0.1104),
                    drawer("bottom", 0.0452, 0.0411),
                ],
            )
        ],
        bottom_top_radius=(-0.045, 0.045, 0.045),
    ),
    Thing(
        MOVING,
        "microwave",
        3.0,
        GREY,
        [
            box((-0.158, 0.0115, 0.0935), (0.0145, 0.09955, 0.0935)),
            box((0.118, 0.0115, 0.0935), (0.0545, 0.09955, 0.0935)),
            box((-0.0405, 0.0955, 0.0935), (0.1035, 0.015, 0.0935)),
            box((-0.04, -0.0035, 0.1775), (0.1035, 0.0845, 0.0095)),  # top
            box((-0.04, -0.004, 0.012), (0.1035, 0.084, 0.012)),  # floor
            box((0.13, -0.0985, 0.0935), (0.0425, 0.012, 0.0935)),
        ],
        [
            Site("top_side", (0.0, 0.01, 0.20), (0.12, 0.0835, 0.005)),
            Site("heating_region", (0.0, 0.01, 0.096), (0.12, 0.0835, 0.08)),
        ],
        [
            Part(
                "microdoorroot",
                [
                    box((0.1295, -0.013, 0.0), (0.1295, 0.012, 0.0925)),
                    cylinder((0.2375, -0.054, 0.0), 0.01, 0.065),  # handle
                    cylinder((0.2375, -0.0375, 0.065), 0.01, 0.015, "y"),
                    cylinder((0.2375, -0.0375, -0.065), 0.01, 0.015, "y"),
                ],
                at=(-0.1725, -0.088, 0.096),
                joint={
                    "name": "microjoint",
                    "type": "hinge",
                    "axis": "0 0 1",
                    "range": "-2.094 0",
                    "damping": "0.5",
                },
                shapes_mass=0.26,
            )
        ],
        bottom_top_radius=(-0.06, 0.06, 0.015),
    ),
)


# ------------------------------------------------------------------------------------------------------------- rooms


@dataclass(frozen=True)
class Room:
    """A scene: a floor and a table. LIBERO's code moves the parts of the kitchen's table itself."""

    name: str
    table: str
    slab: Shape | None = None


ROOMS = (
    Room("libero_kitchen_tabletop_base_style", "table"),
    Room(
        "libero_living_room_tabletop_base_style",
        "living_room_table",
        box((-0.25, 0.04, 0.42492), (0.575, 0.86, 0.01184)),
    ),
    Room("libero_study_base_style", "study_table", box((0.0, 0.0, 0.84929), (0.689, 1.393, 0.03584))),
)
