"""The two steps that move a latent state, for numpy arrays and torch tensors, and when a trajectory has arrived."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import torch

State = TypeVar("State", np.ndarray, "torch.Tensor")


def euler(field: Callable[[State], State], z: State, dt: float) -> State:
    """Phase I, eq. (phase1): one explicit Euler step of dz/dt = field(z), for instance -∇U + b."""
    return z + dt * field(z)


def hamiltonian(
    grad_V: Callable[[State], State],
    phi: Callable[[State], State],
    z: State,
    p: State,
    dt: float,
    eta: float,
    m: float,
) -> tuple[State, State]:
    """Phase II, eqs. (phase2_p) and (phase2_z): one dissipative step; the new momentum moves the position."""
    p = p + dt * (-grad_V(z) - eta * p + phi(z))
    return z + dt * p / m, p


def rollout(field: Callable[[State], State], z: State, dt: float, steps: int) -> list[State]:
    """The whole Euler trajectory with its start: `steps` + 1 states."""
    trajectory = [z]
    for _ in range(steps):
        trajectory.append(euler(field, trajectory[-1], dt))
    return trajectory


def steps_to_converge(distance: np.ndarray, tolerance: float) -> float:
    """The first index from which `distance` stays within `tolerance`; nan if it is outside at the end."""
    outside = np.flatnonzero(distance > tolerance)
    after = int(outside[-1]) + 1 if len(outside) else 0
    return float(after) if after < len(distance) else float("nan")
