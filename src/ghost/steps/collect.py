"""All cells in one file, all raw results in one tidy table, and the measured numbers as metrics for DVC:
`python -m ghost.steps.collect --cells ... --manifests ...`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import tyro

from ghost.errors import exit_on_error
from ghost.files import json_text, write_text
from ghost.report.cells import cell_lines, read_cells
from ghost.runs.records import Run, open_runs

NOT_MEASURED = ("setting", "series", "module", "runs")  # estimators whose cells are no metrics


def collect(
    cells: tuple[Path, ...], manifests: tuple[Path, ...], out_cells: Path, out_results: Path, out_metrics: Path
) -> None:
    """Write cells.jsonl, results.csv and metrics.json.

    Args:
        cells: the cells of every figure and table.
        manifests: the manifests of every experiment.
        out_cells: all cells, sorted by id.
        out_results: one line per measured value: experiment, seed, condition, metric, value, n, run id.
        out_metrics: figure or table -> cell -> its unrounded value, for `dvc metrics`.
    """
    by_id = read_cells(*cells)
    write_text(out_cells, cell_lines(by_id.values()))
    write_text(out_metrics, metrics_text(by_id.values()))
    write_text(out_results, results_text(run for manifest in manifests for run in open_runs(manifest)))


def metrics_text(cells: Iterable[Mapping[str, Any]]) -> str:
    """The measured numbers: figure or table -> cell -> its unrounded value."""
    metrics: dict[str, dict[str, float]] = {}
    for cell in cells:
        if cell["estimator"] not in NOT_MEASURED and cell["value"] is not None:
            artefact, name = cell["id"].split("/", 1)
            metrics.setdefault(artefact.replace(":", "_"), {})[name] = cell["value"]
    return json_text(metrics)


def results_text(runs: Iterable[Run]) -> str:
    """The measured values of all runs, as CSV."""
    columns = ["experiment", "seed", "condition", "metric", "value", "n", "run_id"]
    rows = [
        (run.folder.name, run.seed, m.condition, m.metric, m.value, m.n, run.run_id)
        for run in runs
        for m in run.measured()
    ]
    return str(pd.DataFrame(rows, columns=columns).to_csv(index=False))


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(collect))
