"""Demonstrations of the scripted experts on LIBERO-10, in LeRobot's format.

An attempt starts from a scene that LIBERO's own reset draws with a seed of the attempt. So the official init states are
all left for the rollouts, and no two demonstrations start alike; `start` in the episodes' meta data is a digest of the
scene. The arm is disturbed: an AR(1) noise on its actions, and now and then a burst of random steps, from which the
expert recovers. What is recorded as the action is what the expert intends at each step, not what was executed. Attempts
that end without success are left out. The sub-phase of the expert stands at each step in the column `phase`.

An attempt is a unit of work: a killed run goes on after the last finished one, and more attempts do only the new ones.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ghost.data.lerobot import ACTION
from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.files import atomic
from ghost.libero.assets import Assets, find_assets
from ghost.libero.environment import Environment
from ghost.libero.experts import expert
from ghost.libero.stepping import environment
from ghost.libero.tasks import CAMERAS, TASKS
from ghost.runs.driver import Split
from ghost.runs.settings import at_least_one
from ghost.runs.units import Kept, Made

FPS = 20
world = find_assets  # records have their facts
FOLDER, ARRAYS = "dataset", "attempt.npz"
PICTURES = "observation.images."  # how a camera's column begins
PERSISTENCE = 0.8  # of the noise, from step to step
SHARES = np.array([1.0, 1.0, 1.0, 0.3, 0.3, 0.3])  # rotations are disturbed less
BURST_STEPS, BURST_SIZE = 4, 0.6


@dataclass(frozen=True)
class Settings:
    tasks: tuple[int, ...]
    attempts: int  # a task
    max_steps: int
    noise: float  # σ of the disturbance, where 1 is 5 cm a step
    bursts: float  # probability of a burst, per step
    cameras: bool = False  # film it, for a backbone that reads images; needs OpenGL

    def __post_init__(self) -> None:
        if not self.tasks or not set(self.tasks) <= set(range(len(TASKS))):
            raise ValueError(f"tasks must be some of 0 to {len(TASKS) - 1}, got {self.tasks}")
        at_least_one(self, "attempts", "max_steps")
        if self.noise < 0 or not 0 <= self.bursts < 1:
            raise ValueError(f"noise must not be negative and bursts lie in [0, 1), got {self.noise}, {self.bursts}")


@dataclass(frozen=True)
class Attempt:
    task: int
    number: int
    start: str  # digest of the scene
    success: bool
    columns: dict[str, np.ndarray]
    videos: dict[str, np.ndarray]  # camera -> [S, height, width, 3] uint8; none unless filmed


def make(settings: Settings, *, seed: int, folder: Path) -> Split:
    """Try every task several times, then write the attempts that ended well as a data set into the run's folder."""
    jobs = [(task, number) for task in settings.tasks for number in range(settings.attempts)]
    return Split(
        {f"T{task}_{number:03d}": [task, number] for task, number in jobs},
        partial(_attempt, settings, find_assets(), seed),
        partial(_join, settings, folder),
        without=("tasks", "attempts"),
        noun="attempts",
        summary=lambda found: f"{sum(attempt['success'] for attempt in found)} of {len(found)} succeeded",
    )


def _attempt(settings: Settings, assets: Assets, seed: int, folder: Path, job: list[int]) -> Made:
    """One attempt; it does not depend on how many others there are."""
    task, number = job
    attempt = make_attempt(environment(task, assets), settings, seed, (task, number))
    with atomic(folder / ARRAYS) as temporary:
        np.savez_compressed(temporary, **attempt.columns, **attempt.videos)  # type: ignore[arg-type]
    value = {"task": task, "number": number, "start": attempt.start, "success": attempt.success}
    return Made(value, (ARRAYS,))


def _read(kept: Kept) -> Attempt:
    with np.load(kept.folder / ARRAYS, allow_pickle=False) as file:
        columns = dict(file)
    videos = {name: columns.pop(name) for name in list(columns) if name.startswith(PICTURES)}
    return Attempt(**kept.value, columns=columns, videos=videos)


def _join(settings: Settings, folder: Path, made: list[Kept]) -> Outcome:
    attempts = [_read(kept) for kept in made]
    succeeded = [attempt for attempt in attempts if attempt.success]
    measured = []
    for task in settings.tasks:
        tried = sum(attempt.task == task for attempt in attempts)
        kept = [attempt for attempt in succeeded if attempt.task == task]
        if not kept:
            raise GhostError(f"libero_demos: none of {tried} attempts at task {task} ended well")
        lengths = [len(attempt.columns[ACTION]) for attempt in kept]
        changes = [1 + np.count_nonzero(np.diff(attempt.columns["phase"])) for attempt in kept]
        measured += [
            Measured(f"T{task}", "expert_success", len(kept) / tried, tried),
            Measured(f"T{task}", "steps", float(np.mean(lengths)), len(kept)),
            Measured(f"T{task}", "phases", float(np.mean(changes)), len(kept)),
        ]
    measured += [
        Measured("all", "expert_success", len(succeeded) / len(attempts), len(attempts)),
        Measured("all", "episodes", len(succeeded)),
        Measured("all", "steps", sum(len(attempt.columns[ACTION]) for attempt in succeeded)),
    ]
    names = write_dataset(
        folder / FOLDER,
        [
            Recording(
                TASKS[attempt.task].instruction,
                attempt.columns,
                attempt.videos,
                facts={"libero_task": attempt.task, "start": attempt.start},
            )
            for attempt in succeeded
        ],
        fps=FPS,
        robot="Panda in LIBERO",
        tasks=[TASKS[task].instruction for task in settings.tasks],
    )
    return Outcome(measured, files=tuple(f"{FOLDER}/{name}" for name in names))


def make_attempt(env: Environment, settings: Settings, seed: int, job: tuple[int, int]) -> Attempt:
    """The expert's, disturbed, from a scene drawn for this attempt."""
    task, number = job
    rng = np.random.default_rng([seed, task, number])
    env.reset(None, seed=int(rng.integers(2**31)))
    start = env.start
    noise, burst, left = np.zeros(6), np.zeros(6), 0
    size = settings.noise * SHARES
    steps: list[dict[str, np.ndarray]] = []
    films: dict[str, list[np.ndarray]] = {camera: [] for camera in CAMERAS} if settings.cameras else {}
    success = False
    for _ in range(settings.max_steps):
        look = env.look()
        intent = expert(task, look)
        steps.append({**look.columns(), ACTION: intent.action.astype(np.float32), "phase": np.array(intent.phase)})
        for camera, film in films.items():
            film.append(env.render(camera))
        noise = PERSISTENCE * noise + np.sqrt(1 - PERSISTENCE**2) * size * rng.standard_normal(6)
        if left == 0 and rng.random() < settings.bursts:
            burst, left = BURST_SIZE * SHARES * rng.uniform(-1, 1, 6), BURST_STEPS
        executed = intent.action.copy()
        executed[:6] += noise + (burst if left else 0.0)
        left = max(0, left - 1)
        env.step(executed)
        success = env.success()
        if success:
            break
    stacked = {name: np.stack([step[name] for step in steps]) for name in steps[0]}
    videos = {PICTURES + camera: np.stack(film) for camera, film in films.items()}
    return Attempt(task, number, start, success, stacked, videos)
