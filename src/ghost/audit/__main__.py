"""The audit page: `python -m ghost.audit --cells cells.jsonl --manifests ... --out audit.html`.

One HTML file without scripts or links to elsewhere: every cell, every run, the way from each to the other.
"""

from __future__ import annotations

from pathlib import Path

import jinja2
import tyro

from ghost.cells import read_cells
from ghost.errors import exit_on_error
from ghost.files import write_text
from ghost.records import open_runs

TEMPLATE = Path(__file__).with_name("page.html.jinja")


def audit(cells: Path, manifests: tuple[Path, ...], scale: str, out: Path) -> None:
    """Write the audit page.

    Args:
        cells: all cells, a JSON line each.
        manifests: the manifests of every experiment.
        scale: the scale they were made at.
        out: the HTML file to write.
    """
    by_id = read_cells(cells)
    records = [run.record() for manifest in manifests for run in open_runs(manifest)]
    touched: dict[str, list[str]] = {record["run_id"]: [] for record in records}
    for cell in by_id.values():
        for run_id in cell["runs"]:
            touched[run_id].append(cell["id"])
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    write_text(out, template.render(cells=list(by_id.values()), records=records, touched=touched, scale=scale))


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(audit))
