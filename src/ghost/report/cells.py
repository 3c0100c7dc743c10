"""Cells as lines of JSON: `cells.jsonl`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.files import canonical, parse_json, read_lines
from ghost.forms import COUNT, SHA256, require

TEXTS = ("id", "experiment", "metric", "condition", "estimator", "unit", "shown")
AGAINST = ("against", "against_condition", "against_metric")
FORM = {
    **dict.fromkeys((*TEXTS, *AGAINST), str),
    **{"value": (float, None), "interval": ([float], None), "n": COUNT, "sha256": (SHA256, None)},
    **{"runs": [str], "unpaired": [object], "stand_ins": [str], "reduced": bool},
}


def cell_lines(cells: Iterable[Mapping[str, Any]]) -> str:
    """The content of cells.jsonl: a line per cell, sorted by id."""
    return "".join(f"{canonical(cell)}\n" for cell in sorted(cells, key=lambda cell: str(cell["id"])))


def read_cells(*paths: Path) -> dict[str, dict[str, Any]]:
    """Cells by id."""
    cells: dict[str, dict[str, Any]] = {}
    for path in paths:
        if not path.exists():
            raise GhostError(f"there is no {path} yet; `snakemake all` makes it")
        for number, line in enumerate(read_lines(path), 1):
            where = f"{path}, line {number}: not a cell; run `snakemake all` to make it anew"
            cell = parse_json(line, where)
            cell = {**dict.fromkeys(AGAINST, ""), **cell} if isinstance(cell, dict) else cell  # older builds lack some
            require(cell, FORM, where)
            if len(cell["interval"] or (0, 0)) != 2:
                raise GhostError(f"{where}: interval must be two numbers")
            cells[cell["id"]] = cell
    return cells
