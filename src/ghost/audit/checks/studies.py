"""Shipped studies: every file is the one that `ghost ship` listed. The runs that read them are checked as all are."""

from collections.abc import Iterator
from pathlib import Path

from ghost.audit.checks import Problem
from ghost.files import read_json, sha256
from ghost.study.closed_loop import FORM, INDEX, STUDIES


def check_studies(folder: Path = Path(STUDIES)) -> Iterator[Problem]:
    """Files of shipped builds that are missing, changed or not listed. Git brings the right ones back."""
    for index in sorted(folder.glob(f"*/{INDEX}")):
        listed = read_json(index, FORM)["files"]
        there = {str(each.relative_to(index.parent)) for each in index.parent.rglob("*") if each.is_file()} - {INDEX}
        for name in sorted({*listed} | there):
            path = index.parent / name
            if name not in listed:
                yield Problem("studies", str(path), f"is not a file that {INDEX} lists")
            elif name not in there:
                yield Problem("studies", str(path), f"is missing, though {INDEX} lists it")
            elif sha256(path) != listed[name]:
                says = f"was changed: it is not the file that {INDEX} lists (sha256 differs)"
                yield Problem("studies", str(path), says)
