"""Meta-World's manipulation tasks in MuJoCo, with their scripted experts.

    world = World("reach-v3")
    observation = world.reset(seed=3)                    # [39], the goal among it
    observation, reward, success = world.step(action)    # [4] in -1 to 1
    expert = world.expert(observation)                   # [4], clipped likewise

ML10 and ML45 are lists of training tasks. Meta-World's own benchmark classes draw fifty variations of each task when
they are built, which takes minutes. Here a seed draws the variation at `reset`. The scripted experts must see the goal.
The agents, which imitate them, see the same 39 numbers, centred, and some offsets between them (`features`).
"""

import warnings
from typing import Any

import numpy as np

TASKS = {"ml10": 10, "ml45": 45}  # training tasks of each benchmark
FRAME = 18  # hand (3), gripper (1), two objects of position (3) and quaternion (4); now, and one step ago; goal (3)
CENTRE_M = np.array([0.0, 0.6, 0.15], np.float32)  # of the space in which the hand works
PER_METRE = 5.0  # agents see lengths in units of 20 cm


def features(observation: np.ndarray) -> np.ndarray:
    """Observations [..., 39] as agents see them [..., 51]: centred, with offsets between hand, objects and goal.

    An object that a task lacks stands at the simulator's origin, all zeros. Its offsets are zero too.
    """
    x = observation.astype(np.float32).copy()
    hand, first, second, goal = (x[..., i : i + 3].copy() for i in (0, 4, 11, 36))
    absent = (second == 0).all(axis=-1, keepdims=True)
    offsets = [first - hand, goal - hand, goal - first, np.where(absent, 0, second - hand)]
    for start in (0, 4, 11, FRAME, FRAME + 4, FRAME + 11, 36):
        missing = (x[..., start : start + 3] == 0).all(axis=-1, keepdims=True)
        x[..., start : start + 3] = np.where(missing, 0, (x[..., start : start + 3] - CENTRE_M) * PER_METRE)
    return np.concatenate([x, *(offset * PER_METRE for offset in offsets)], axis=-1, dtype=np.float32)


def tasks(benchmark: str) -> tuple[str, ...]:
    """The training tasks of a benchmark: those of ML10 in Meta-World's order, those of ML45 by name."""
    from metaworld.env_dict import ML10_V3, ML45_V3

    return tuple(ML10_V3["train"] if benchmark == "ml10" else sorted(ML45_V3["train"]))


def check_benchmark(benchmark: str, tasks: int) -> None:
    """Check the settings for the first `tasks` tasks of a benchmark."""
    if benchmark not in TASKS:
        raise ValueError(f"benchmark must be one of {', '.join(TASKS)}, got {benchmark!r}")
    if not 2 <= tasks <= TASKS[benchmark]:
        raise ValueError(f"tasks must lie in 2 to {TASKS[benchmark]}, got {tasks}")


class World:
    """One task. Building it compiles its MuJoCo model, so keep it for many episodes."""

    def __init__(self, task: str) -> None:
        from metaworld.env_dict import ALL_V3_ENVIRONMENTS
        from metaworld.policies import ENV_POLICY_MAP

        self.task = task
        self._env: Any = ALL_V3_ENVIRONMENTS[task]()
        self._env._partially_observable = False
        self._env.__dict__.pop("sawyer_observation_space", None)  # cached while the goal was hidden
        self._env._freeze_rand_vec = False
        self._env._set_task_called = True
        self._env.seeded_rand_vec = True
        self._policy: Any = ENV_POLICY_MAP[task]()

    def reset(self, seed: int) -> np.ndarray:
        """A new variation of the task. The seed places goal and objects."""
        self._env.seed(seed)
        observation, _ = self._env.reset()
        return np.asarray(observation, np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool]:
        observation, reward, _, _, info = self._env.step(np.clip(action, -1, 1).astype(np.float32))
        return np.asarray(observation, np.float32), float(reward), bool(info["success"])

    def expert(self, observation: np.ndarray) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "constants may be too high": clipped below
            action = self._policy.get_action(observation.astype(np.float64))
        return np.clip(np.asarray(action, np.float32), -1, 1)
