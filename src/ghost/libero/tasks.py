"""The ten tasks of LIBERO-10, the names of the things in them, and what is seen of these at a time step."""

import re
from dataclasses import dataclass

import numpy as np

from ghost.data.lerobot import STATE

# The things that an instruction can name: our name, and the body or site of the simulation.
THINGS = {
    "alphabet_soup": "alphabet_soup_1_main",
    "tomato_sauce": "tomato_sauce_1_main",
    "cream_cheese": "cream_cheese_1_main",
    "butter": "butter_1_main",
    "basket": "basket_1_main",
    "moka_pot": "moka_pot_1_main",
    "other_moka_pot": "moka_pot_2_main",
    "stove": "flat_stove_1_cook_region",
    "knob": "flat_stove_1_button",
    "bowl": "akita_black_bowl_1_main",
    "drawer": "white_cabinet_1_bottom_region",
    "white_mug": "porcelain_mug_1_main",
    "yellow_mug": "white_yellow_mug_1_main",
    "plate": "plate_1_main",
    "right_plate": "plate_2_main",
    "book": "black_book_1_main",
    "caddy": "desk_caddy_1_back_contain_region",
    "pudding": "chocolate_pudding_1_main",
    "right_of_plate": "living_room_table_plate_right_region",
    "microwave": "microwave_1_heating_region",
    "door": "microwave_1_microdoorroot",
}
ROWS = {name: row for row, name in enumerate(THINGS)}  # of `Look.things`
CAMERAS = ("agentview", "robot0_eye_in_hand")  # of the simulation
JOINTS = ("flat_stove_1_button", "white_cabinet_1_bottom_level", "microwave_1_microjoint")


@dataclass(frozen=True)
class Goal:
    """One part of a task's instruction: bring the thing to the place, or move the joint."""

    thing: str
    place: str
    joint: int = -1  # into JOINTS


@dataclass(frozen=True)
class Task:
    file: str  # LIBERO's file name, without its ending: the scene, then the instruction
    goals: tuple[Goal, ...]  # in the order of the scripted expert

    @property
    def instruction(self) -> str:
        return re.sub(r"^[A-Z_]+SCENE\d+_", "", self.file).replace("_", " ")


TASKS = (
    Task(
        "LIVING_ROOM_SCENE2_put_both_the_alphabet_soup_and_the_tomato_sauce_in_the_basket",
        (Goal("alphabet_soup", "basket"), Goal("tomato_sauce", "basket")),
    ),
    Task(
        "LIVING_ROOM_SCENE2_put_both_the_cream_cheese_box_and_the_butter_in_the_basket",
        (Goal("cream_cheese", "basket"), Goal("butter", "basket")),
    ),
    Task(
        "KITCHEN_SCENE3_turn_on_the_stove_and_put_the_moka_pot_on_it",
        (Goal("knob", "knob", 0), Goal("moka_pot", "stove")),
    ),
    Task(
        "KITCHEN_SCENE4_put_the_black_bowl_in_the_bottom_drawer_of_the_cabinet_and_close_it",
        (Goal("bowl", "drawer"), Goal("drawer", "drawer", 1)),
    ),
    Task(
        "LIVING_ROOM_SCENE5_put_the_white_mug_on_the_left_plate_and_put_the_yellow_and_white_mug_on_the_right_plate",
        (Goal("white_mug", "plate"), Goal("yellow_mug", "right_plate")),
    ),
    Task(
        "STUDY_SCENE1_pick_up_the_book_and_place_it_in_the_back_compartment_of_the_caddy",
        (Goal("book", "caddy"),),
    ),
    Task(
        "LIVING_ROOM_SCENE6_put_the_white_mug_on_the_plate_and_put_the_chocolate_pudding_to_the_right_of_the_plate",
        (Goal("pudding", "right_of_plate"), Goal("white_mug", "plate")),
    ),
    Task(
        "LIVING_ROOM_SCENE1_put_both_the_alphabet_soup_and_the_cream_cheese_box_in_the_basket",
        (Goal("alphabet_soup", "basket"), Goal("cream_cheese", "basket")),
    ),
    Task(
        "KITCHEN_SCENE8_put_both_moka_pots_on_the_stove",
        (Goal("other_moka_pot", "stove"), Goal("moka_pot", "stove")),
    ),
    Task(
        "KITCHEN_SCENE6_put_the_yellow_and_white_mug_in_the_microwave_and_close_it",
        (Goal("yellow_mug", "microwave"), Goal("door", "microwave", 2)),
    ),
)


def trial_seeds(env_seed: int, task: int, trial: int) -> tuple[int, int]:
    """Of the reset and of the policy, in a trial."""
    reset, policy = np.random.SeedSequence([env_seed, task, trial]).generate_state(2).tolist()
    return reset, policy


@dataclass(frozen=True)
class Look:
    """What is seen at one time step. A thing that is not in the scene has only zeros."""

    hand: np.ndarray  # [3] between the fingertips, in the world
    rotation: np.ndarray  # [3, 3]
    fingers: np.ndarray  # [2] m
    finger_speed: np.ndarray  # [2] m/s
    things: np.ndarray  # [21, 9]: position, then the first two columns of the rotation
    joints: np.ndarray  # [3]: knob, drawer, door

    def at(self, name: str) -> np.ndarray:
        """The position of a thing [3]."""
        return self.things[ROWS[name], :3]

    def axes(self, name: str) -> np.ndarray:
        """The rotation of a thing [3, 3]."""
        a, b, c, x, y, z = self.things[ROWS[name], 3:]
        return np.array([[a, x, b * z - c * y], [b, y, c * x - a * z], [c, z, a * y - b * x]])

    @property
    def hand_yaw(self) -> float:
        """The fingers lie along Rz(yaw) e_y = (-sin yaw, cos yaw)."""
        return float(np.arctan2(-self.rotation[0, 0], self.rotation[1, 0]))

    @property
    def closing(self) -> bool:
        return bool(self.finger_speed[0] - self.finger_speed[1] < -0.02)

    @property
    def opening(self) -> float:
        """The distance between the fingers in metres: 0.08 when wide open."""
        return float(self.fingers[0] - self.fingers[1])

    def columns(self) -> dict[str, np.ndarray]:
        """As recorded, float32: state [13], scene.things [21, 9], scene.hand [9], scene.joints [3]."""
        hand = np.concatenate([self.hand, self.rotation[:, :2].T.ravel()])
        values = {
            STATE: np.concatenate([hand, 25 * self.fingers, 5 * self.finger_speed]),  # metres, scaled to order one
            "observation.scene.things": self.things,
            "observation.scene.hand": hand,
            "observation.scene.joints": self.joints,
        }
        return {name: value.astype(np.float32) for name, value in values.items()}
