"""The packages of the environment that really runs, beside the lock that pins them.

A lock says what should be installed. With `--sdm conda`, in an environment made by hand or after a `pip install`
something else may be there. So a record names the lock only if each package of the lock is installed in its version.
Packages that no lock names do not count: conda has some of its own.
"""

import hashlib
import re
import shutil
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ghost.files import canonical, sha256

SHOWN = 5  # packages that differ


def read_lock(path: Path, here: bool = True) -> dict[str, str]:
    """Name and version of each package that the lock has for this system, or for any. Hashes are for pip."""
    pins: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        pin, _, needs = line.partition(" --hash=")[0].partition(" ; ")
        if pin and not pin.startswith("#") and not (here and needs and not applies(needs)):
            name, _, version = pin.partition("==")
            pins[name] = version
    return pins


def applies(needs: str) -> bool:
    from packaging.markers import Marker  # few lines of a lock depend on the system

    return Marker(needs).evaluate()


def installed(folders: Iterable[str] | None = None) -> dict[str, str]:
    """Name and version of every package; by default of those that this interpreter would import.

    Names of folders are enough: importlib.metadata opens every file and takes a hundred times longer.
    """
    return dict(_found(tuple(filter(None, sys.path if folders is None else folders))))


@cache
def _found(folders: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(Path(folder).glob("*.*-info")):
            name, version, *_ = [*path.stem.split("-"), ""]
            if path.suffix in (".dist-info", ".egg-info") and version:
                found.setdefault(plain(name), version)
    return found


def packages_of(python: str) -> tuple[str, ...]:
    """The folders with the packages of another interpreter: none, if it is not there."""
    found = shutil.which(python)
    return tuple(map(str, Path(found).parents[1].glob("lib/python3*/site-packages"))) if found else ()


def plain(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def differences(lock: Path, folders: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The packages that are not installed as the lock has them. A build tag (2.13.0+cpu) makes no difference."""
    there = installed(folders)
    pins = {plain(name): version for name, version in read_lock(lock).items()}
    return tuple(
        f"{name} {there.get(name, 'missing')} (lock: {version})"
        for name, version in pins.items()
        if there.get(name, "").partition("+")[0] != version.partition("+")[0]
    )


def lock_sha256(lock: Path) -> str:
    """The sha256 of the lock, if this is its environment; otherwise that of the packages that are there."""
    return packages_sha256() if differences(lock) else sha256(lock)


def packages_sha256() -> str:
    return hashlib.sha256(canonical(installed()).encode()).hexdigest()


def environment(lock: Path) -> dict[str, Any]:
    """What was really there, for the record of a run."""
    return {"lock": lock.name, "packages_sha256": packages_sha256(), "differs": list(differences(lock))}


def shortened(differing: Iterable[str]) -> str:
    found = list(differing)
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
