"""Files that are whole or absent: atomic writing, hashing, and paths that stay inside their folder."""

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from ghost.errors import GhostError
from ghost.forms import require

HOST = os.uname().nodename
TEMPORARY = re.compile(rf"\..*?\.({re.escape(HOST)}|[^/]*)-(\d+)\.tmp.*", re.DOTALL)
DAY_S = 86400.0
DEEPEST = 100  # lists and objects in each other, in a file of YAML
MOST_VALUES = 100_000  # in a file of YAML; the ledger, the largest, has some 10,000


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; move it there when the block ends well, delete it otherwise.

    The temporary name keeps the suffix, since libraries choose their format by it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
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


@contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it is gone when the block ends."""
    folder = _temporary(path)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _temporary(path: Path) -> Path:
    """A hidden name that says who writes: two machines may share a file system."""
    return path.with_name(f".{path.stem}.{HOST}-{os.getpid()}.tmp{path.suffix}")


def tidy(folder: Path) -> None:
    """Remove what killed processes left in a folder under temporary names: on another machine, a day ago."""
    for path in folder.glob(".*.tmp*") if folder.is_dir() else ():
        found = TEMPORARY.fullmatch(path.name)
        with suppress(FileNotFoundError):  # another job tidies as well
            if found and (not _runs(int(found[2])) if found[1] == HOST else path.stat().st_mtime < time.time() - DAY_S):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_text(path: Path, text: str) -> None:
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Indented, sorted, with a last newline: stable bytes that people can diff."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_json(path: Path, form: Any = None) -> Any:
    """The value in a file; of the given form (see ghost.forms), if there is one."""
    value = parse_json(path.read_bytes(), path)
    if form is not None:
        require(value, form, path)
    return value


def read_lines(path: Path) -> list[str]:
    """The lines of a text, without their ends. `str.splitlines` would also split at U+2028, a sign like any."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise GhostError(f"{path} is not text: {error}") from None
    return text.removesuffix("\n").split("\n") if text else []


def parse_json(content: bytes | str, where: object) -> Any:
    """A JSON value. Text that UTF-8 cannot hold is refused: it could be neither printed nor hashed."""
    try:
        text = content if isinstance(content, str) else content.decode()
        value = json.loads(text)
        if "\\u" in text:  # half of a pair of surrogates
            canonical(value).encode()
    except (ValueError, RecursionError) as error:  # ValueError: also bytes that are no text, and endless integers
        raise GhostError(f"{where} is not JSON: {error}") from None
    return value


class PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's is ten times faster
    """YAML whose keys stand once. PyYAML lets the last of two equal keys win, and nobody sees it."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [key.value for key, _ in getattr(node, "value", ()) if isinstance(key, yaml.ScalarNode)]
        doubled = [key for number, key in enumerate(keys) if key in keys[:number]]
        if doubled:
            raise yaml.constructor.ConstructorError(None, None, f"{doubled[0]!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str, where: object) -> Any:
    """A value of plain types. Whatever else YAML can say is refused: objects, endless numbers, aliases that explode."""
    try:
        depth = 0
        for event in yaml.parse(text, PlainLoader):  # loading recurses in C, which ends Python when it is too deep
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise GhostError(f"{where} has values nested deeper than {DEEPEST}")
        value = yaml.load(text, PlainLoader)  # noqa: S506  # a SafeLoader, with fewer freedoms
        if _size(value) > MOST_VALUES:
            raise GhostError(f"{where} has more than {MOST_VALUES} values")
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:  # as its types fail
        raise GhostError(f"{where} is not YAML: {' '.join(str(error).split())}") from None
    return value


def read_yaml(path: Path, form: Any = None) -> Any:
    """The value in a file; of the given form (see ghost.forms), if there is one."""
    value = parse_yaml("\n".join(read_lines(path)), path)
    if form is not None:
        require(value, form, path)
    return value


def _size(value: Any) -> int:
    """How many values there are, with every alias written out; counting ends above MOST_VALUES."""
    found, waiting = 0, [value]
    while waiting and found <= MOST_VALUES:
        found += 1
        each = waiting.pop()
        waiting += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    return found


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
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (ValueError, RuntimeError):  # a name with a zero byte, a link that leads to itself
        inside = False
    if not inside:
        raise GhostError(f"{name!r} leads out of {folder}: refused")
    return path


def cache_folder() -> Path:
    """Of this user and project: what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ghost"
