"""Run an analytic experiment, once per seed: `python -m ghost.steps.simulate --row '{...}' --out .../manifest.json`.

The row is a line of the table at some scale, as JSON. Its module has `Settings` and
`run(settings, *, seed, progress) -> Outcome`.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import tyro

from ghost.errors import exit_on_error
from ghost.runs.progress import Progress
from ghost.runs.records import record_runs
from ghost.runs.settings import read_row, read_settings


def simulate(row: str, out: Path) -> None:
    """Run every seed of a row.

    Args:
        row: a line of the table, as JSON.
        out: the manifest to write; the runs go beside it.
    """
    line = read_row(row)
    module = importlib.import_module(line["module"])
    settings = read_settings(line, module.Settings)
    record_runs(
        line,
        (f"ghost.steps.{line['step']}", line["module"]),
        out,
        lambda seed, folder: module.run(settings, seed=seed, progress=Progress()),
    )


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(simulate))
