"""All cells in one file, all raw results in one tidy table, and the headlines as metrics for DVC:
`python -m ghost.steps.collect --cells ... --manifests ...`.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import tyro

from ghost.errors import exit_on_error
from ghost.files import write_text
from ghost.report.cells import cell_lines, read_cells
from ghost.report.headlines import metric_texts
from ghost.runs.records import Run, open_runs
from ghost.study.builds import opened


def collect(
    cells: tuple[Path, ...],
    manifests: tuple[Path, ...],
    out_cells: Path,
    out_results: Path,
    out_metrics: Path,
    scale: str = "laptop",
) -> None:
    """Write cells.jsonl, results.csv and the metrics.

    Args:
        cells: the cells of every figure and table.
        manifests: the manifests of every experiment.
        out_cells: all cells, sorted by id.
        out_results: one line per measured value: experiment, seed, condition, metric, value, n, run id.
        out_metrics: the folder for the headlines of each method, for `dvc metrics`.
        scale: the build.
    """
    by_id = read_cells(*cells)
    write_text(out_cells, cell_lines(by_id.values()))
    for name, text in metric_texts(by_id, opened(scale).artefacts).items():
        write_text(out_metrics / name, text)
    write_text(out_results, results_text(run for manifest in manifests for run in open_runs(manifest)))


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
