"""Episodes of a policy in LIBERO-10: which there are, how one is played, what is measured over many.

An episode is a task and a trial; a misdirected one begins with the instruction of another task. Trial k starts from the
held-out init state 40 + k mod 10, with seeds of its own for the environment and the policy. So all policies meet the
same trials, and the same trial gives the same episode in any process. LIBERO's own check decides about success. An
episode ends when the check first holds, as in LIBERO's evaluation; `settled` says whether it holds a second later, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ghost.data.features import FeatureCache
from ghost.data.results import Measured
from ghost.libero.assets import Assets
from ghost.libero.demos import TRAINING_STATES
from ghost.libero.environment import REST, Environment, environment
from ghost.libero.experts import PHASES
from ghost.libero.policy import Policy
from ghost.libero.tasks import TASKS
from ghost.runs.settings import at_least_one

HELD_OUT_STATES = 10
SETTLING_STEPS = 20  # 1 s
SECOND_OBJECT = range(4, 8)  # sub-phases


@dataclass(frozen=True)
class Settings:
    backbone: str  # module below ghost.backbones, that made the features
    tasks: tuple[int, ...]
    trials: int  # a task
    max_steps: int
    execute: int  # steps of a chunk before the next plan
    ensemble: bool = False  # all trained seeds at once, their chunks averaged
    misdirect: tuple[tuple[int, int], ...] = ()  # (task, whose instruction is given first)
    switch_at: tuple[int, ...] = ()  # steps after which the right instruction is given

    def __post_init__(self) -> None:
        at_least_one(self, "trials", "max_steps", "execute")
        named = {*self.tasks, *(task for pair in self.misdirect for task in pair)}
        if not named or not named <= set(range(len(TASKS))):
            raise ValueError(f"tasks must be some of 0 to {len(TASKS) - 1}, got {sorted(named)}")
        if bool(self.misdirect) != bool(self.switch_at):
            raise ValueError("misdirect and switch_at belong together")


@dataclass(frozen=True)
class Trial:
    task: int
    trial: int
    told: int  # the task whose instruction is given first
    switch_at: int

    @property
    def name(self) -> str:
        return self.condition + f"_{self.trial:03d}"

    @property
    def condition(self) -> str:
        return f"T{self.task}" if self.told == self.task else f"T{self.told}-T{self.task}_N{self.switch_at}"


@dataclass(frozen=True)
class Episode:
    """One row of episodes.csv."""

    condition: str
    task: int
    trial: int
    training_seed: int  # -1: an ensemble
    init_state: int
    environment_seed: int
    policy_seed: int
    success: bool
    settled: bool
    steps: int
    phases: str  # the inferred one at every plan, "0 0 1 ..."; empty where none is inferred


def trials(settings: Settings) -> list[Trial]:
    plain = [Trial(task, trial, task, 0) for task in settings.tasks for trial in range(settings.trials)]
    wrong = [
        Trial(task, trial, told, at)
        for told, task in settings.misdirect
        for at in settings.switch_at
        for trial in range(settings.trials)
    ]
    return plain + wrong


def demonstrated_phases(cache: FeatureCache) -> dict[str, float]:
    """How many sub-phases a demonstration goes through on average, by instruction: how complex a task is."""
    found = {}
    for number, name in enumerate(cache.task_names):
        counts = [
            1 + np.count_nonzero(np.diff(cache.phase[cache.episode == episode]))
            for episode in np.unique(cache.episode[cache.task == number])
        ]
        found[name] = float(np.mean(counts))
    return found


def play(
    settings: Settings,
    assets: Assets,
    policy: Policy,
    training_seed: int,
    trial: Trial,
    watch: Callable[[Environment], None] = lambda env: None,
) -> Episode:
    """Act until LIBERO's check holds or the steps are used up. `watch` is shown the scene before every step."""
    init_state = TRAINING_STATES + trial.trial % HELD_OUT_STATES
    environment_seed, policy_seed = np.random.SeedSequence([trial.task, trial.trial]).generate_state(2).tolist()
    env = environment(trial.task, assets)
    env.reset(init_state, environment_seed)
    policy.start(policy_seed)
    phases: list[int] = []
    chunk: list[np.ndarray] = []
    success, steps = False, 0
    while not success and steps < settings.max_steps:
        if not chunk:
            told = trial.told if steps < trial.switch_at else trial.task
            actions, phase = policy.plan(env.look(), TASKS[told].instruction, env.render)
            chunk = list(actions[: settings.execute])
            phases.append(phase)
        watch(env)
        env.step(chunk.pop(0))
        steps += 1
        success = env.success()
    settled = success
    if success:
        for _ in range(SETTLING_STEPS):
            watch(env)
            env.step(REST)
        settled = env.success()
    told_phases = "" if -1 in phases else " ".join(map(str, phases))
    return Episode(
        trial.condition,
        trial.task,
        trial.trial,
        training_seed,
        init_state,
        environment_seed,
        policy_seed,
        success,
        settled,
        steps,
        told_phases,
    )


def measured_of(episodes: list[Episode], demonstrated: Mapping[str, float]) -> list[Measured]:
    """Success by condition and over all, with the phases of successes and failures where they are inferred."""
    measured: list[Measured] = []
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.condition, []).append(episode)
    for condition, group in groups.items():
        measured += _means(condition, group, "success", "settled", "steps")
        instruction = TASKS[group[0].task].instruction
        if instruction in demonstrated:
            measured.append(Measured(condition, "demonstrated_phases", demonstrated[instruction]))
        for name, wanted in (("succeeded", True), ("failed", False)):
            traces = [np.array(e.phases.split(), dtype=int) for e in group if e.phases and e.success == wanted]
            measured += _phase_measured(f"{condition}/{name}", traces)
    plain = [e for e in episodes if e.condition == f"T{e.task}"]
    return measured + (_means("all", plain, "success", "settled") if plain else [])


def _means(condition: str, group: list[Episode], *metrics: str) -> list[Measured]:
    return [
        Measured(condition, metric, float(np.mean([getattr(e, metric) for e in group])), len(group))
        for metric in metrics
    ]


def _phase_measured(condition: str, traces: list[np.ndarray]) -> list[Measured]:
    values: dict[str, list[Any]] = {
        "transitions": [np.count_nonzero(np.diff(trace)) for trace in traces],
        "second_object_share": [np.mean(np.isin(trace, SECOND_OBJECT)) for trace in traces],
        **{f"share_of_phase_{phase}": [np.mean(trace == phase) for trace in traces] for phase in range(len(PHASES))},
    }
    return [
        Measured(condition, metric, float(np.mean(found)) if found else float("nan"), len(traces))
        for metric, found in values.items()
    ]
