"""Episodes of a policy in LIBERO-10: which there are, how one is played, what is measured over many.

An episode is a task and a trial; a misdirected one begins with the instruction of another task. All policies meet the
same trials, and the same trial gives the same episode in any process. No two trials of a condition start alike, and
none starts like a demonstration that the policy was trained on: `start`, a digest of the scene, is compared.

`env_seed` chooses the scenes. With 0, trial k of a task starts from LIBERO's official init state k, of which there are
50; the furniture, which these do not hold, is placed with a seed of task and trial. With any other env_seed, LIBERO's
own reset draws the whole scene of a trial with a seed of env_seed, task and trial, so there are as many as one wants.

A misdirected policy hears the wrong instruction for the first `switch_at` steps. Then it plans anew: what is left of
its chunk is dropped, so step `switch_at` is the first one that answers to the right instruction.

LIBERO's own check decides about success. An episode ends when the check first holds, as in LIBERO's evaluation;
`settled` says whether it holds a second later, too.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ghost.data.results import Measured
from ghost.errors import GhostError
from ghost.libero.assets import Assets
from ghost.libero.environment import REST, Environment
from ghost.libero.experts import PHASES
from ghost.libero.policy import Acting
from ghost.libero.stepping import STEPPINGS, environment
from ghost.libero.subphases import nominal_subphases
from ghost.libero.tasks import TASKS, trial_seeds
from ghost.runs.settings import at_least_one, not_negative

INIT_STATES = 50  # official ones, of each task
SETTLING_STEPS = 20  # 1 s
SECOND_OBJECT = range(4, 8)  # sub-phases


@dataclass(frozen=True)
class Settings:
    backbone: str  # module below ghost.backbones, that made the features
    tasks: tuple[int, ...]
    trials: int  # a task
    max_steps: int
    execute: int  # steps of a chunk before the next plan
    env_seed: int | None = None  # which scenes; an ensemble has none, the seed of each run takes its place
    ensemble: bool = False  # all trained seeds at once, their chunks averaged
    misdirect: tuple[tuple[int, int], ...] = ()  # (task, whose instruction is given first)
    switch_at: tuple[int, ...] = ()  # steps after which the right instruction is given
    stepping: str = "fast"  # or libero: ghost.libero.stepping
    rows: int = 1  # of each pass of the policy's networks: ghost.libero.policy

    def __post_init__(self) -> None:
        at_least_one(self, "trials", "max_steps", "execute", "rows")
        if self.stepping not in STEPPINGS:
            raise ValueError(f"stepping must be one of {', '.join(STEPPINGS)}, got {self.stepping!r}")
        named = {*self.tasks, *(task for pair in self.misdirect for task in pair)}
        if not named or not named <= set(range(len(TASKS))):
            raise ValueError(f"tasks must be some of 0 to {len(TASKS) - 1}, got {sorted(named)}")
        if bool(self.misdirect) != bool(self.switch_at):
            raise ValueError("misdirect and switch_at belong together")
        if (self.env_seed is None) != self.ensemble:
            raise ValueError("a policy needs an env_seed, an ensemble has none: each seed of its runs is one")
        if self.env_seed is not None:
            not_negative(self, "env_seed")


@dataclass(frozen=True)
class Trial:
    task: int
    trial: int
    told: int  # the task whose instruction is given first
    switch_at: int
    env_seed: int

    @property
    def name(self) -> str:
        return self.condition + f"_{self.trial:03d}"

    @property
    def init_state(self) -> int | None:
        """The official one; None where the scene is drawn."""
        return None if self.env_seed else self.trial

    @property
    def seeds(self) -> tuple[int, int]:
        """Of the reset and of the policy."""
        return trial_seeds(self.env_seed, self.task, self.trial)

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
    env_seed: int
    init_state: int  # -1: the scene was drawn
    start: str  # digest of the scene
    reset_seed: int
    policy_seed: int
    success: bool
    settled: bool
    steps: int
    phases: str  # the inferred one at every plan, "0 0 1 ..."; empty where none is inferred


def trials(settings: Settings, seed: int) -> list[Trial]:
    """Of the run with this seed."""
    env_seed = seed if settings.env_seed is None else settings.env_seed
    if env_seed == 0 and settings.trials > INIT_STATES:
        raise GhostError(
            f"{settings.trials} trials a task: env_seed 0 has {INIT_STATES}, one from each official init state; another"
            " env_seed, such as 1, has as many as you want"
        )
    pairs = [(task, task, 0) for task in settings.tasks]
    pairs += [(told, task, at) for told, task in settings.misdirect for at in settings.switch_at]
    return [Trial(task, trial, told, at, env_seed) for told, task, at in pairs for trial in range(settings.trials)]


def play(
    settings: Settings,
    assets: Assets,
    policy: Acting,
    training_seed: int,
    trial: Trial,
    demonstrated: Collection[str] = (),
    watch: Callable[[Environment], None] = lambda env: None,
) -> Episode:
    """Act until LIBERO's check holds or the steps are used up.

    `demonstrated` are the starts of the demonstrations that the policy was trained on. `watch` is shown the scene
    before every step.
    """
    reset_seed, policy_seed = trial.seeds
    env = environment(trial.task, assets, settings.stepping)
    env.reset(trial.init_state, reset_seed)
    start = env.start
    if start in demonstrated:
        raise GhostError(f"trial {trial.name} of env_seed {trial.env_seed} starts like a demonstration (start {start})")
    policy.start(policy_seed)
    phases: list[int] = []
    chunk: list[np.ndarray] = []
    success, steps = False, 0
    while not success and steps < settings.max_steps:
        if steps == trial.switch_at:
            chunk = []
        if not chunk:
            told = trial.told if steps < trial.switch_at else trial.task
            planned = policy.plan(policy.senses.sense(env), TASKS[told].instruction)
            chunk = list(planned.actions[: settings.execute])
            phases.append(planned.phase)
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
    return Episode(
        condition=trial.condition,
        task=trial.task,
        trial=trial.trial,
        training_seed=training_seed,
        env_seed=trial.env_seed,
        init_state=-1 if trial.init_state is None else trial.init_state,
        start=start,
        reset_seed=reset_seed,
        policy_seed=policy_seed,
        success=success,
        settled=settled,
        steps=steps,
        phases="" if -1 in phases else " ".join(map(str, phases)),
    )


def refuse_equal_trials(episodes: list[Episode]) -> None:
    """Two trials of a condition that start alike are one, counted twice."""
    starts = Counter((episode.condition, episode.start) for episode in episodes)
    for (condition, start), count in starts.items():
        if count > 1:
            alike = [e.trial for e in episodes if (e.condition, e.start) == (condition, start)]
            raise GhostError(f"{condition}: trials {', '.join(map(str, alike))} start alike (start {start})")


def measured_of(episodes: list[Episode]) -> list[Measured]:
    """Success by condition and over all, with the phases of successes and failures where they are inferred."""
    measured: list[Measured] = []
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.condition, []).append(episode)
    for condition, group in groups.items():
        measured += _means(condition, group, "success", "settled", "steps")
        measured.append(Measured(condition, "subphases", len(nominal_subphases(group[0].task))))
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
        "second_object_percent": [100 * np.mean(np.isin(trace, SECOND_OBJECT)) for trace in traces],
        **{f"share_of_phase_{phase}": [np.mean(trace == phase) for trace in traces] for phase in range(len(PHASES))},
    }
    return [
        Measured(condition, metric, float(np.mean(found)) if found else float("nan"), len(traces))
        for metric, found in values.items()
    ]
