"""Cells as lines of JSON: `cells.jsonl`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.files import canonical


def cell_lines(cells: Iterable[Mapping[str, Any]]) -> str:
    """The content of cells.jsonl: a line per cell, sorted by id."""
    return "".join(f"{canonical(cell)}\n" for cell in sorted(cells, key=lambda cell: str(cell["id"])))


def read_cells(*paths: Path) -> dict[str, dict[str, Any]]:
    """Cells by id."""
    cells: dict[str, dict[str, Any]] = {}
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                cell = json.loads(line)
                cells[cell["id"]] = cell
            except (json.JSONDecodeError, KeyError, TypeError):
                raise GhostError(f"{path}, line {number}: not a cell; run `snakemake all` to make it anew") from None
    return cells
