"""Run an analytic experiment, once per seed: `python -m ghost.simulate --row '{...}' --out .../manifest.json`.

The row is a line of the table at some scale, as JSON. Its module has `Settings` and
`run(settings, *, seed, progress) -> Outcome`.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import tyro

from ghost.errors import GhostError, exit_on_error
from ghost.progress import Progress
from ghost.records import record_runs
from ghost.sources import module_path

ROW = ("name", "step", "module", "scale", "settings", "seeds", "reduced")


def simulate(row: str, out: Path) -> None:
    """Run every seed of a row.

    Args:
        row: a line of the table, as JSON.
        out: the manifest to write; the runs go beside it.
    """
    line = _parse(row)
    module = importlib.import_module(line["module"])
    try:
        settings = module.Settings(**{key: _tuples(value) for key, value in line["settings"].items()})
    except (TypeError, ValueError) as error:
        raise GhostError(f"{line['name']}: {error}") from None
    record_runs(
        line,
        (f"ghost.{line['step']}", line["module"]),
        out,
        lambda seed: module.run(settings, seed=seed, progress=Progress()),
    )


def _parse(row: str) -> dict[str, Any]:
    try:
        line = json.loads(row)
    except json.JSONDecodeError as error:
        raise GhostError(f"--row is not JSON: {error}") from None
    missing = [key for key in ROW if key not in line] if isinstance(line, dict) else list(ROW)
    if missing:
        raise GhostError(f"--row lacks {', '.join(missing)}; `snakemake -n -p` shows a whole one")
    if module_path(line["module"]) is None:
        raise GhostError(f"--row: no module {line['module']!r} of ours")
    return dict(line)


def _tuples(value: Any) -> Any:
    """JSON has lists only; settings are frozen."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(simulate))
