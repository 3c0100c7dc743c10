"""All cells in one file, all raw results in one tidy table, and the measured numbers as metrics for DVC:
`python -m ghost.steps.collect --cells ... --manifests ...`.
"""

from pathlib import Path

import pandas as pd
import tyro

from ghost.errors import exit_on_error
from ghost.files import atomic, write_json, write_text
from ghost.report.cells import cell_lines
from ghost.runs.records import open_runs

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
    lines = [line for path in cells for line in cell_lines(path)]
    write_text(out_cells, "".join(f"{line}\n" for line, _ in sorted(lines, key=lambda found: found[1]["id"])))
    metrics: dict[str, dict[str, float]] = {}
    for _, cell in lines:
        if cell["estimator"] not in NOT_MEASURED and cell["value"] is not None:
            artefact, name = cell["id"].split("/", 1)
            metrics.setdefault(artefact.replace(":", "_"), {})[name] = cell["value"]
    write_json(out_metrics, metrics)
    rows = [
        (manifest.parent.name, run.seed, m.condition, m.metric, m.value, m.n, run.run_id)
        for manifest in manifests
        for run in open_runs(manifest)
        for m in run.measured()
    ]
    columns = ["experiment", "seed", "condition", "metric", "value", "n", "run_id"]
    with atomic(out_results) as temporary:
        pd.DataFrame(rows, columns=columns).to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(collect))
