"""Folders from outside of the project that runs read: a recorded data set, GR00T's weights, LIBERO's own assets.

What they hold decides, not where they are: records have one hash over the names and the bytes of the files, and the id
of a run takes it in place of the path. So the same data in another folder give the same run, and a file that is changed
in place makes another one.

Hashing a large folder takes minutes, so the hash of each file is kept in the user's cache together with its size and
its times. A file is read again when one of them has changed.
"""

import hashlib
import importlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.files import cache_folder, canonical, read_json, sha256, write_json
from ghost.forms import SHA256, has_form

HUB = "hub"  # in place of a folder: it is downloaded
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
COMMIT = re.compile(r"[0-9a-f]{40}")
SETTLED_NS = 2 * 10**9  # a file that changed less than this ago may change again without another time
LARGE = 10**9  # bytes that are worth a line before they are read
KEPT = {str: {"size": int, "mtime_ns": int, "ctime_ns": int, "sha256": SHA256}}


@dataclass(frozen=True)
class Source:
    """A setting of an experiment that names a folder from outside."""

    setting: str
    files: tuple[str, ...] = ()  # patterns of the files that count; none: all but hidden ones
    revision: str = ""  # the setting with the commit, where a name on the hub may stand instead of a folder
    key: str = ""  # the key of a configuration that sets it; empty: <experiment>.<setting>

    def check(self, experiment: str, settings: Mapping[str, str]) -> None:
        """Refuse a folder that is missing, and a name on the hub without its commit."""
        where, value = self.key or f"{experiment}.{self.setting}", settings[self.setting]
        if self.revision and value:
            is_on_hub(value, settings[self.revision], where, self._revision_key(where))
        elif not self.revision and not Path(value).is_dir():
            raise GhostError(f"{where}: there is no folder {value!r}")

    def _revision_key(self, where: str) -> str:
        """groot.processor_revision beside groot.processor, libero_demos_revision beside libero_demos."""
        parent = where.rpartition(".")[0]
        return f"{parent}.{self.revision}" if parent else f"{where}_{self.revision}"

    def place(self, settings: Mapping[str, str]) -> "Place | None":
        """The folder; None for a name on the hub, and where the setting is empty."""
        value = settings[self.setting]
        on_hub = self.revision and HUB_ID.fullmatch(value) and not Path(value).is_dir()
        return Place(value, self.files) if value and not on_hub else None


@dataclass(frozen=True)
class Place:
    """A folder, and which of its files count."""

    folder: str
    files: tuple[str, ...] = ()

    @property
    def there(self) -> bool:
        return Path(self.folder).is_dir()

    def content(self, *, afresh: bool = False) -> str:
        """One hash over the names and the bytes of the files; `afresh` reads every file again."""
        folder, start_ns = Path(self.folder).resolve(), time.time_ns()
        memory = cache_folder() / "outside" / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}.json"
        kept = {} if afresh else _read(memory)
        now = {name: _seen(folder / name) for name in self._names(folder)}
        known = {name: kept[name]["sha256"] for name, seen in now.items() if kept.get(name, {}).items() >= seen.items()}
        new = sorted(now.keys() - known.keys())
        if (size := sum(now[name]["size"] for name in new)) > LARGE:
            print(f"ghost: hashing {len(new)} files of {folder}, {size / 1e9:.0f} GB", file=sys.stderr)
        with ThreadPoolExecutor() as pool:  # hashing releases the interpreter
            known |= zip(new, pool.map(lambda name: sha256(folder / name), new), strict=True)
        settled = [name for name in new if max(now[name]["mtime_ns"], now[name]["ctime_ns"]) < start_ns - SETTLED_NS]
        if settled:
            with suppress(OSError, UnicodeEncodeError):  # a cache that cannot be written is none
                write_json(memory, _read(memory) | {name: {**now[name], "sha256": known[name]} for name in settled})
        return hashlib.sha256(canonical(known).encode(errors="surrogateescape")).hexdigest()

    def _names(self, folder: Path) -> set[str]:
        found = (path for pattern in self.files for path in folder.glob(pattern)) if self.files else _below(folder)
        names = {path.relative_to(folder) for path in found if path.is_file()}
        return {name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)}


def is_on_hub(name: str, revision: str, where: str, key: str) -> bool:
    """Whether a name is one of the hub, with its commit, and not a folder. Anything else is refused."""
    if Path(name).is_dir():
        return False
    if not HUB_ID.fullmatch(name):
        raise GhostError(f"{where}: there is no folder {name!r}")
    if not COMMIT.fullmatch(revision):
        raise GhostError(
            f"{where}: there is no folder {name!r}; as a name on the hub it needs {key}, a commit (40 hex digits), got"
            f" {revision!r}"
        )
    return True


def fetched(name: str, revision: str, where: str, key: str, *, kind: str, patterns: Sequence[str] = ()) -> Path:
    """A folder, or the files of a repository of the hub (`kind`: model or dataset) at its commit, cached here."""
    if not is_on_hub(name, revision, where, key):
        return Path(name).resolve()
    hub = importlib.import_module("huggingface_hub")
    try:
        return Path(hub.snapshot_download(name, repo_type=kind, revision=revision, allow_patterns=patterns or None))
    except OSError:  # what the hub's library raises without an answer: HTTP errors, no connection, offline mode
        raise GhostError(
            f"{where}: {name} at {revision} is not in the local cache and the hub does not answer; download it"
            " elsewhere and name the folder"
        ) from None


def _below(folder: Path) -> Iterator[Path]:
    """All files below a folder, also behind links to folders; a folder is entered once, so that no link is endless."""
    entered: set[str] = set()

    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, followlinks=True, onerror=fail):
        real = os.path.realpath(parent)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if real not in entered else []
        if real not in entered:
            yield from (Path(parent, name) for name in names)
        entered.add(real)


def _seen(path: Path) -> dict[str, int]:
    """What changes with a file: its size and its times."""
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}


def _read(memory: Path) -> dict[str, dict[str, Any]]:
    """The known hashes; none from a file that is missing or damaged."""
    try:
        kept = read_json(memory)
    except (OSError, GhostError):
        return {}
    return kept if has_form(kept, KEPT) else {}
