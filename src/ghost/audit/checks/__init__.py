"""The checks of `ghost audit --verify`, one module per kind of file. Each yields the problems that it finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ghost.errors import GhostError


@dataclass(frozen=True)
class Problem:
    kind: str  # runs, inputs, cells, text, pdf, ...
    where: str
    says: str
    remake: Path | None = None  # the output that Snakemake makes anew once it is gone, where that mends the problem


def attempt(
    kind: str, path: Path, check: Callable[[], Iterator[Problem]], remake: Path | None = None
) -> Iterator[Problem]:
    """The problems that a check finds. A file that stops the check is a problem too, and hides no other one."""
    try:
        yield from check()
    except (GhostError, OSError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        yield Problem(kind, str(path), said.removeprefix(f"{path}").lstrip(":, "), remake)
