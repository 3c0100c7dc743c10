"""From runs to what the trainings did in their trials (`ghost.report.rates.Outcomes`).

A rollout writes episodes.csv, a line per episode. A trial is known by its condition, its number and, where they are
recorded, the seed of the scenes and the digest of the scene at its start. So two policies share a trial when both began
it in the same scene. Other evaluations have an array of successes, or a share and a number of episodes; there each
training has episodes of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ghost.data.results import EPISODES
from ghost.errors import GhostError
from ghost.report.rates import Outcomes
from ghost.runs.records import Run
from ghost.study.declarations import ENV_SEED, SEVERAL, SWITCHED

Trial = tuple[str, ...]
TRIAL = ("condition", "env_seed", "trial", "start")  # columns of episodes.csv that tell trials apart, where it has them
Found = dict[Trial, dict[str, list[float]]]  # of a trial, by training seed: successes


def outcomes(cell: Mapping[str, Any], runs: Sequence[Run]) -> Outcomes | None:
    """The outcomes behind a cell; None if no run has its condition."""
    if not all(has_episodes(run) for run in runs):
        return _from_shares(cell, runs)
    found = _found(cell, runs)
    return _matrix(cell, found, found) if found else None


def shared_outcomes(
    cell: Mapping[str, Any], runs: Sequence[Run], other: Mapping[str, Any], against: Sequence[Run]
) -> tuple[Outcomes, Outcomes, tuple[str, ...]] | None:
    """The outcomes of two policies in the trials that both met, and the names of the other trials; None if none ran."""
    for run in (*runs, *against):
        if not has_episodes(run):
            raise GhostError(f"{cell['id']}: {run.name} has no {EPISODES}, so its trials cannot be compared one by one")
    first, second = _found(cell, runs), _found(other, against)
    if not first or not second:
        return None
    conditions = {cell["condition"], other["condition"]}
    if len(conditions) == 2 and "all" not in conditions:  # then a trial is known by the rest of its name
        first, second = ({trial[1:]: found for trial, found in side.items()} for side in (first, second))
    both = [trial for trial in first if trial in second]
    if not both:
        raise GhostError(f"{cell['id']}: {cell['experiment']} and {cell['against']} have no trial in common")
    alone = tuple("/".join(trial[:3]) for trial in sorted(first.keys() ^ second.keys()))
    return _matrix(cell, first, both), _matrix(other, second, both), alone


def episode_outcomes(arrays: Sequence[np.ndarray]) -> Outcomes:
    """An array of successes from each run, of episodes of its own."""
    if len({len(array) for array in arrays}) != 1:
        raise GhostError(f"expected as many episodes of each run, got {[len(array) for array in arrays]}")
    return Outcomes(np.stack(arrays).astype(float), np.zeros(len(arrays[0])), shared=len(arrays) == 1)


def phase_steps(run: Run, ended: str) -> np.ndarray:
    """From plan to plan, by how much the inferred phase changed in the episodes that `succeeded` or `failed`.

    Misdirected episodes are left out, and so are those without inferred phases.
    """
    wanted = {"succeeded": "True", "failed": "False"}[ended]
    lines = [line for line in _episodes(run) if _is_asked("all", line) and line["success"] == wanted]
    steps = [np.diff(np.array(line["phases"].split(), dtype=int)) for line in lines if line["phases"]]
    return np.concatenate(steps) if steps else np.empty(0, int)


def has_episodes(run: Run) -> bool:
    return f"seed{run.seed}/{EPISODES}" in run.files


def _found(cell: Mapping[str, Any], runs: Iterable[Run]) -> Found:
    found: Found = {}
    for run in runs:
        for line in _episodes(run):
            if _is_asked(cell["condition"], line):
                if line.get(cell["metric"]) not in ("True", "False"):
                    raise GhostError(f"{cell['id']}: {EPISODES} of {run.name} does not say {cell['metric']} of a trial")
                trial = _trial(cell["condition"], line)
                of_trial = found.setdefault(trial, {})
                of_trial.setdefault(line["training_seed"], []).append(float(line[cell["metric"]] == "True"))
    return found


def _trial(condition: str, line: Mapping[str, str]) -> Trial:
    """A scene that is misdirected until one step and until another is one trial where a cell asks for both."""
    names = {column: line[column] for column in TRIAL if column in line}
    if SEVERAL in condition:
        names["condition"] = names["condition"].partition(SWITCHED)[0]
    return tuple(names.values())


def _is_asked(condition: str, line: Mapping[str, str]) -> bool:
    """Whether an episode is of a condition: its own, one of several, or that of all episodes that nothing misdirects,
    of every env_seed or of one."""
    if condition == "all" or condition.startswith(ENV_SEED):
        plain = line["condition"] == f"T{line['task']}"
        return plain and (condition == "all" or condition == f"{ENV_SEED}{line.get('env_seed')}")
    return line["condition"] in condition.split(SEVERAL)


@cache
def _episodes(run: Run) -> list[dict[str, str]]:
    return run.table(EPISODES)


def _matrix(cell: Mapping[str, Any], found: Found, trials: Iterable[Trial]) -> Outcomes:
    """[trainings, trials]. A training that met a trial twice has the mean there."""
    chosen = list(trials)
    trainings = list(dict.fromkeys(seed for trial in chosen for seed in found[trial]))
    for trial in chosen:
        for seed in trainings:
            if seed not in found[trial]:
                raise GhostError(f"{cell['id']}: training {seed} of {cell['experiment']} lacks trial {'/'.join(trial)}")
    success = np.array([[np.mean(found[trial][seed]) for trial in chosen] for seed in trainings])
    return Outcomes(success, np.array([trial[0] for trial in chosen]))


def _from_shares(cell: Mapping[str, Any], runs: Sequence[Run]) -> Outcomes | None:
    """From the share and the number of episodes that each run measured."""
    named = (cell["condition"], cell["metric"])
    found = [m for run in runs for m in run.measured() if (m.condition, m.metric) == named]
    if found and len(found) != len(runs):
        raise GhostError(f"{cell['id']}: {len(found)} of {len(runs)} runs have {'/'.join(named)}")
    return episode_outcomes([np.arange(m.n) < round(m.value * m.n) for m in found]) if found else None
