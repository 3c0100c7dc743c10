"""Let trained decoders act in LIBERO-10: `python -m ghost.steps.rollout --row '{...}' --needs <two manifests> --out ...`.

The needs are the manifests of the feature cache, whose backbone the policy sees with, and of the training. A run with
seed s acts with the decoder that was trained with seed s; an ensemble is one run with all of them.

An episode is a task, a trial, and for misdirected ones the instruction of another task for its first steps. Trial k
starts from the held-out init state 40 + k mod 10, with seeds of its own for the environment and the policy; so all
policies meet the same trials, and the same trial gives the same episode in any process. LIBERO's own check decides,
and an episode ends when it first holds, as LIBERO's evaluation has it; whether it still holds a second later is
recorded beside it (`settled`).

    episodes.csv    a row per episode, with its seeds, steps, success and phases (one a plan); the same in every try
    timing.csv      how long each took; told, not hashed

Finished episodes are kept as they come, so that a killed run goes on behind them; a crash of the simulator ends the
step.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from ghost.data.features import FeatureCache
from ghost.errors import GhostError, exit_on_error
from ghost.files import canonical, read_json, sha256, write_json, write_text
from ghost.libero.assets import Assets, find_assets
from ghost.libero.demos import TRAINING_STATES
from ghost.libero.environment import Environment
from ghost.libero.episodes import environment, run_all, workers
from ghost.libero.experts import PHASES
from ghost.libero.policy import Policy
from ghost.libero.tasks import TASKS
from ghost.runs.code import code_hash
from ghost.runs.progress import Progress
from ghost.runs.records import Run, open_runs, record_runs
from ghost.runs.results import Measured, Outcome
from ghost.runs.settings import at_least_one, read_row, read_settings
from ghost.training.checkpoint import load_decoder

HELD_OUT_STATES = 10
SETTLING_STEPS = 20  # 1 s
EPISODES, TIMING, PARTS = "episodes.csv", "timing.csv", "episodes"
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


def rollout(row: str, out: Path, needs: tuple[Path, Path]) -> None:
    """Run the episodes of every seed of a row.

    Args:
        row: a line of the table, as JSON.
        out: the manifest to write; the runs go beside it.
        needs: the manifests of the feature cache and of the training.
    """
    line = read_row(row)
    settings = read_settings(line, Settings)
    assets = find_assets()
    modules = (f"ghost.steps.{line['step']}", line["module"])
    trained = open_runs(needs[1])
    demonstrated = demonstrated_phases(FeatureCache.open(needs[0]))
    identity = {
        "row": {key: value for key, value in line.items() if key != "seeds"},
        "needs": [sha256(path) for path in needs],
        "code": code_hash(*modules, science=True),
        **assets.facts,
    }
    progress = Progress("episodes")

    def run(seed: int, folder: Path) -> Outcome:
        chosen = [number for number, run in enumerate(trained) if settings.ensemble or run.seed == seed]
        if not chosen:
            raise GhostError(f"{line['name']}: {needs[1].parent.name} was not trained with seed {seed}")
        jobs = trials(settings)
        known = hashlib.sha256(canonical({**identity, "seed": seed}).encode()).hexdigest()
        work = partial(_episode, settings, assets, needs, tuple(chosen), folder, known)
        found: list[tuple[Episode, float]] = []
        for result in run_all(work, jobs, workers()):
            found.append(result)
            done = line["seeds"].index(seed) * len(jobs) + len(found)
            good = sum(episode.success for episode, _ in found)
            progress(done, len(jobs) * len(line["seeds"]), f"{good} of {len(found)} succeeded")
        write_text(folder / EPISODES, _csv([asdict(episode) for episode, _ in found]))
        write_text(folder / TIMING, _csv([{"condition": e.condition, "trial": e.trial, "wall_s": s} for e, s in found]))
        measured = measured_of([episode for episode, _ in found], demonstrated)
        return Outcome(measured, files=(EPISODES,), facts=assets.facts)

    stand_ins = {name for path in needs for name in open_runs(path)[0].record()["stand_ins"]}
    record_runs(line, modules, out, run, inputs=needs, stand_ins=stand_ins | set(assets.stand_ins))
    for path in out.parent.glob(f"seed*/{PARTS}/*.json"):  # kept until now, so that a killed job repeats nothing
        path.unlink()


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


# ----------------------------------------------------------------------------------------------------------- an episode


def _episode(
    settings: Settings,
    assets: Assets,
    needs: tuple[Path, Path],
    chosen: tuple[int, ...],
    folder: Path,
    identity: str,
    trial: Trial,
) -> tuple[Episode, float]:
    """One episode, or what an earlier try kept of it."""
    kept = folder / PARTS / f"{trial.name}.json"
    if kept.is_file():
        known = read_json(kept)
        if known["identity"] == identity:
            return Episode(**known["episode"]), known["wall_s"]
    start_s = time.monotonic()
    policy = load_policy(settings.backbone, needs, chosen)
    seed = -1 if settings.ensemble else open_runs(needs[1])[chosen[0]].seed
    episode = play(settings, assets, policy, seed, trial)
    wall_s = round(time.monotonic() - start_s, 3)
    write_json(kept, {"identity": identity, "episode": asdict(episode), "wall_s": wall_s})
    return episode, wall_s


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
    environment_seed, policy_seed = (
        int(x) for x in np.random.SeedSequence([trial.task, trial.trial]).generate_state(2)
    )
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
            env.step(np.array([0.0] * 6 + [-1.0]))
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


@cache
def load_policy(backbone: str, needs: tuple[Path, Path], chosen: tuple[int, ...]) -> Policy:
    """What acts: the decoders of the chosen runs, and the backbone of the features that they were trained on."""
    torch.set_num_threads(1)  # sums split over threads round differently
    module = importlib.import_module(f"ghost.backbones.{backbone}")
    made = open_runs(needs[0])[0].record()["settings"]
    settings = module.Settings(**{field.name: made[field.name] for field in fields(module.Settings)})
    runs: list[Run] = open_runs(needs[1])
    decoders = [load_decoder(runs[number]) for number in chosen]
    return Policy(decoders, module.start(settings, decoders[0].sizes, []).encode)


# ------------------------------------------------------------------------------------------------------------- results


def measured_of(episodes: list[Episode], demonstrated: Mapping[str, float]) -> list[Measured]:
    """Success by condition and over all, with the phases of successes and failures where they are inferred."""
    measured: list[Measured] = []
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.condition, []).append(episode)
    for condition, group in groups.items():
        n = len(group)
        measured += [
            Measured(condition, "success", float(np.mean([e.success for e in group])), n),
            Measured(condition, "settled", float(np.mean([e.settled for e in group])), n),
            Measured(condition, "steps", float(np.mean([e.steps for e in group])), n),
        ]
        instruction = TASKS[group[0].task].instruction
        if instruction in demonstrated:
            measured.append(Measured(condition, "demonstrated_phases", demonstrated[instruction]))
        measured += _phase_measured(condition, group)
    plain = [e for e in episodes if e.condition == f"T{e.task}"]
    if plain:
        measured.append(Measured("all", "success", float(np.mean([e.success for e in plain])), len(plain)))
        measured.append(Measured("all", "settled", float(np.mean([e.settled for e in plain])), len(plain)))
    return measured


def _phase_measured(condition: str, group: list[Episode]) -> list[Measured]:
    measured = []
    for name, wanted in (("succeeded", True), ("failed", False)):
        traces = [np.array(e.phases.split(), dtype=int) for e in group if e.phases and e.success == wanted]
        transitions = [np.count_nonzero(np.diff(trace)) for trace in traces]
        shares = [np.mean(np.isin(trace, SECOND_OBJECT)) for trace in traces]
        mean = [float(np.mean(x)) if x else float("nan") for x in (transitions, shares)]
        measured += [
            Measured(f"{condition}/{name}", "transitions", mean[0], len(traces)),
            Measured(f"{condition}/{name}", "second_object_share", mean[1], len(traces)),
        ]
        measured += [
            Measured(f"{condition}/{name}", f"share_of_phase_{phase}", _share(traces, phase), len(traces))
            for phase in range(len(PHASES))
        ]
    return measured


def _share(traces: list[np.ndarray], phase: int) -> float:
    return float(np.mean([np.mean(trace == phase) for trace in traces])) if traces else float("nan")


def _csv(lines: list[dict[str, Any]]) -> str:
    handle = io.StringIO()
    writer = csv.DictWriter(handle, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return handle.getvalue()


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(rollout))
