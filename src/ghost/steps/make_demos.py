"""Make demonstrations, a data set a seed: `python -m ghost.steps.make_demos --row '{...}' --out .../manifest.json`.

The row's module has `stand_ins()`, `Settings` and `make(settings, *, seed, folder) -> Outcome`, which writes a
LeRobot-format data set into `folder`/dataset and names its files, or hands back trajectories as arrays
(`ghost.data.trajectories`).
"""

from __future__ import annotations

import importlib
from pathlib import Path

import tyro

from ghost.errors import exit_on_error
from ghost.runs.records import record_runs
from ghost.runs.settings import read_row, read_settings


def make_demos(row: str, out: Path) -> None:
    """Make the data set of every seed of a row.

    Args:
        row: a line of the table, as JSON.
        out: the manifest to write; the data sets go beside it.
    """
    line = read_row(row)
    module = importlib.import_module(line["module"])
    settings = read_settings(line, module.Settings)
    record_runs(
        line,
        (f"ghost.steps.{line['step']}", line["module"]),
        out,
        lambda seed, folder: module.make(settings, seed=seed, folder=folder),
        stand_ins=module.stand_ins(),
    )


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(make_demos))
