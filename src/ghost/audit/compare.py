"""`ghost audit --diff A B`: which cells differ between two builds, and what differs in the runs behind them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.files import confined, read_json
from ghost.report.cells import read_cells

# what a cell is; an older build may lack some
DECLARED = ("estimator", "metric", "condition", "against", "against_condition", "against_metric", "n")
SHOWN_FILES = 5  # changed source files that a reason names

HASHED = {str: {"sha256": str}}
RECORDED = {"settings": dict, "inputs": HASHED, "code": {"files": dict}}  # what is compared of any version's record


@dataclass(frozen=True)
class Difference:
    cell: str
    first: str  # as shown; empty where the build lacks it
    second: str
    because: list[str]  # what differs in its runs


def compare(first: Path, second: Path) -> list[Difference]:
    """Two builds, each given by its data folder, such as data/laptop in two checkouts."""
    ours, theirs = _cells(first), _cells(second)
    found = []
    for identity in sorted({*ours, *theirs}):
        a, b = ours.get(identity), theirs.get(identity)
        if a and b and (a["shown"], a["value"], a["sha256"]) == (b["shown"], b["value"], b["sha256"]):
            continue
        because = _because(first, a, second, b) if a and b else [f"only in {first if a else second}"]
        found.append(Difference(identity, _shown(a), _shown(b), because))
    return found


def _cells(folder: Path) -> dict[str, dict[str, Any]]:
    """All cells of a build, or those of the figures and tables that were made of it, as of a shipped study."""
    whole, parts = folder / "cells.jsonl", sorted((folder / "cells").glob("*.jsonl"))
    if not whole.exists() and not parts:
        raise GhostError(f"{folder} has no cells.jsonl: name the data folder of a build, such as data/laptop")
    return read_cells(whole) if whole.exists() else read_cells(*parts)


def _shown(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    return cell["shown"] if cell["sha256"] is None else f"{cell['shown']} {cell['sha256'][:8]}"


def _because(first: Path, a: dict[str, Any], second: Path, b: dict[str, Any]) -> list[str]:
    """What differs between the records of the same seed of the same experiment."""
    own, other = ({key: cell.get(key) or "none" for key in DECLARED} for cell in (a, b))
    said = [f"{key}: {own[key]} and {other[key]}" for key in DECLARED if own[key] != other[key]]
    for name in filter(None, dict.fromkeys((a["experiment"], a["against"]))):
        ours, theirs = _records(first, name), _records(second, name)
        if sorted(ours) != sorted(theirs):
            said.append(f"{name}: seeds {sorted(ours)} and {sorted(theirs)}")
        said += [text for seed in sorted({*ours} & {*theirs}) for text in _unlike(name, ours[seed], theirs[seed])]
    nothing = "the same code, settings and inputs: look at host and library versions"
    return list(dict.fromkeys(said)) or [nothing if a["experiment"] else f"the code of {a['metric']}"]


def _records(folder: Path, experiment: str) -> dict[int, dict[str, Any]]:
    """Records by seed, which the name of a run's folder holds."""
    paths = confined(folder / "runs", experiment).glob("seed*/run.json")
    seeds = {path.parent.name.removeprefix("seed"): path for path in paths}
    return {int(seed): read_json(path, RECORDED) for seed, path in seeds.items() if seed.isdecimal()}


def _unlike(name: str, a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """What differs between two records. Another version of Ghost may have recorded less, or otherwise."""
    said = [
        f"{name}: {key} {a['settings'].get(key)} and {b['settings'].get(key)}"
        for key in sorted({*a["settings"], *b["settings"]})
        if a["settings"].get(key) != b["settings"].get(key)
    ]
    said += [
        f"{name}: input {key} {a['inputs'][key]['sha256'][:8]} and {b['inputs'][key]['sha256'][:8]}"
        for key in sorted({*a["inputs"]} & {*b["inputs"]})
        if a["inputs"][key]["sha256"] != b["inputs"][key]["sha256"]
    ]
    said += [
        f"{key}: {a.get(key)} and {b.get(key)}"
        for key in ("stand_ins", "outside", "lock_sha256", "versions", "host", "commit")
        if a.get(key) != b.get(key)
    ]
    ours, theirs = a["code"]["files"], b["code"]["files"]
    changed = [file for file in sorted({*ours, *theirs}) if ours.get(file) != theirs.get(file)]
    if changed:
        more = f" and {len(changed) - SHOWN_FILES} more" if len(changed) > SHOWN_FILES else ""
        said.append(f"code: {', '.join(changed[:SHOWN_FILES])}{more}")
    return said


def report(found: list[Difference]) -> str:
    """For people: the cells that differ for the same reasons stand together, above these reasons."""
    if not found:
        return "no cell differs"
    groups: dict[tuple[str, ...], list[Difference]] = {}
    for difference in found:
        groups.setdefault(tuple(difference.because), []).append(difference)
    lines = []
    for because, group in groups.items():
        lines += [f"{each.cell}: {each.first or 'absent'} -> {each.second or 'absent'}" for each in group]
        lines += [f"    {text}" for text in because]
    return "\n".join([*lines, f"{len(found)} cells differ"])
