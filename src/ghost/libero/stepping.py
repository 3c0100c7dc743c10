"""How the simulation of LIBERO-10 is stepped and reset: `fast`, which is ours, or `libero`, which is LIBERO's own.

`libero` is what LIBERO's own evaluation does, to the bit: each reset builds the simulation anew, an init state is set
behind the controller's back (so the arm moves by some hundredths of a radian while it settles), and each step is
robosuite's. A step takes about twice as long as with `fast`, a reset some seconds. Contacts are chaotic: single
episodes of the two differ, and success rates are what to compare (docs/libero.md).
"""

from functools import cache
from typing import Any

import numpy as np

from ghost.libero.assets import Assets
from ghost.libero.environment import REST, SETTLE_STEPS, Environment, build


class LiberoEnvironment(Environment):
    """An environment that LIBERO and robosuite reset and step themselves."""

    def _build(self) -> Any:
        return build(self.task, self.assets, seen=False, initialization_noise=None, hard_reset=True)

    def reset(self, init_state: int | None, seed: int) -> None:
        """As `ControlEnv.seed`, `reset` and `set_init_state` of LIBERO do, then ten steps of rest."""
        self._reset_libero(seed)
        if init_state is not None:
            self._libero.sim.set_state_from_flattened(self.init_states[init_state])
            self._libero.sim.forward()
            self._libero._check_success()
            self._libero._post_process()
            self._libero._update_observables(force=True)
        self._bind()
        self.start = self._digest()
        for _ in range(SETTLE_STEPS):
            self.step(REST)

    def step(self, action: np.ndarray) -> None:
        """One control step of 50 ms."""
        self._libero.step(action)


STEPPINGS = {"fast": Environment, "libero": LiberoEnvironment}


@cache
def environment(task: int, assets: Assets, stepping: str = "fast") -> Environment:
    """A process builds the model of a task once."""
    return STEPPINGS[stepping](task, assets)
