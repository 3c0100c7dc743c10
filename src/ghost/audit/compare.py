"""`ghost audit --diff A B`: which cells differ between two builds, and what differs in the runs behind them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.files import read_json
from ghost.report.cells import read_cells

WATCHED = ("settings", "inputs", "stand_ins", "lock_sha256", "host", "commit")


@dataclass(frozen=True)
class Difference:
    cell: str
    first: str  # as shown; empty where the build lacks it
    second: str
    because: list[str]  # what differs in its runs


def compare(first: Path, second: Path) -> list[Difference]:
    """Two builds, each the data folder of a scale, such as data/laptop in two checkouts."""
    for folder in (first, second):
        if not (folder / "cells.jsonl").exists():
            raise GhostError(f"{folder} has no cells.jsonl: name the data folder of a build, such as data/laptop")
    ours, theirs = read_cells(first / "cells.jsonl"), read_cells(second / "cells.jsonl")
    found = []
    for identity in sorted({*ours, *theirs}):
        a, b = ours.get(identity), theirs.get(identity)
        if a and b and (a["shown"], a["value"], a["sha256"]) == (b["shown"], b["value"], b["sha256"]):
            continue
        because = _because(first, a, second, b) if a and b else ["only in one of them"]
        found.append(Difference(identity, _shown(a), _shown(b), because))
    return found


def _shown(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    return cell["shown"] if cell["sha256"] is None else f"{cell['shown']} {cell['sha256'][:8]}"


def _because(first: Path, a: dict[str, Any], second: Path, b: dict[str, Any]) -> list[str]:
    """What differs between the records of the same seed of the same experiment."""
    said: list[str] = []
    for key in ("estimator", "metric", "condition", "n"):
        if a[key] != b[key]:
            said.append(f"{key}: {a[key]} and {b[key]}")
    for name in filter(None, dict.fromkeys((a["experiment"], a["against"]))):
        ours, theirs = _records(first, name), _records(second, name)
        if sorted(ours) != sorted(theirs):
            said.append(f"{name}: seeds {sorted(ours)} and {sorted(theirs)}")
        for seed in sorted({*ours} & {*theirs}):
            said += [text for text in _unlike(name, ours[seed], theirs[seed]) if text not in said]
    return said or ["the same code, settings and inputs: look at host and library versions"]


def _records(folder: Path, experiment: str) -> dict[int, dict[str, Any]]:
    paths = (folder / "runs" / experiment).glob("seed*/run.json")
    return {record["seeds"]["training"]: record for record in map(read_json, paths)}


def _unlike(name: str, a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    said = []
    for key in WATCHED:
        if a[key] == b[key]:
            continue
        if not isinstance(a[key], dict):
            said.append(f"{name}: {key} {a[key]} and {b[key]}")
            continue
        for part in sorted({*a[key], *b[key]}):
            left, right = a[key].get(part), b[key].get(part)
            if key == "inputs":
                left, right = ((entry or {}).get("sha256", "none")[:8] for entry in (left, right))
            if left != right:
                said.append(f"{name}: {part} {left} and {right}")
    changed = [file for file in a["code"]["files"] if a["code"]["files"][file] != b["code"]["files"].get(file)]
    return [*said, *(f"{name}: code {file}" for file in changed)]


def report(found: list[Difference]) -> str:
    if not found:
        return "no cell differs"
    lines = []
    for difference in found:
        lines.append(f"{difference.cell}: {difference.first or 'absent'} -> {difference.second or 'absent'}")
        lines += [f"    {text}" for text in difference.because]
    return "\n".join([*lines, f"{len(found)} cells differ"])


def as_json(found: list[Difference]) -> list[dict[str, Any]]:
    return [asdict(difference) for difference in found]
