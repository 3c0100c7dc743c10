"""Operational space control of the Panda arm: robosuite's OSC_POSE, written out and compiled.

It turns the error of the hand's pose into torques of the seven joints, with position and rotation uncoupled. In the
directions that do not move the hand, the joints are drawn back to their posture. It runs 25 times in a control step of
50 ms. It is compiled because in numpy it would cost more than the physics.
"""

import numba
import numpy as np

STIFFNESS, DAMPING = 150.0, 2 * np.sqrt(150.0)  # of the pose
POSTURE_STIFFNESS, POSTURE_DAMPING = 10.0, 2 * np.sqrt(10.0)  # of the joints


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def command(
    control: np.ndarray,  # [actuators], where the arm's are set
    whole_jacobian: np.ndarray,  # [6, degrees of freedom] of the hand; this and the next four are of the whole scene
    whole_mass: np.ndarray,
    bias: np.ndarray,  # gravity and Coriolis forces
    positions: np.ndarray,
    speeds: np.ndarray,
    motors: np.ndarray,  # [7] places of the arm in `control`
    joints: np.ndarray,  # [7] in `positions`
    freedoms: np.ndarray,  # [7] in `speeds`
    limits: np.ndarray,  # [2, 7] the least and the largest torque
    posture: np.ndarray,  # [7]
    hand: np.ndarray,  # [3]
    rotation: np.ndarray,  # [3, 3]
    goal: np.ndarray,  # [3]
    goal_rotation: np.ndarray,  # [3, 3]
) -> None:
    """Set the torques, clipped to the motors' limits. To gather and clip in numpy would cost as much again."""
    jacobian, mass = whole_jacobian[:, freedoms], whole_mass[freedoms][:, freedoms]  # [6, 7], [7, 7]
    error = np.empty(6)
    error[:3] = goal - hand
    error[3:] = 0.0
    for k in range(3):  # half the sum of the cross products of present and wanted axes
        a, b = rotation[:, k], goal_rotation[:, k]
        error[3] += 0.5 * (a[1] * b[2] - a[2] * b[1])
        error[4] += 0.5 * (a[2] * b[0] - a[0] * b[2])
        error[5] += 0.5 * (a[0] * b[1] - a[1] * b[0])
    wanted = STIFFNESS * error - DAMPING * (jacobian @ speeds[freedoms])
    transposed = np.ascontiguousarray(jacobian.T)
    response = np.linalg.solve(mass, transposed)  # [7, 6]
    inverse = jacobian @ response  # [6, 6]: J M⁻¹ Jᵀ
    force = np.empty(6)
    force[:3] = np.linalg.solve(np.ascontiguousarray(inverse[:3, :3]), wanted[:3])
    force[3:] = np.linalg.solve(np.ascontiguousarray(inverse[3:, 3:]), wanted[3:])
    pull = mass @ (POSTURE_STIFFNESS * (posture - positions[joints]) - POSTURE_DAMPING * speeds[freedoms])
    free = pull - transposed @ np.linalg.solve(inverse, np.ascontiguousarray(response.T) @ pull)
    torques = transposed @ force + bias[freedoms] + free
    for motor in range(7):
        control[motors[motor]] = min(max(torques[motor], limits[0, motor]), limits[1, motor])
