"""The things and rooms of LIBERO-10 as boxes and cylinders. `primitives.py` writes them as assets.

The names of bodies, joints and sites are LIBERO's, because the BDDL goals and the official init states refer to them.
The sizes were read off LIBERO's collision geometry. Its rings of boxes are rings of fewer boxes here, its cans are
cylinders.
"""

import numpy as np

from ghost.libero.shapes import ORIGIN, Part, Room, Site, Thing, box, cylinder, ring

HOPE, SCANNED = "stable_hope_objects", "stable_scanned_objects"
TURBO, MOVING = "turbosquid_objects", "articulated_objects"
RED, BLUE, WHITE, BLACK = (0.8, 0.2, 0.15), (0.3, 0.4, 0.8), (0.9, 0.9, 0.9), (0.15, 0.15, 0.15)
GREEN, YELLOW, BROWN, GREY = (0.3, 0.6, 0.3), (0.9, 0.8, 0.3), (0.45, 0.3, 0.2), (0.6, 0.6, 0.62)


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
        joint=(f"{level}_level", "slide", "0 1 0", "-0.16 0.01", "50"),
        mass=3.0,
    )


CARTON = [  # stands on its local -y side
    box((0.0, -0.015, 0.0), (0.0262, 0.0548, 0.0263)),
    box((0.0, 0.0505, 0.0), (0.0263, 0.011, 0.012)),
]
KETCHUP = [
    box((0.0004, -0.0394, 0.0008), (0.0281, 0.0331, 0.017)),
    box((0.0004, 0.0144, 0.0008), (0.0215, 0.022, 0.0183)),
    cylinder((0.0004, 0.0547, 0.0008), 0.016, 0.0185, "y"),
]
BASKET = [
    box((0.0025, 0.0, 0.0131), (0.0766, 0.0724, 0.0089)),
    box((-0.0727, 0.0, 0.0766), (0.0115, 0.0724, 0.064)),
    box((0.0756, 0.0, 0.0766), (0.0098, 0.0724, 0.064)),
    box((0.0, -0.0688, 0.0818), (0.0725, 0.0098, 0.0639)),
    box((0.0, 0.0688, 0.0818), (0.0725, 0.0098, 0.0639)),
]
PLATE = [
    cylinder((0.0, 0.0, 0.0031), 0.034, 0.0029),
    *ring((0.0, 0.0), 0.0483, 0.007, 0.0025, 0.0191, n=8, tilt=np.pi / 2 - 0.35),
]
BOWL = [
    cylinder((0.0, 0.0, 0.0042), 0.025, 0.0026),
    *ring((0.0, 0.0), 0.0336, 0.0096, 0.0012, 0.0119, n=12, tilt=1.05),
    *ring((0.0, 0.0), 0.0471, 0.0337, 0.0014, 0.0188, n=12, tilt=0.25),
]
FRYPAN = [
    cylinder((0.007, 0.0, 0.0068), 0.072, 0.006),
    *ring((0.007, 0.0), 0.089, 0.0223, 0.0036, 0.0213, n=12, tilt=0.5),
    box((0.12, 0.0, 0.0245), (0.018, 0.011, 0.0124)),
    box((0.1926, 0.0, 0.0441), (0.0667, 0.0127, 0.0146)),
]
PORCELAIN_MUG = [
    cylinder((0.0153, -0.0015, 0.0076), 0.026, 0.0052),
    *ring((0.0153, -0.0015), 0.0345, 0.0260, 0.0016, 0.0190, n=10, tilt=0.35),
    *ring((0.0153, -0.0015), 0.0410, 0.0758, 0.0024, 0.0326, n=10),
    box((-0.0595, 0.0, 0.056), (0.0038, 0.008, 0.0198)),  # handle
    box((-0.0416, 0.0, 0.0286), (0.0198, 0.008, 0.0038), tilt_y=0.5),
    box((-0.0463, 0.0, 0.0834), (0.0198, 0.008, 0.0038), tilt_y=-0.5),
]
WHITE_YELLOW_MUG = [
    cylinder((-0.0182, 0.0, 0.0052), 0.028, 0.0050),
    *ring((-0.0182, 0.0), 0.0330, 0.0106, 0.0041, 0.0103, n=12, tilt=0.5),
    *ring((-0.0182, -0.0005), 0.0425, 0.0593, 0.0041, 0.0438, n=14),
    box((0.0641, 0.0, 0.056), (0.0041, 0.0088, 0.0292)),  # handle
    box((0.0402, 0.0, 0.0263), (0.0249, 0.0088, 0.0041), tilt_y=-0.2),
    box((0.0464, 0.0, 0.0796), (0.022, 0.0088, 0.0065)),
]
RED_COFFEE_MUG = [
    cylinder((-0.0155, -0.0025, 0.0055), 0.027, 0.0025),
    *ring((-0.0155, -0.0025), 0.0315, 0.0645, 0.0035, 0.0655, n=10),
    box((0.0547, 0.0011, 0.080), (0.0046, 0.0073, 0.030)),
    box((0.0346, 0.0011, 0.1116), (0.0184, 0.0069, 0.0045)),
    box((0.0346, 0.0011, 0.050), (0.0184, 0.0069, 0.0045)),
]
MOKA_POT = [
    cylinder((0.0, 0.0015, 0.0004), 0.0335, 0.0666),
    box((0.0, -0.0420, 0.0450), (0.0125, 0.0120, 0.0190)),  # spout
    box((0.0, 0.0450, 0.0560), (0.0080, 0.0160, 0.0070)),  # handle
    box((0.0, 0.0740, 0.0420), (0.0066, 0.0160, 0.0220)),
    box((0.0001, 0.0615, 0.0080), (0.0066, 0.0121, 0.0101)),
    box((0.0, -0.0013, 0.0743), (0.0052, 0.0060, 0.0114)),  # knob of the lid
]
WINE_BOTTLE = [
    cylinder((0.0, 0.0, 0.0370), 0.0195, 0.0360),
    cylinder((0.0, 0.0, 0.0811), 0.0125, 0.0080),
    cylinder((0.0, 0.0, 0.1210), 0.0072, 0.0370),
]
WINE_RACK = [
    box((0.0, -0.0061, 0.2512), (0.1344, 0.0789, 0.0045), tilt_x=0.546),
    box((0.0, -0.0427, 0.1273), (0.1344, 0.0789, 0.0045), tilt_x=0.546),
    box((0.0, -0.0748, 0.2207), (0.1322, 0.0011, 0.0087), tilt_x=0.546),
    box((0.0, -0.1091, 0.0974), (0.1322, 0.0011, 0.0087), tilt_x=0.546),
    box((0.0, 0.0, 0.0120), (0.0900, 0.1240, 0.0120)),
    box((0.0, 0.0089, 0.1703), (0.0076, 0.0091, 0.1616), tilt_x=-0.277),
]
DESK_CADDY = [
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
]
MICROWAVE = [
    box((-0.158, 0.0115, 0.0935), (0.0145, 0.09955, 0.0935)),
    box((0.118, 0.0115, 0.0935), (0.0545, 0.09955, 0.0935)),
    box((-0.0405, 0.0955, 0.0935), (0.1035, 0.015, 0.0935)),
    box((-0.04, -0.0035, 0.1775), (0.1035, 0.0845, 0.0095)),  # top
    box((-0.04, -0.004, 0.012), (0.1035, 0.084, 0.012)),  # floor
    box((0.13, -0.0985, 0.0935), (0.0425, 0.012, 0.0935)),
]
CADDY_REGIONS = [
    Site("right_contain_region", (0.0063, -0.1434, 0.0656), (0.06196, 0.06216, 0.06046)),
    Site("left_contain_region", (0.0063, 0.1455, 0.0656), (0.06196, 0.06216, 0.06046)),
    Site("back_contain_region", (0.0336, -0.0006, 0.0856), (0.02775, 0.06216, 0.06046)),
    Site("front_contain_region", (-0.031, -0.0006, 0.0405), (0.02775, 0.06216, 0.03595)),
]
BURNER = Part(
    "burner",
    [box(ORIGIN, (0.095, 0.095, 0.02)), box((0.0, 0.0, 0.025), (0.095, 0.095, 0.0005))],
    # LIBERO shows the second one in red while the stove is on
    [Site("cook_region", ORIGIN, (0.075, 0.075, 0.0025)), Site("burner", (0.0, 0.0, 0.022), (0.0625, 0.0625, 0.0005))],
    at=(0.15, 0.0, 0.0),
    shapes_mass=1.48,
    parts=[Part("burner_plate")],
)
KNOB = Part(
    "button",
    [
        cylinder((0.0013, 0.0046, 0.0066), 0.046, 0.0062),
        box((0.0013, 0.0090, 0.0255), (0.0122, 0.0430, 0.0243)),  # the bar to grip
    ],
    quat="0.7071068 0 0 0.7071068",
    joint=("button", "hinge", "0 0 1", "-0.005 2.1", "1"),
    mass=3.0,
)
CABINET = Part(
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
    parts=[drawer("top", 0.1836, 0.1839), drawer("middle", 0.1139, 0.1104), drawer("bottom", 0.0452, 0.0411)],
)
OVEN_REGIONS = [
    Site("top_side", (0.0, 0.01, 0.20), (0.12, 0.0835, 0.005)),
    Site("heating_region", (0.0, 0.01, 0.096), (0.12, 0.0835, 0.08)),
]
OVEN_DOOR = Part(
    "microdoorroot",
    [
        box((0.1295, -0.013, 0.0), (0.1295, 0.012, 0.0925)),
        cylinder((0.2375, -0.054, 0.0), 0.01, 0.065),  # handle
        cylinder((0.2375, -0.0375, 0.065), 0.01, 0.015, "y"),
        cylinder((0.2375, -0.0375, -0.065), 0.01, 0.015, "y"),
    ],
    at=(-0.1725, -0.088, 0.096),
    joint=("microjoint", "hinge", "0 0 1", "-2.094 0", "0.5"),
    shapes_mass=0.26,
)
BASKET_REGION = Site("contain_region", (0.0, 0.0, 0.07185), (0.06108, 0.06108, 0.06949))
RACK_REGION = Site("top_region", (0.0, -0.08003, 0.21745), (0.10087, 0.022, 0.00251), "0.8549119 -0.5187733 0 0")
SOUP = cylinder((0.0, -0.0006, -0.0034), 0.031, 0.0376, "y")
SAUCE = cylinder((0.0, -0.0006, -0.0030), 0.0305, 0.0376, "y")
CHEESE, BUTTER = box(ORIGIN, (0.0406, 0.0213, 0.0089)), box(ORIGIN, (0.0381, 0.0198, 0.0087))
PUDDING = box((-0.0005, 0.0, 0.0006), (0.0401, 0.0232, 0.0137))
BOOK = box((-0.0005, -0.0122, 0.0694), (0.0143, 0.0552, 0.0672))
FIXTURE = (-0.045, 0.045, 0.045)

THINGS = (
    Thing(HOPE, "alphabet_soup", 0.0259, RED, [SOUP], bottom_top_radius=(-0.04, 0.04, 0.025)),
    Thing(HOPE, "tomato_sauce", 0.0266, RED, [SAUCE]),
    Thing(HOPE, "cream_cheese", 0.0062, BLUE, [CHEESE], bottom_top_radius=(-0.025, 0.025, 0.03)),
    Thing(HOPE, "butter", 0.0052, YELLOW, [BUTTER], bottom_top_radius=(-0.02, 0.02, 0.02)),
    Thing(HOPE, "chocolate_pudding", 0.0102, BROWN, [PUDDING]),
    Thing(HOPE, "ketchup", 0.0232, RED, KETCHUP),
    Thing(HOPE, "milk", 0.0317, WHITE, CARTON, bottom_top_radius=(-0.06, 0.04, 0.03)),
    Thing(HOPE, "orange_juice", 0.0317, YELLOW, CARTON, bottom_top_radius=(-0.06, 0.04, 0.03)),
    Thing(SCANNED, "basket", 0.1361, BROWN, BASKET, [BASKET_REGION]),
    Thing(SCANNED, "plate", 0.0115, WHITE, PLATE),
    Thing(SCANNED, "akita_black_bowl", 0.0056, BLACK, BOWL),
    Thing(SCANNED, "chefmate_8_frypan", 0.0502, BLACK, FRYPAN),
    Thing(TURBO, "porcelain_mug", 0.0165, WHITE, PORCELAIN_MUG),
    Thing(TURBO, "white_yellow_mug", 0.0309, YELLOW, WHITE_YELLOW_MUG),
    Thing(TURBO, "red_coffee_mug", 0.0294, RED, RED_COFFEE_MUG),
    Thing(TURBO, "moka_pot", 0.0682, GREY, MOKA_POT),
    Thing(TURBO, "black_book", 0.0425, BLACK, [BOOK]),
    Thing(TURBO, "wine_bottle", 0.0154, GREEN, WINE_BOTTLE),
    Thing(TURBO, "wine_rack", 0.1527, BROWN, WINE_RACK, [RACK_REGION]),
    Thing(TURBO, "desk_caddy", 0.278, BROWN, DESK_CADDY, CADDY_REGIONS),
    Thing(MOVING, "flat_stove", 0.0, GREY, parts=[Part("base", parts=[BURNER, KNOB])], bottom_top_radius=FIXTURE),
    Thing(MOVING, "white_cabinet", 0.0, WHITE, parts=[CABINET], bottom_top_radius=FIXTURE),
    Thing(MOVING, "microwave", 3.0, GREY, MICROWAVE, OVEN_REGIONS, [OVEN_DOOR], (-0.06, 0.06, 0.015)),
)

LIVING_ROOM_SLAB = box((-0.25, 0.04, 0.42492), (0.575, 0.86, 0.01184))
STUDY_SLAB = box((0.0, 0.0, 0.84929), (0.689, 1.393, 0.03584))
ROOMS = (
    Room("libero_kitchen_tabletop_base_style", "table"),
    Room("libero_living_room_tabletop_base_style", "living_room_table", LIVING_ROOM_SLAB),
    Room("libero_study_base_style", "study_table", STUDY_SLAB),
)
