"""The columns that are recorded of a time step: the robot's own state, and what cameras would show of the scene."""

import numpy as np

from ghost.data.lerobot import STATE
from ghost.libero.tasks import Look


def columns(look: Look) -> dict[str, np.ndarray]:
    """The columns of one step, float32: state [13], scene.things [21, 9], scene.hand [9], scene.joints [3]."""
    hand = np.concatenate([look.hand, look.rotation[:, :2].T.ravel()])
    values = {
        STATE: np.concatenate([hand, 25 * look.fingers, 5 * look.finger_speed]),  # metres, scaled to order one
        "observation.scene.things": look.things,
        "observation.scene.hand": hand,
        "observation.scene.joints": look.joints,
    }
    return {name: value.astype(np.float32) for name, value in values.items()}
