"""The closed-loop study: LIBERO-10 with power, run once at two levels of difficulty, its results in the repository.

`make study` runs it and `ghost ship` copies its episodes, cells and records to data/studies/<build>/. Where these are
there, each rollout of theirs is an experiment here, `closed_loop_libero_mlp_rollout`, whose step reads them. So its
table, figures and sentences are made, audited and verified like all others. Without these files nothing is declared.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ghost.files import read_json
from ghost.forms import COUNT, NAME, SHA256
from ghost.runs.code import ROOT
from ghost.runs.marks import StandIn
from ghost.study.closed_loop_claims import AT_EASY, EASY, HARD, artefacts, recorded
from ghost.study.declarations import Artefact, Experiment

STUDIES = "data/studies"
INDEX = "study.json"
FORM = {
    "build": str,
    "experiments": {NAME: {"seeds": [COUNT], "stand_ins": [str], "reduced": [str]}},
    "files": {NAME: SHA256},
}
STAGES = ("tab_libero10", "tab_attractor_tradeoff", "fig_libero_per_task", "fig_libero_complexity")  # of a level
Index = Mapping[str, Any]


def targets(data: Path, scale: str, experiments: tuple[str, ...]) -> list[Path]:
    """What `snakemake study` makes: the cells of LIBERO-10; at the easy level, and of candidates, the rollouts."""
    tried = [name for name in experiments if name.endswith("_rollout") and "_rate" in name]
    some = tried or ([f"{policy}_rollout" for policy in AT_EASY] if scale == EASY else [])
    if some:
        return [data / "runs" / name / "manifest.json" for name in some]
    return [data / "cells" / f"{stage}.jsonl" for stage in STAGES]


def index(folder: Path, build: str) -> Index | None:
    """What was shipped of a build; None if nothing was."""
    path = folder / build / INDEX
    return read_json(path, FORM) if path.is_file() else None


def declared(folder: Path) -> tuple[tuple[Experiment, ...], tuple[Artefact, ...]]:
    """The experiments that read what is shipped below a folder, their table and figures; none without both levels."""
    found = {build: index(folder, build) for build in (HARD, EASY)}
    if None in found.values():
        return (), ()
    made = artefacts()
    shipped = {
        recorded(name, build): _reading(build, name, entry, of["files"])
        for build, of in found.items()
        if of is not None
        for name, entry in of["experiments"].items()
    }
    used = dict.fromkeys(name for artefact in made for name in artefact.experiments)
    return tuple(shipped[name] for name in used if name in shipped), made


def _reading(build: str, name: str, entry: Index, files: Mapping[str, str]) -> Experiment:
    below = f"runs/{name}/"
    mine = sorted(file for file in files if file.startswith(below))
    settings = {"build": build, "experiment": name, "reduced": entry["reduced"]}
    reads = tuple(f"{STUDIES}/{build}/{file}" for file in mine)
    marks = tuple(map(StandIn, entry["stand_ins"]))
    seeds = tuple(entry["seeds"])
    return Experiment(
        recorded(name, build), "read_study", "ghost.data.shipped", settings, seeds, reads=reads, stand_ins=marks
    )


def at_full_size(experiment: Experiment) -> Experiment:
    """As the paper would have it: with nothing reduced."""
    return Experiment(**{**vars(experiment), "settings": {**experiment.settings, "reduced": []}})


EXPERIMENTS, ARTEFACTS = declared(ROOT.parents[1] / STUDIES)
