"""The inventory: the sha256 of every file that a build consists of, also of those that no other check makes anew."""

from collections.abc import Collection, Iterator
from pathlib import Path

from ghost.audit.checks import Problem
from ghost.audit.checks.runs import Listed, Runs, changed
from ghost.files import confined, read_json
from ghost.forms import NAME, SHA256
from ghost.report.inventory import outputs, records
from ghost.report.tex import available
from ghost.runs.records import MANIFEST, RECORD, UNITS


def _made_with(file: Path) -> Path:
    """The output of Snakemake that a file is made with: the records of a run with their manifest."""
    return file.parents[1] / MANIFEST if file.name in (RECORD, UNITS) else file


def check_inventory(runs: Runs, known: Collection[str]) -> Iterator[Problem]:
    """Files that are not those of the inventory. `known` are files whose problems another check has named."""
    config, path = runs.config, runs.config.inventory
    if not path.exists():
        yield Problem("inventory", str(path), "is missing", path)
        return
    listed = read_json(path, {"files": {NAME: SHA256}})["files"]
    readable = [config.manifest(name) for name in runs.listed]
    there = {str(file) for file in (*outputs(config, tex=available()), *records(readable))}
    for name in sorted(there - listed.keys()):
        yield Problem("inventory", str(path), f"does not list {name}", path)
    files = [confined(Path(), name) for name in listed]
    known_by = [Listed(file, listed[str(file)], path, _made_with(file)) for file in files]
    for problem in changed(known_by):
        if problem.where not in known:
            yield problem
