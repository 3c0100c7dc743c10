"""The closed-loop study: LIBERO-10 with power, run once at two levels of difficulty, its results in the repository.

`make study` runs it and `ghost ship` copies its episodes, cells and records to data/studies/<build>/. Where these are
there, each rollout of theirs is an experiment here, `closed_loop_libero_mlp_rollout`, whose step reads them. So its
table, figures and sentences are made, audited and verified like all others. Without these files nothing is declared.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ghost.files import read_json
from ghost.forms import COUNT, NAME, SHA256
from ghost.runs.code import ROOT
from ghost.runs.marks import StandIn
from ghost.study.cells import over, rate_comparison
from ghost.study.declarations import SEVERAL, Artefact, Cell, Experiment, figure
from ghost.study.libero import (
    DEMOS_NAME,
    GROUPS,
    MISDIRECTED,
    PAIRS,
    SINGLE,
    SWITCH_AT,
    TASKS,
    TOGETHER,
    VARIANTS,
)
from ghost.study.tables import Column, Row, Text, math, tabulated

STUDIES = "data/studies"
HARD, EASY = "closed_loop", "closed_loop_easy"  # builds
INDEX = "study.json"
FORM = {
    "build": str,
    "experiments": {NAME: {"seeds": [COUNT], "stand_ins": [str], "reduced": [str]}},
    "files": {NAME: SHA256},
}
AT_EASY = ("libero_mlp", "libero_ghost_pg", "libero_ghost_pz")  # policies that act at the easy level too
STAGES = ("tab_libero10", "tab_attractor_tradeoff", "fig_libero_per_task", "fig_libero_complexity")  # of a level
Index = Mapping[str, Any]


def targets(data: Path, scale: str, experiments: tuple[str, ...]) -> list[Path]:
    """What `snakemake study` makes: the cells of LIBERO-10; at the easy level, and of candidates, the rollouts."""
    tried = [name for name in experiments if name.endswith("_rollout") and "_rate" in name]
    some = tried or ([f"{policy}_rollout" for policy in AT_EASY] if scale == EASY else [])
    if some:
        return [data / "runs" / name / "manifest.json" for name in some]
    return [data / "cells" / f"{stage}.jsonl" for stage in STAGES]


def recorded(name: str, build: str = HARD) -> str:
    """The experiment that reads what an experiment of the study did."""
    return f"{build}_{name}"


def _acting(policy: str, build: str = HARD) -> str:
    return recorded(f"{policy}_rollout", build)


def _success(policy: str, condition: str = "all", name: str = "", build: str = HARD) -> Cell:
    return Cell(name, _acting(policy, build), "success", condition, "success_rate", ".0f", "%")


def _difference(name: str, policy: str, against: str, condition: str = "all") -> Cell:
    return Cell(name, _acting(policy), "success", condition, "rate_difference", "+z.0f", "pp", against=_acting(against))


# Each claim of the article about the closed loop: the policy, and that which it is compared with.
CLAIMS: Mapping[str, tuple[str, str]] = {
    "phase_and_mlp": ("libero_mlp_phase", "libero_mlp"),
    "phase_and_ghost": ("libero_ghost_pg", "libero_ghost"),
    "persistent": ("libero_ghost_pz", "libero_ghost_pg"),
    "persistent_ensemble": ("libero_ghost_pz_ensemble", "libero_ghost_pg_ensemble"),
    "gru_and_mlp": ("libero_gru_phase", "libero_mlp"),
    "ghost_and_gru": ("libero_ghost_pg", "libero_gru_phase"),
    "ghost_and_mlp": ("libero_ghost_pg", "libero_mlp"),
    **{name.removeprefix("libero_"): (name, "libero_ghost_pg") for name in VARIANTS},
}
NAMES: Mapping[str, Text] = {
    "push": "contrastive push",
    "pull": "trajectory pull",
    "subspace": "subspace basin",
    "quartic": "quartic potential",
}
REFERENCE = {**dict.fromkeys(VARIANTS, ("Ghost PG", "libero_ghost_pg")), "libero_mlp": ("", "")}


def _reference(policy: str) -> tuple[str, str]:
    """As the table names it, and as the study does: the MLP, or Ghost PG for the variants of its attractor."""
    return REFERENCE.get(policy, ("MLP", "libero_mlp"))


def _compared(short: str) -> Callable[[str], Cell | None]:
    def cell(policy: str) -> Cell | None:
        _, against = _reference(policy)
        return rate_comparison(_acting(policy), _acting(against))[short] if against else None

    return cell


def _row(row: Row) -> Row:
    return Row(row.name, (row.shown[0],), row.of)


def _table() -> Artefact:
    return tabulated(
        "closed_loop_study",
        (
            "Policy",
            Column("success", "Success (%)", _success),
            Column("T8", "Two pots (%)", lambda p: _success(p, "T8")),
            Column("runs", "Runs", lambda p: Cell("", _acting(p), "", estimator="runs")),
            Column("trials", "Trials", lambda p: Cell("", _acting(p), "success", "all", "trials")),
            Column("against", "compared with", lambda p: _reference(p)[0] or None),
            Column("gain", "Difference (points)", _compared("gain")),
            Column("p", math("p"), _compared("p")),
            Column("holm_p", "Holm", _compared("holm_p")),
            Column("detectable", "Detectable", _compared("detectable")),
            Column("easy", "Easy level (%)", lambda p: _success(p, build=EASY) if p in AT_EASY else None),
        ),
        map(_row, SINGLE),
        map(_row, TOGETHER),
        (Row(name.removeprefix("libero_"), (NAMES[name.removeprefix("libero_")],), name) for name in VARIANTS),
        more=(
            *(cell for name, claim in CLAIMS.items() for cell in _claim(name, *claim)),
            *(_misdirected(policy, pair, at) for policy in MISDIRECTED for pair in PAIRS for at in SWITCH_AT),
            *(cell for end in ("succeeded", "failed") for cell in _of_t8(end)),
            *_complexity(),
            *(
                Cell(f"{level}/demos/episodes", recorded(DEMOS_NAME, build), "episodes", "all", "value", ".0f")
                for level, build in (("hard", HARD), ("easy", EASY))
            ),
        ),
    )


def _claim(name: str, policy: str, against: str) -> tuple[Cell, ...]:
    """A difference in shared trials, and the smallest one that the test would have found."""
    made = rate_comparison(_acting(policy), _acting(against), "difference")
    shorts = ("difference", "p", "detectable")
    return tuple(
        Cell(f"claim/{name}/{short}", c.experiment, c.metric, c.condition, c.estimator, c.digits, c.unit, c.against)
        for short in shorts
        for c in (made[short],)
    )


def _misdirected(policy: str, pair: list[int], at: int) -> Cell:
    condition = f"T{pair[0]}-T{pair[1]}_N{at}"
    name = f"misdirected/{policy.removeprefix('libero_')}/{condition}"
    return Cell(name, recorded(f"{policy}_misdirected"), "success", condition, "success_rate", ".0f", "%")


def _of_t8(end: str) -> tuple[Cell, Cell]:
    """How inferred phases run through episodes with two pots."""
    pg, condition = _acting("libero_ghost_pg"), f"T8/{end}"
    return (
        Cell(f"{condition}/transitions", pg, "transitions", condition, "mean_where_run", ".1f"),
        Cell(f"{condition}/second_object_share", pg, "second_object_percent", condition, "mean_where_run", ".1f", "%"),
    )


def _complexity() -> tuple[Cell, ...]:
    """Whether Ghost PG's advantage over the MLP grows with the sub-phases of a task."""
    pg, mlp = _acting("libero_ghost_pg"), _acting("libero_mlp")
    fitted = (("r", "z.2f", ""), ("slope", "+z.1f", "pp"))
    return (
        *(
            Cell(f"complexity/{name}", pg, "success", "", f"complexity_{name}", digits, unit, mlp)
            for name, digits, unit in fitted
        ),
        *(
            _difference(
                f"complexity/{group}", "libero_ghost_pg", "libero_mlp", SEVERAL.join(f"T{task}" for task in tasks)
            )
            for group, tasks in GROUPS.items()
        ),
    )


SHOWN = ("libero_mlp", "libero_gru_phase", "libero_ghost_pg", "libero_ghost_pz")  # per task


def _per_task() -> Artefact:
    return figure(
        "closed_loop_per_task",
        *(
            _success(policy, f"T{task}", f"{policy.removeprefix('libero_')}/T{task}")
            for policy in SHOWN
            for task in TASKS
        ),
        *(
            over("least_of", (f"{name}/T{task}" for task in TASKS), ".0f", "%", f"{name}/lowest")
            for name in (policy.removeprefix("libero_") for policy in SHOWN)
        ),
    )


def differences() -> Artefact:
    """The differences behind the claims of the article; the figure draws them."""
    return figure(
        "closed_loop_differences",
        *(_difference(name, *claim) for name, claim in CLAIMS.items()),
    )


def index(folder: Path, build: str) -> Index | None:
    """What was shipped of a build; None if nothing was."""
    path = folder / build / INDEX
    return read_json(path, FORM) if path.is_file() else None


def artefacts() -> tuple[Artefact, ...]:
    return _table(), _per_task(), differences()


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
