r"""The LaTeX of an article: its files, what of them is printed, and edits that keep every line where it is.

An article may come from anywhere, so it is read with bounds: at most MOST_FILES files of at most LARGEST bytes, all in
the article's folder. Nothing is expanded or run. An article whose braces or environments do not match is refused
with one line, since no place in it could be trusted.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from ghost.errors import GhostError
from ghost.files import confined

LARGEST = 4_000_000  # bytes of a file
MOST_FILES = 200
MOST_LINES = 50_000  # a file counts as often as it is input
DEEPEST = 20  # files that input each other
VERBATIM = r"verbatim\*?|Verbatim\*?|lstlisting|minted|comment|filecontents\*?"
BEGIN, END = r"\begin{document}", r"\end{document}"
INPUT = re.compile(r"\\(?:input|include|subfile)(?:\s*\{\s*([^{}\\]*?)\s*\}|\s+([^\s{}\\]+))")
_HIDDEN = re.compile(
    rf"\\(?:verb|lstinline)\*?(?P<mark>[^A-Za-z\s*{{\[])|\\begin\{{(?P<environment>{VERBATIM})\}}"
    r"|\\(?:url|path|nolinkurl)\s*\{(?P<url>[^{}\n]*)\}|\\href\s*\{(?P<href>[^{}\n]*)\}|\\.|(?P<comment>%)",
    re.DOTALL,
)
_DEFINITION = re.compile(
    r"\\(?:(?P<def>[egx]?def)|(?:re)?new(?P<environment>environment)|(?:(?:re)?newcommand|providecommand|"
    r"DeclareRobustCommand|DeclareMathOperator|newcolumntype))(?![A-Za-z@])\*?\s*"
    r"(?:\{\s*(?P<braced>\\?[A-Za-z@*]+)\s*\}|(?P<bare>\\[A-Za-z@]+))"
)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([^{}]*)\}|\\.", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """A line of the article, in reading order: that of an input file follows the line that inputs it."""

    file: str  # relative to the article's folder; empty for the main file
    number: int  # from 1
    start: int  # of its first character in the file's text
    text: str

    @property
    def name(self) -> str:
        """What the ledger calls it: 45, or intro.tex:45."""
        return f"{self.file}:{self.number}" if self.file else str(self.number)


@dataclass(frozen=True)
class Edit:
    """A piece of a file's text, and what stands there afterwards."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class File:
    """One file of the article. `printed` is its text with blanks for comments, verbatim text and definitions."""

    name: str
    text: str

    @cached_property
    def _shown(self) -> str:
        text = _without_hidden(self.text, self.name)
        end = text.find(END)
        return text if end < 0 else blank(text, end + len(END), len(text))  # TeX reads no further

    @cached_property
    def printed(self) -> str:
        return blanks(self._shown, [(start, end) for start, end, _, _ in _definitions(self._shown)])

    @cached_property
    def macros(self) -> dict[str, str]:
        """Macros without arguments, with what they stand for."""
        return {name: body for _, _, name, body in _definitions(self._shown) if name.startswith("\\")}

    @cached_property
    def groups(self) -> dict[int, int]:
        """Each opening brace, with its closing one."""
        return _groups(self._shown, self.name)

    def check(self) -> None:
        """Refuse braces and environments that do not match."""
        _ = self.groups
        waiting: list[tuple[str, int]] = []
        for match in _ENVIRONMENT.finditer(self.printed):
            if match[1] == "begin":
                waiting.append((match[2], match.start()))
            elif match[1] == "end":
                if not waiting or waiting[-1][0] != match[2]:
                    there = f"\\begin{{{waiting[-1][0]}}} is open there" if waiting else "nothing is open there"
                    raise GhostError(f"{self.at(match.start())}: \\end{{{match[2]}}}, but {there}")
                waiting.pop()
        if waiting:
            raise GhostError(f"{self.at(waiting[-1][1])}: \\begin{{{waiting[-1][0]}}} has no \\end")

    def at(self, offset: int) -> str:
        return f"{self.name}, line {self.text.count(chr(10), 0, offset) + 1}"


class Article:
    """The files of an article: the main one and all that it inputs from its own folder."""

    def __init__(self, main: Path) -> None:
        self.folder, self.main = main.parent, main.name
        self.files: dict[str, File] = {}
        self.lines = list(islice(self._read("", ()), MOST_LINES + 1))
        if len(self.lines) > MOST_LINES:
            raise GhostError(f"{main} has more than {MOST_LINES} lines, with the files that it inputs")

    def _read(self, name: str, above: tuple[str, ...]) -> Iterator[Line]:
        if name in above or len(above) > DEEPEST:
            raise GhostError(f"{name or self.main} inputs itself, through {' and '.join(above) or 'no other file'}")
        if name not in self.files:
            if len(self.files) >= MOST_FILES:
                raise GhostError(f"{self.folder / self.main} inputs more than {MOST_FILES} files")
            self.files[name] = _file(self.folder / (name or self.main))
        file, start = self.files[name], 0
        for number, text in enumerate(file.text.split("\n"), 1):
            yield Line(name, number, start, text)
            for found in INPUT.finditer(file.printed[start : start + len(text)]):
                inner = self.find(found[1] or found[2])
                if inner:
                    yield from self._read(inner, (*above, name or self.main))
            start += len(text) + 1

    def find(self, given: str) -> str:
        """The file that an \\input names, if it is in the article's folder. Files of TeX's own are left to TeX."""
        for candidate in (f"{given}.tex", given):
            path = confined(self.folder, candidate)
            if path.is_file():
                return Path(candidate).as_posix()
        return ""

    @cached_property
    def macros(self) -> dict[str, str]:
        return {name: body for file in self.files.values() for name, body in file.macros.items()}

    def edited(self, edits: Mapping[str, Iterable[Edit]]) -> dict[str, str]:
        """The text of each file after its edits, by the file's name in the folder."""
        return {
            name or self.main: apply(file.text, edits.get(name, ()), file.name) for name, file in self.files.items()
        }


def apply(text: str, edits: Iterable[Edit], where: str) -> str:
    """The text after edits that do not overlap."""
    done, parts = 0, []
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < done:
            raise GhostError(f"{where}: two changes at the same place, near {text[edit.start : edit.start + 40]!r}")
        parts += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*parts, text[done:]])


def _file(path: Path) -> File:
    if not path.is_file():
        raise GhostError(f"there is no article {path}")
    if path.stat().st_size > LARGEST:
        raise GhostError(f"{path} has {path.stat().st_size} bytes; at most {LARGEST} are read")
    try:
        text = path.read_bytes().decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise GhostError(f"{path} is not text in UTF-8: {error}") from None
    if "\0" in text:
        raise GhostError(f"{path} is not text: it has a zero byte")
    file = File(path.name, text)
    file.check()
    return file


def blank(text: str, start: int, end: int) -> str:
    """The text with blanks for a part of it; every line stays where it is."""
    return blanks(text, [(start, end)])


def blanks(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with blanks for parts of it, which are in order and do not overlap."""
    done, parts = 0, []
    for start, end in spans:
        parts += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
        done = end
    return "".join([*parts, text[done:]])


def _without_hidden(text: str, where: str) -> str:
    """Blanks for comments, and for what TeX reads verbatim: in it a brace is a sign like any other."""
    parts, done, position = [], 0, 0
    while match := _HIDDEN.search(text, position):
        start, end = match.span()
        if match["mark"]:
            line_end = text.find("\n", end)
            closing_mark = text.find(match["mark"], end, line_end if line_end >= 0 else len(text))
            end = closing_mark + 1 if closing_mark >= 0 else -1
        elif match["environment"]:
            start, closing = end, f"\\end{{{match['environment']}}}"
            end = text.find(closing, start)
        elif match["url"] is not None or match["href"] is not None:
            start, end = match.span("url" if match["url"] is not None else "href")
        elif match["comment"]:
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
        else:
            position = end
            continue
        if end < start:
            line = text.count("\n", 0, match.start()) + 1
            raise GhostError(f"{where}, line {line}: {match[0]} has no end")
        parts += [text[done:start], re.sub(r"[^\n]", " ", text[start:end])]
        done = position = end
        if match["url"] is not None or match["href"] is not None or match["environment"]:
            position = end + 1
    return "".join([*parts, text[done:]])


def _groups(text: str, where: str) -> dict[int, int]:
    found: dict[int, int] = {}
    waiting: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            waiting.append(match.start())
        elif match[0] == "}":
            if not waiting:
                raise GhostError(f"{where}, line {text.count(chr(10), 0, match.start()) + 1}: a }} that closes nothing")
            found[waiting.pop()] = match.start()
    if waiting:
        raise GhostError(f"{where}, line {text.count(chr(10), 0, waiting[-1]) + 1}: a {{ that is never closed")
    return found


def _definitions(text: str) -> list[tuple[int, int, str, str]]:
    """Definitions of macros and environments: start, end, name, and the body of a macro without arguments."""
    groups, found = _groups(text, ""), []
    for match in _DEFINITION.finditer(text):
        opening = text.find("{", match.end())
        between = text[match.end() : opening] if opening >= 0 else "#"
        if opening not in groups or "\n\n" in between:
            continue
        end = groups[opening] + 1
        if match["environment"]:  # what begins it, and what ends it
            second = text.find("{", end)
            end = groups[second] + 1 if second in groups and not text[end:second].strip() else end
        body = "" if between.strip() else text[opening + 1 : groups[opening]]
        found.append((match.start(), end, match["braced"] or match["bare"], body))
    return [each for number, each in enumerate(found) if not number or each[0] >= found[number - 1][1]]
