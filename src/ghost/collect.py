"""All cells in one file, all raw results in one tidy table: `python -m ghost.collect --cells ... --manifests ...`."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import tyro

from ghost.errors import exit_on_error
from ghost.files import atomic, write_text
from ghost.records import open_runs


def collect(cells: tuple[Path, ...], manifests: tuple[Path, ...], out_cells: Path, out_results: Path) -> None:
    """Write cells.jsonl and results.csv.

    Args:
        cells: the cells of every figure and table.
        manifests: the manifests of every experiment.
        out_cells: all cells, sorted by id.
        out_results: one line per measured value: experiment, seed, condition, metric, value, n, run id.
    """
    lines = [line for path in cells for line in path.read_text(encoding="utf-8").splitlines()]
    write_text(out_cells, "".join(f"{line}\n" for line in sorted(lines, key=lambda line: json.loads(line)["id"])))
    rows = [
        (manifest.parent.name, run.seed, row.condition, row.metric, row.value, row.n, run.run_id)
        for manifest in manifests
        for run in open_runs(manifest)
        for row in run.rows()
    ]
    columns = ["experiment", "seed", "condition", "metric", "value", "n", "run_id"]
    with atomic(out_results) as temporary:
        pd.DataFrame(rows, columns=columns).to_csv(temporary, index=False)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(collect))
