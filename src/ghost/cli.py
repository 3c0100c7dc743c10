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


def dvc() -> None:
    """Write dvc.yaml from the table: a stage per figure and table, and one for the paper."""
    from ghost.stages import write_stages

    write_stages(Path("dvc.yaml"))


def lock() -> None:
    """Pin what is installed here: write requirements.lock, and environment.yml from it."""
    from ghost.lock import write_lock

    write_lock(Path("requirements.lock"), Path("environment.yml"))


def main() -> None:
    commands: dict[str, Callable[..., Any]] = {"audit": audit, "lint": lint, "dvc": dvc, "lock": lock}
    exit_on_error(lambda: tyro.extras.subcommand_cli_from_dict(commands, prog="ghost"))


if __name__ == "__main__":
    main()
