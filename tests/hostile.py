"""Files as a pull, a download or a careless edit may bring them, and what every reader owes to its user.

A test takes a valid file that the project's own writer made, and damages it: bytes are flipped, cut out or added,
values of JSON and YAML are replaced by others, keys removed, columns of a table and arrays change type and content.

    @given(damages)
    def test_...(damage):
        with damage.of(path):
            withstand(lambda: read(path))

The invariant: a reader returns what it has verified, or ends with one clear line. Nothing else may be raised, and no
file outside of its folder may change.
"""

from __future__ import annotations

import copy
import io
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from hypothesis import strategies as st

from ghost.errors import GhostError, one_line

STRANGE: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 99, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), "", " ", "0", "a", "nan", "\u2028", "a\u0085b", "new\nline", "\x1b[2J", "\0"),
    *("../../x", "/etc/passwd", "..", ".", "seed7/../../x", "/dev/zero", "~", "a" * 300, "0" * 16, "0" * 64, "{0}"),
    *("ghost.decoders.mlp", "ghost.cli", "os.system", "ghost.decoders", "ghost./tmp/x", "!!python/object:os.x"),
    *([], {}, [None], [[]], [1, "a"], {"": {}}, {"a": 1}, {"..": "x"}, [["a"], 2]),
]


def withstand(read: Callable[[], Any]) -> Any:
    """Call a reader. It may return, or raise an error that is one line; an OSError is one on the command line too."""
    try:
        return read()
    except GhostError as error:
        said = str(error)
    except OSError as error:
        said = f"{error.filename}: {error.strerror}"
    assert said.strip()
    assert len(said) < 20_000
    assert one_line(said).isprintable()
    return None


def tree(folder: Path) -> dict[str, bytes]:
    """The content of a folder: to see that nothing was written there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Damage:
    """What is done to a file, as numbers: where, what and how much. The same numbers do the same to the same file."""

    raw: bool
    kind: int
    place: int
    value: int
    length: int

    def to(self, content: bytes, suffix: str) -> bytes:
        if self.raw or suffix not in STRUCTURED:
            return self.bytes(content)
        return STRUCTURED[suffix](self, content)

    @contextmanager
    def of(self, path: Path, after: Callable[[], object] = lambda: None) -> Iterator[None]:
        """The file is damaged within the block, then whole again; `after` runs first, to hash it anew."""
        content = path.read_bytes()
        try:
            path.unlink()  # it may be a link to a file that others use
            path.write_bytes(self.to(content, path.suffix))
            after()
            yield
        finally:
            path.write_bytes(content)

    def bytes(self, content: bytes) -> bytes:
        at, some = self.place % (len(content) + 1), 1 + self.length % 64
        noise = np.random.default_rng(self.value).bytes(some)
        match self.kind % 6:
            case 0:
                return content[:at]
            case 1:
                return content[:at] + content[at + some :]
            case 2:
                return content[:at] + noise + content[at:]
            case 3:
                return content[:at] + noise[:1] + content[at + 1 :]
            case 4:
                return content[:at] + bytes(some) + content[at + some :]
        return content + content

    def json(self, value: Any) -> Any:
        """A value of which one part is another."""
        value = copy.deepcopy(value)
        places = list(_places(value))
        if not places:
            return self.strange
        holder, key = places[self.place % len(places)]
        match self.kind % 5:
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[str(self.strange)] = holder.pop(key)
            case 2 if isinstance(holder, dict):
                holder[f"{key}x"] = self.strange
            case 2:
                holder.append(holder[key])
            case _:
                holder[key] = self.strange
        return value

    @property
    def strange(self) -> Any:
        return copy.deepcopy(STRANGE[self.value % len(STRANGE)])

    def lines(self, content: bytes) -> bytes:
        lines = content.decode().split("\n")
        at = self.place % len(lines)
        value = self.json(json.loads(lines[at] or "{}"))
        lines[at] = json.dumps(value, ensure_ascii=self.length % 2 == 0)
        return "\n".join(lines).encode(errors="surrogatepass")

    def text(self, content: bytes) -> bytes:
        """One word of a text is another."""
        words = content.decode().split(" ")
        words[self.place % len(words)] = str(self.strange)
        return " ".join(words).encode()

    def cells(self, content: bytes) -> bytes:
        lines = [line.split(",") for line in content.decode().split("\n")]
        line = lines[self.place % len(lines)]
        line[self.length % len(line)] = str(self.strange)
        return "\n".join(map(",".join, lines)).encode()

    def table(self, content: bytes) -> bytes:
        """A column is absent, doubled, of another type, or has other values."""
        table = pq.read_table(io.BytesIO(content))
        at = self.place % table.num_columns
        name, column = table.column_names[at], table.column(at).to_pylist()
        match self.kind % 4:
            case 0:
                table = table.remove_column(at)
            case 1:
                table = table.append_column(name, table.column(at))
            case 2:
                table = table.set_column(at, name, [_array([self.strange] * len(column))])
            case _:
                column[self.length % max(1, len(column))] = self.strange
                table = table.set_column(at, name, [_array(column)])
        written = io.BytesIO()
        pq.write_table(table, written)
        return written.getvalue()

    def tensors(self, content: bytes) -> bytes:
        """safetensors: the header says something else of the same bytes."""
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        if self.length % 3 == 0 and "__metadata__" in header:
            facts = {key: self.json(json.loads(text)) for key, text in header["__metadata__"].items()}
            header["__metadata__"] = {key: json.dumps(value) for key, value in facts.items()}
        else:
            header = self.json(header)
        said = json.dumps(header).encode(errors="surrogatepass")
        return struct.pack("<Q", len(said)) + said + content[8 + length :]

    def array(self, content: bytes) -> bytes:
        """npy: another type or shape."""
        values = np.load(io.BytesIO(content))
        dtype = ["<f8", "<i8", "|b1", "<U3", "<c16", "<f2", "<f4", "<M8[s]"][self.value % 8]
        other = values.astype(dtype) if self.kind % 2 else values.reshape(-1)[: self.length]
        written = io.BytesIO()
        np.save(written, other)
        return written.getvalue()


STRUCTURED: dict[str, Callable[[Damage, bytes], bytes]] = {
    ".json": lambda damage, content: json.dumps(damage.json(json.loads(content))).encode(errors="surrogatepass"),
    ".jsonl": Damage.lines,
    ".csv": Damage.cells,
    ".yaml": lambda damage, content: (
        damage.text(content)
        if damage.length % 2
        else yaml.safe_dump(damage.json(yaml.safe_load(content)), allow_unicode=True).encode(errors="surrogatepass")
    ),
    ".parquet": Damage.table,
    ".safetensors": Damage.tensors,
    ".npy": Damage.array,
}
damages = st.builds(
    Damage,
    raw=st.sampled_from([False, False, False, True]),
    kind=st.integers(0, 59),
    place=st.integers(0, 10**6),
    value=st.integers(0, 10**6),
    length=st.integers(0, 10**6),
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a JSON value, as what holds it and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)


def _array(values: list[Any]) -> pa.Array:
    try:
        made = pa.array(values)
        pq.write_table(pa.table({"": made}), io.BytesIO())
        return made
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):  # values of several types: as text
        return pa.array([ascii(value) for value in values])
