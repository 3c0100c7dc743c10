"""Write the things of `things.py` as MJCF assets, so that LIBERO's ten tasks run on any machine.

LIBERO's own meshes are 1 GB on a hub. The simulation needs little of them: names, and shapes of nearly the same size
and mass that can be gripped and put down. The assets go below a folder, in the tree that LIBERO expects.
"""

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from PIL import Image

from ghost.files import atomic, write_text
from ghost.libero.shapes import Part, Room, Shape, Site, Thing, Vector
from ghost.libero.things import ROOMS, THINGS

# How LIBERO's objects touch: stiff and with much friction.
CONTACT = {"solimp": "0.998 0.998 0.001", "solref": "0.001 1", "friction": "0.95 0.3 0.1"}
SEEN_ONLY = {"contype": "0", "conaffinity": "0", "group": "1"}
TEXTURES = (  # LIBERO's code names these files, so they must exist
    "gray_ceramic_tile",
    "yellow_linen_wall_texture",
    "seamless_wood_planks_floor",
    "light-gray-plaster",
    "light-gray-floor-tile",
)


def write_primitives(folder: Path) -> None:
    """Write all things and rooms below `folder`, as in LIBERO's own tree."""
    for thing in THINGS:
        write_text(folder / thing.path, _xml(_thing(thing)))
    for room in ROOMS:
        write_text(folder / "scenes" / f"{room.name}.xml", _xml(_room(room)))
    for name in TEXTURES:
        with atomic(folder / "textures" / f"{name}.png") as temporary:
            Image.new("RGB", (4, 4), (200, 200, 200)).save(temporary, "PNG")


def _xml(root: Element) -> str:
    indent(root)
    return tostring(root, encoding="unicode") + "\n"


def _text(values: Sequence[float]) -> str:
    return " ".join(format(float(value), ".6g") for value in values)


def _thing(thing: Thing) -> Element:
    root = Element("mujoco", model=thing.name)
    SubElement(root, "asset")
    outer = SubElement(SubElement(root, "worldbody"), "body")
    body = SubElement(outer, "body", name="object")
    _sites(body, thing.sites)
    _shapes(body, thing.shapes, thing.mass, thing.rgb)
    for part in thing.parts:
        _part(body, part, thing.rgb)
    bottom, top, radius = thing.bottom_top_radius
    places = {"bottom": (0, 0, bottom), "top": (0, 0, top), "horizontal_radius": (radius, radius, 0)}
    for name, at in places.items():
        SubElement(outer, "site", name=f"{name}_site", pos=_text(at), size="0.005", rgba="0 0 0 0")
    return root


def _part(parent: Element, part: Part, rgb: Vector) -> None:
    body = SubElement(parent, "body", name=part.name, pos=_text(part.at), quat=part.quat)
    if part.mass:
        SubElement(body, "inertial", pos="0 0 0", mass=str(part.mass), diaginertia="1 1 1")
    if part.joint:
        given = dict(zip(("name", "type", "axis", "range", "damping"), part.joint, strict=True))
        SubElement(body, "joint", {**given, "limited": "true"})
    _sites(body, part.sites)
    _shapes(body, part.shapes, part.shapes_mass, rgb)
    for below in part.parts:
        _part(body, below, rgb)


def _sites(body: Element, sites: Sequence[Site]) -> None:
    for site in sites:
        given = {"name": site.name, "type": "box", "pos": _text(site.at), "size": _text(site.half), "quat": site.quat}
        SubElement(body, "site", {**given, "rgba": "0.8 0.8 0.8 0"})


def _shapes(body: Element, shapes: Sequence[Shape], mass: float, rgb: Vector) -> None:
    """Every shape twice: one that touches and has the mass, and one to be seen."""
    volume = sum(shape.volume for shape in shapes)
    for shape in shapes:
        given = {"type": shape.kind, "pos": _text(shape.at), "quat": _text(shape.quat), "size": _text(shape.size)}
        own = format(mass * shape.volume / volume, ".6g")
        SubElement(body, "geom", {**given, **CONTACT, "mass": own, "group": "0", "rgba": "0.8 0.8 0.8 0"})
        SubElement(body, "geom", {**given, **SEEN_ONLY, "mass": "0", "rgba": f"{_text(rgb)} 1"})


def _room(room: Room) -> Element:
    root = Element("mujoco", model=room.name)
    asset = SubElement(root, "asset")
    for name in ("texplane", "tex-wall"):  # LIBERO replaces this file by that of its style
        SubElement(asset, "texture", name=name, type="2d", file=f"../textures/{TEXTURES[0]}.png")
    SubElement(asset, "material", name="floorplane", texture="texplane", texrepeat="3 3")
    world = SubElement(root, "worldbody")
    floor = {"name": "floor", "type": "plane", "size": "3 3 .125", "material": "floorplane"}
    SubElement(world, "geom", {**floor, "group": "1", "condim": "3"})
    table = SubElement(world, "body", name=room.table)
    if room.slab is None:
        slab = {"type": "box", "size": "0.4 0.4 0.4"}
        SubElement(table, "geom", {**slab, "name": "table_collision", "group": "0", "friction": "1 .005 .0001"})
        SubElement(table, "geom", {**slab, **SEEN_ONLY, "name": "table_visual", "rgba": "0.7 0.6 0.5 1"})
        SubElement(table, "site", name="table_top", pos="0 0 0.4", size="0.001", rgba="0 0 0 0")
        for leg in range(1, 5):
            name = f"table_leg{leg}_visual"
            SubElement(table, "geom", {**SEEN_ONLY, "name": name, "type": "cylinder", "size": "0.05 0.1"})
    else:
        _shapes(table, [room.slab], 10.0, (0.7, 0.6, 0.5))
    for name, pos in (("light1", "1 1 4"), ("light2", "-3 -3 4")):
        SubElement(world, "light", name=name, pos=pos, dir="0 -.15 -1", castshadow="false")
    cameras = {
        "frontview": ((1.0, 0, 1.45), (0.56, 0.43, 0.43, 0.56)),
        "birdview": ((-0.2, 0, 3.0), (0.7071, 0, 0, 0.7071)),
        "agentview": ((0.5, 0, 1.35), (0.653, 0.271, 0.271, 0.653)),
        "sideview": ((-0.0565, 1.2761, 1.488), (0.0099, 0.0069, 0.5912, 0.8064)),
    }
    for name, (at, quat) in cameras.items():
        SubElement(world, "camera", name=name, mode="fixed", pos=_text(at), quat=_text(quat))
    return root
