"""Where the project is: its root, found upwards from the working directory as git does, and paths that cannot work.

`python -m ghost.project.place` checks the working directory; `make` does so before anything is installed.
"""

import os
import tomllib
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from ghost.errors import GhostError, exit_on_error

HOME = Path(__file__).parents[3]  # of the checkout that this file is in
PARTS = ("Snakefile", "config", "src/ghost")
REFUSED = {
    ":": "PATH and PYTHONPATH cannot hold it",
    **dict.fromkeys("{}", "Snakemake would look for a wildcard there"),
    **dict.fromkeys('\n\r"$`\\', "the first lines of the commands in .venv cannot hold it"),
}


def find_root(folder: Path) -> Path:
    """The nearest checkout that a folder is in."""
    for place in (folder, *folder.parents):
        if all((place / part).exists() for part in PARTS):
            return place
    there = f"; there is one in {HOME}" if all((HOME / part).exists() for part in PARTS) else ""
    raise GhostError(f"{folder} is not in a checkout of this project: go to one{there}")


def version() -> str:
    """The version of the checkout that this file is in."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def check(root: Path) -> None:
    """Refuse a path that no build can work in."""
    for character, reason in REFUSED.items():
        if character in str(root):
            raise GhostError(
                f"the path {str(root)!r} holds {character!r}: {reason}; move the checkout to another folder"
            )


def from_root(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that works in the root of the checkout. Paths that the user gave stay where the user is."""

    @wraps(command)
    def run(**given: Any) -> Any:
        here = Path.cwd()
        root = find_root(here)
        check(root)
        if root != here:
            given = {name: _from(here, value) for name, value in given.items()}
            os.chdir(root)
        return command(**given)

    return run


def _from(folder: Path, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_from(folder, item) for item in value)
    return folder / value if isinstance(value, Path) else value


if __name__ == "__main__":
    exit_on_error(lambda: check(Path.cwd()))
