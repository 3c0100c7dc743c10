"""The inventory: the sha256 of every file that a build consists of, also of those that no other check makes anew."""

from collections.abc import Collection, Iterator
from pathlib import Path

from ghost.audit.checks import Problem
from ghost.audit.checks.runs import Runs, changed
from ghost.files import confined, read_json
from ghost.forms import NAME, SHA256
from ghost.report.inventory import outputs, records
from ghost.report.latexmk import available


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
    files = [(confined(Path(), name), expected, path) for name, expected in listed.items()]
    for problem in changed(files):
        if problem.where not in known:
            yield problem
