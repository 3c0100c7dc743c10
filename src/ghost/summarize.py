"""The cells of one figure or table: `python -m ghost.summarize --artefact fig:x --manifests ... --out ...jsonl`.

A cell is a line of JSON: id, what is shown, the unrounded value, unit, estimator, interval, n, the runs behind it, what
the paper prints, and whether it rests on a reduced scale or a stand-in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tyro

from ghost.errors import GhostError, exit_on_error
from ghost.estimators import ESTIMATORS
from ghost.experiments import find_artefact
from ghost.files import canonical, write_text
from ghost.records import Run, open_runs


def summarize(artefact: str, out: Path, manifests: tuple[Path, ...] = ()) -> None:
    """Compute the cells of one artefact.

    Args:
        artefact: its id in the table, such as fig:switch_speed.
        out: the file of cells to write, a JSON line each.
        manifests: the manifests of the experiments that it rests on.
    """
    cells = find_artefact(artefact).declaration()
    runs = {manifest.parent.name: open_runs(manifest) for manifest in manifests}
    lines = [canonical(summarize_cell(cell, runs.get(cell["experiment"], []))) for cell in cells]
    write_text(out, "".join(f"{line}\n" for line in lines))


def summarize_cell(cell: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    if cell["experiment"] and not runs:
        raise GhostError(f"{cell['id']}: no runs of {cell['experiment']}")
    estimate = ESTIMATORS[cell["estimator"]](cell, runs)
    records = [run.record() for run in runs]
    return {
        **{key: cell[key] for key in ("id", "experiment", "condition", "metric", "estimator", "unit", "published")},
        "shown": estimate.shown,
        "value": estimate.value,
        "interval": estimate.interval,
        "n": estimate.n,
        "sha256": estimate.sha256,
        "runs": [run.run_id for run in runs],
        "reduced": any(record["reduced"] for record in records),
        "stand_ins": sorted({name for record in records for name in record["stand_ins"]}),
    }


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(summarize))
