"""Reading `cells.jsonl`."""

from pathlib import Path
from typing import Any

from ghost.files import parse_json, read_lines
from ghost.forms import COUNT, SHA256, require

TEXTS = ("id", "experiment", "metric", "condition", "estimator", "unit", "against", "shown")
FORM = {
    **dict.fromkeys(TEXTS, str),
    **{"value": (float, None), "interval": ([float], None), "n": COUNT, "sha256": (SHA256, None)},
    **{"runs": [str], "unpaired": [object], "stand_ins": [str], "reduced": bool},
}


def read_cells(*paths: Path) -> dict[str, dict[str, Any]]:
    """Cells by id."""
    return {cell["id"]: cell for path in paths for _, cell in cell_lines(path)}


def cell_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The lines of a file of cells, each with the cell that it holds."""
    found = []
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}, line {number}: not a cell; run `snakemake all` to make it anew"
        cell = parse_json(line, where)
        require(cell, FORM, where)
        found.append((line, cell))
    return found
