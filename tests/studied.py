"""A closed-loop study that is made up: the runs are made by the real driver; only what the policies did is not."""

from __future__ import annotations

import dataclasses
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from conftest import ROOT, declaration
from ghost.data.results import EPISODES, Measured, Outcome
from ghost.files import write_text
from ghost.project.studies import ship
from ghost.report.cells import cell_lines
from ghost.report.over_cells import OVER_CELLS, over_cells
from ghost.runs.driver import Plan, execute
from ghost.runs.records import open_runs
from ghost.steps.summarize import correct, summarize_cell
from ghost.study import builds, closed_loop_claims
from ghost.study.closed_loop import STAGES
from ghost.study.closed_loop_claims import EASY, HARD, recorded
from ghost.study.declarations import Artefact, Cell

SEEDS, TRIALS = (42, 123), 4
MISDIRECTED = [(f"T{told}-T{task}_N{at}", task) for told, task in ((0, 1), (5, 7)) for at in (50, 100, 150)]
PLAIN = [(f"T{task}", task) for task in range(10)]


def succeeds(experiment: str, condition: str, trial: int) -> bool:
    """Drawn, the same for all trainings: the gated MLP fails, the persistent Ghost succeeds, the others do either."""
    share = 0.05 if "mlp_phase" in experiment else 0.95 if "_pz_" in experiment else 0.5
    key = zlib.crc32(f"{experiment}/{condition}".encode())
    return bool(np.random.default_rng([key, trial]).random() < share)


def phases(experiment: str, *, success: bool) -> str:
    """As a head infers them: a failure goes back once in three steps. The plain MLP and the vanilla Ghost have none."""
    gated = not experiment.startswith(("libero_mlp_rollout", "libero_mlp_misdirected", "libero_ghost_rollout"))
    return ("0 1 2 3" if success else "0 1 0 1") if gated else ""


def acted(experiment: str, folder: Path, seed: int) -> Outcome:
    """What a rollout leaves."""
    together = "ensemble" in experiment
    lines = [
        {
            "condition": condition,
            "task": task,
            "trial": trial,
            "training_seed": -1 if together else seed,
            "env_seed": seed if together else 0,
            "start": f"T{task}-{trial}",
            "success": succeeds(experiment, condition, trial),
            "phases": phases(experiment, success=succeeds(experiment, condition, trial)),
        }
        for condition, task in (MISDIRECTED if "misdirected" in experiment else PLAIN)
        for trial in range(TRIALS)
    ]
    episodes = pd.DataFrame(lines)
    (folder / EPISODES).write_text(episodes.to_csv(index=False, lineterminator="\n"))
    measured = [Measured("all", "success", float(episodes.success.mean()), len(episodes))]
    for condition, group in episodes.groupby("condition"):
        measured.append(Measured(str(condition), "success", float(group.success.mean()), len(group)))
        measured.append(Measured(str(condition), "subphases", 2 + int(group.task.iloc[0]) % 3))
    for end, value in (("succeeded", 4.0), ("failed", 5.0)):
        names = ("transitions", "second_object_percent")
        measured += [Measured(f"T8/{end}", name, value + seed / 1000, 2) for name in names]
    return Outcome(measured, files=(EPISODES,))


def offline(experiment: str, seed: int) -> Outcome:
    """What an offline test leaves: the gate halves the error, and the heads of Ghosts are better."""
    error = 0.01 if "mlp_offline" in experiment else 0.005
    right = 0.9 if "ghost" in experiment else 0.7
    values = {"mse": error + seed / 1e6, "phase_accuracy": right + seed / 1e5}
    return Outcome([Measured("all", name, value, 20) for name, value in values.items()])


def run(name: str, config: builds.Config) -> None:
    """The runs of an experiment of a level."""
    demos = name == "libero_demos"
    stand_in = {"of": "LIBERO assets", "evidence": "", "real": None, "made": None}
    said = declaration(
        name,
        scale=config.scale,
        seeds=[0] if demos else [0, 1] if "ensemble" in name else list(SEEDS),
        stand_ins=[stand_in],
        reduced={"trials": {"here": TRIALS, "paper": 20}},
    )

    def work(unit: Any) -> Outcome:
        if demos:
            return Outcome([Measured("all", "episodes", 80 if config.scale == HARD else 300)])
        return offline(name, unit.seed) if name.endswith("_offline") else acted(name, unit.folder, unit.seed)

    execute(lambda job: Plan(work), json.dumps(said), config.manifest(name))


def summarized(artefact: Artefact, config: builds.Config) -> list[dict[str, Any]]:
    """Its cells, as the step makes them."""
    runs = {name: open_runs(config.manifest(name)) for name in artefact.experiments}
    cells = artefact.declaration()
    plain = [cell for cell in cells if cell["estimator"] not in OVER_CELLS]
    made = [summarize_cell(cell, runs.get(cell["experiment"], []), runs.get(cell["against"], [])) for cell in plain]
    correct(made, {cell["id"]: cell["digits"] for cell in cells})
    return [*made, *over_cells(cells, made)]


def make_studies() -> None:
    """Both levels, made in the current folder and shipped into its data/studies."""
    needed = {name for artefact in closed_loop_claims.artefacts() for name in artefact.experiments}
    for level in (HARD, EASY):
        config = builds.load({"scale": level}, ROOT)
        for name in sorted(each.name for each in config.experiments if recorded(each.name, level) in needed):
            run(name, config)
        if level == HARD:
            cell = Cell("MLP/success", "libero_mlp_rollout", "success", "all", "success_rate", ".0f", "%")
            first = dataclasses.replace(config.artefact("tab:libero10"), cells=(cell,))
            for stage in STAGES:
                lines = cell_lines(summarized(first, config)) if stage == "tab_libero10" else ""
                write_text(config.data / f"cells/{stage}.jsonl", lines)
        assert "MB" in ship(config)
