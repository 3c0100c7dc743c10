"""Film one recorded episode: `ghost film data/<scale>/runs/libero_mlp_rollout/manifest.json --task 8 --out film.mp4`.

The episode is played again from its seeds, so it ends as its row of `episodes.csv` says; where it does not, because
code or libraries are others now, that is an error. Needs OpenGL: libegl1 or libosmesa6, and MUJOCO_GL=osmesa for that.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ghost.data.lerobot_writer import write_video
from ghost.data.results import EPISODES
from ghost.errors import GhostError
from ghost.libero.assets import find_assets
from ghost.libero.demos import FPS
from ghost.libero.environment import Environment
from ghost.libero.episodes import Settings, play, trials
from ghost.libero.tasks import CAMERAS
from ghost.runs.records import open_runs
from ghost.runs.settings import read_settings
from ghost.steps.rollout import loaded

Thing = TypeVar("Thing")


def film(manifest: Path, task: int, trial: int, seed: int | None, out: Path) -> str:
    """Write the film, both cameras side by side, and say how the episode ended."""
    runs = {run.seed: run for run in open_runs(manifest)}
    run = _chosen(runs, min(runs, default=0) if seed is None else seed, f"{manifest}: seed")
    record = run.record()
    (settings,) = read_settings(record["experiment"], record["settings"], Settings)
    assets = find_assets()
    if assets.facts != record["facts"]:
        raise GhostError(f"{manifest}: its episodes ran on other assets than {assets.folder}")
    jobs = {(job.task, job.trial): job for job in trials(settings, run.seed) if job.told == job.task}
    job = _chosen(jobs, (task, trial), f"{manifest}: (task, trial)")
    features, trained = run.inputs("cache_features"), run.inputs("train", "finetune")
    if len(features) != 1 or not trained:
        raise GhostError(f"{manifest}: the runs that this rollout used are gone, or it is no rollout")
    policy = loaded(settings.backbone, features[0], tuple(trained), settings.rows)
    frames: list[np.ndarray] = []

    def watch(env: Environment) -> None:
        frames.append(np.concatenate([env.render(camera) for camera in CAMERAS], axis=1))

    episode = play(settings, assets, policy, -1 if settings.ensemble else run.seed, job, watch=watch)
    rows = {(line.get("condition"), line.get("trial")): line for line in run.table(EPISODES)}
    row = _chosen(rows, (job.condition, str(trial)), f"{run.folder}/{EPISODES}: (condition, trial)")
    ended = "succeeded" if episode.success else "failed"
    if (row.get("success"), row.get("steps")) != (str(episode.success), str(episode.steps)):
        raise GhostError(f"{job.name} {ended} after {episode.steps} steps, not as {EPISODES} of {run.folder} has it")
    write_video(out, [np.stack(frames)], fps=FPS)
    return f"{out}: task {task}, trial {trial} {ended} after {episode.steps} steps, as recorded"


def _chosen(known: Mapping[Any, Thing], wanted: Any, what: str) -> Thing:
    if wanted not in known:
        raise GhostError(f"{what} {wanted} is not there; there are {', '.join(map(str, list(known)[:8]))}")
    return known[wanted]
