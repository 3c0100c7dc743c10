"""`ghost`: the command line for people. Steps of the pipeline are `python -m ghost.<step>`, called by Snakemake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro

from ghost.errors import exit_on_error


def audit(cell: tyro.conf.Positional[str], scale: str = "laptop") -> None:
    """Which runs produced a number of the report.

    Args:
        cell: a cell such as fig:switch_speed/ghost_n5/steps_to_converge, or a prefix such as fig:switch_speed.
        scale: smoke, laptop or paper.
    """
    from ghost.audit.lookup import lookup
    from ghost.config import load

    print(lookup(load({"scale": scale}), cell))


def lint(scale: str = "laptop") -> int:
    """Find typed numbers and unknown cells in the report's text.

    Args:
        scale: whose cells to compare with.
    """
    from ghost.cells import read_cells
    from ghost.lint import lint as lint_folder

    complaints = lint_folder(Path("paper"), read_cells(Path("data") / scale / "cells.jsonl"))
    print("\n".join(complaints) or "every number in the text is a cell")
    return 1 if complaints else 0


def plan(what: tyro.conf.Positional[str], scale: str = "laptop") -> None:
    """What a build would cost: jobs, CPU and GPU hours, what is cached, the critical path.

    Args:
        what: a figure or table such as fig:diagnostic, or paper.
        scale: smoke, laptop or paper.
    """
    from ghost.config import load
    from ghost.plan import plan as plan_artefact

    print(plan_artefact(what, load({"scale": scale})))


def dvc() -> None:
    """Write dvc.yaml from the table: a stage per experiment, figure and table, and one for the paper."""
    from ghost.stages import write_stages

    write_stages(Path("dvc.yaml"))


def snapshot(stage: tyro.conf.Positional[str] = "") -> None:
    """Keep what Snakemake knows about a stage's files, beside them (every DVC stage ends with this).

    Args:
        stage: a stage of dvc.yaml, such as fig_switch_speed; all of them when left out, after `snakemake all`.
    """
    from ghost.snapshots import take
    from ghost.stages import find_stage, stages

    for chosen in [find_stage(stage)] if stage else stages().values():
        print(take(chosen))


def restore() -> None:
    """After `git clone` and `dvc pull`: verify every file, and let Snakemake know them, so that nothing is rerun."""
    from ghost.snapshots import restore as restore_folder

    print(restore_folder(Path("data/laptop/snapshots")))


def lock() -> None:
    """Pin what is installed here: write requirements.lock, and from it and groot.lock what conda reads."""
    from ghost.lock import write_lock

    envs = Path("workflow/envs")
    write_lock(Path("requirements.lock"), Path("environment.yml"), envs / "groot.lock", envs / "groot.yml")


def main() -> None:
    commands: dict[str, Callable[..., Any]] = {
        "audit": audit,
        "lint": lint,
        "plan": plan,
        "dvc": dvc,
        "snapshot": snapshot,
        "restore": restore,
        "lock": lock,
    }
    exit_on_error(lambda: tyro.extras.subcommand_cli_from_dict(commands, prog="ghost"))


if __name__ == "__main__":
    main()
