"""Which assets LIBERO is built from, in this order: a path, LIBERO's own where they are installed, the primitives.

`$GHOST_LIBERO_ASSETS` names a folder with LIBERO's asset tree (its hub: lerobot/libero-assets); so does a folder
`assets` inside the installed package, where LIBERO itself puts them. Without either the primitives are written, once,
into the user's cache folder. Records say which: the primitives are a stand-in, of other assets they have the hash.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ghost.errors import GhostError
from ghost.files import cache_folder, sha256
from ghost.libero.primitives import THINGS, write_primitives
from ghost.sources import file_hash, module_path

VARIABLE = "GHOST_LIBERO_ASSETS"
STAND_IN = "LIBERO assets"  # as records carry it


@dataclass(frozen=True)
class Assets:
    folder: Path
    primitive: bool

    @property
    def stand_ins(self) -> list[str]:
        return [STAND_IN] if self.primitive else []

    @property
    def facts(self) -> dict[str, str]:
        """What records say of them. The primitives are code of ours, which has its own hash there."""
        return {"libero_assets": "primitives" if self.primitive else tree_hash(self.folder)}


def find_assets() -> Assets:
    """The assets of this machine; told by nothing but the environment, so that a row means the same everywhere."""
    given = os.environ.get(VARIABLE)
    if given:
        missing = [thing.path for thing in THINGS if not (Path(given) / thing.path).is_file()]
        if missing:
            raise GhostError(f"${VARIABLE}: {given} has no {missing[0]}; it must hold LIBERO's asset tree")
        return Assets(Path(given).resolve(), primitive=False)
    installed = package_folder() / "assets"
    if installed.is_dir():
        return Assets(installed, primitive=False)
    return primitive_assets()


def primitive_assets() -> Assets:
    """The primitives, written where they are not there yet; another version of them is another folder."""
    source = module_path("ghost.libero.primitives")
    assert source is not None
    folder = cache_folder() / f"libero-primitives-{file_hash(source)[:12]}"
    if not (folder / "complete").is_file():
        write_primitives(folder)
        (folder / "complete").touch()
    return Assets(folder, primitive=True)


@cache
def tree_hash(folder: Path) -> str:
    """Of the names and bytes of all files below."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{path.relative_to(folder).as_posix()} {sha256(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def package_folder() -> Path:
    """Where hf-libero is installed, without importing it."""
    spec = find_spec("libero")
    if spec is None or not spec.submodule_search_locations:
        raise GhostError("LIBERO is not installed: pip install --no-deps -r requirements.lock")
    return Path(next(iter(spec.submodule_search_locations))) / "libero"
