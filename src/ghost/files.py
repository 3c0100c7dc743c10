"""Files that are whole or absent: atomic writing, hashing, and paths that stay inside their folder."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ghost.errors import GhostError


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; move it there when the block ends well, delete it otherwise.

    The temporary name keeps the suffix, since libraries choose their format by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:  # a full disk does not say which file it was
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Indented, sorted, with a last newline: stable bytes that people can diff."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise GhostError(f"{path} is not JSON: {error}") from None


def canonical(value: Any) -> str:
    """The one text of a JSON value, for hashing."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def hashes(path: Path) -> dict[str, str]:
    """sha256 for us, md5 because that is how DVC addresses the same bytes."""
    with path.open("rb") as handle:
        md5 = hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return {"sha256": sha256(path), "md5": md5}


def link(source: Path, target: Path) -> None:
    """`target` becomes a hard link to `source`, or a copy where the file system has no such links."""
    if target.exists() and target.samefile(source):
        return
    with atomic(target) as temporary:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


def confined(folder: Path, name: str) -> Path:
    """`folder / name`, refused if it would lead out of the folder (names in manifests may come from elsewhere)."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise GhostError(f"{name!r} leads out of {folder}: refused")
    return path


def cache_folder() -> Path:
    """Of this user and project: what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ghost"
