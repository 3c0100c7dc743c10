r"""Every number in the article's text: `python -m ghost.claims.article --source article.tex --ledger paper/claims.yaml
--out paper/article_numbers.csv`.

We may not copy the article. We keep only this list and the sha256 of the text. So every checkout can test that no
number is missing from the ledger; where the article is at hand, the list itself is tested too.

A number is a run of digits with its separators, or a word from two to twenty. The list leaves out what a reader of the
PDF does not see as a number: comments, labels, citations, lengths and column specifications.
"""

import csv
import hashlib
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import tyro

from ghost.claims.ledger import NonResult, read_ledger
from ghost.errors import GhostError, exit_on_error
from ghost.files import atomic, read_lines

WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twenty", "twice")
NUMBER = re.compile(
    r"(?:\d+(?:\.\d+)? \\times )?10\^\{-?\d+\}"  # a power of ten is one number
    r"|\d+(?:(?:\{,\}|,)\d{3})*(?:\.\d+)?|\.\d+"
    rf"|\b(?:{'|'.join(WORDS)})\b",
    re.IGNORECASE,
)
UNSEEN = (
    re.compile(r"(?<!\\)%.*"),
    re.compile(
        r"\\(?:label|ref|eqref|cite|includegraphics|bibliography|bibliographystyle|setlength|usepackage|resizebox|begin|"
        r"end|multicolumn|IEEEPARstart)\*?(?:\[[^\]]*\])?(?:\{[^{}]*\}){1,2}"
    ),
)
CONTEXT = 14  # characters either side


@dataclass(frozen=True)
class Printed:
    """One number of the article."""

    line: int
    number: int  # counted from 1 on its line
    place: str  # label of the table, figure or section
    printed: str
    before: str
    after: str
    non_result: str  # the kind, or empty for a claim

    @property
    def key(self) -> str:
        return f"{self.line}.{self.number}"


def read_article(text: str, kinds: Sequence[NonResult]) -> list[Printed]:
    """The numbers of the article, in reading order."""
    lines = text.splitlines()
    found: list[Printed] = []
    for number, (line, place) in enumerate(zip(lines, _places(lines), strict=True), 1):
        if not place:
            continue
        plain = line
        for pattern in UNSEEN:
            plain = pattern.sub(lambda match: " " * len(match[0]), plain)
        spans = [
            (match.span(), kind.name)
            for kind in kinds
            if re.fullmatch(kind.at or ".*", place)
            for match in re.finditer(kind.pattern, plain)
        ]
        for count, match in enumerate(NUMBER.finditer(plain), 1):
            start, end = match.span()
            excused = next((name for (first, last), name in spans if first <= start and end <= last), "")
            before, after = plain[max(0, start - CONTEXT) : start], plain[end : end + CONTEXT]
            found.append(Printed(number, count, place, match[0], before.lstrip(), after.rstrip(), excused))
    return found


def _places(lines: list[str]) -> list[str]:
    """The label that each line belongs to; empty before the abstract and after the last section."""
    places: list[str] = []
    section, inside, ended = "", "", False
    for number, line in enumerate(lines):
        if line.startswith(r"\begin{abstract}"):
            section = "abstract"
        elif line.startswith((r"\section", r"\subsection")):
            labelled = re.match(r"\\label\{([^}]*)\}", lines[number + 1] if number + 1 < len(lines) else "")
            section = labelled[1] if labelled else section if line.startswith(r"\subsection") else "unlabelled"
        if re.match(r"\\begin\{(figure|table)\*?\}", line):
            labelled = re.search(r"\\label\{([^}]*)\}", "\n".join(lines[number : number + 60]))
            inside = labelled[1] if labelled else "unlabelled"
        ended = ended or line.startswith(r"\bibliographystyle")
        places.append("" if ended else inside or section)
        if re.match(r"\\end\{(figure|table)\*?\}", line):
            inside = ""
    return places


def write_numbers(source: Path, kinds: Sequence[NonResult], out: Path) -> None:
    """Write the list, with the hash of its source in the first line."""
    content = source.read_bytes()
    with atomic(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as handle:
        handle.write(f"# sha256 of the article's source: {hashlib.sha256(content).hexdigest()}\n")
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(field.name for field in fields(Printed))
        writer.writerows(map(astuple, read_article(content.decode(), kinds)))


def read_numbers(path: Path) -> list[Printed]:
    """Read the list back."""
    head, *lines = read_lines(path) or [""]
    if not head.startswith("# sha256"):
        raise GhostError(f"{path} is not a list of the article's numbers")
    try:
        return [
            Printed(**{**line, "line": int(line["line"]), "number": int(line["number"])})  # type: ignore[arg-type]
            for line in csv.DictReader(f"{line}\n" for line in lines)
        ]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise GhostError(f"{path} has a line that is no number of the article: {error}") from None


def main(source: Path, ledger: Path, out: Path) -> None:
    """Read the article again.

    Args:
        source: the article's LaTeX.
        ledger: the ledger, which lists the kinds of numbers that are not results.
        out: the list to write.
    """
    write_numbers(source, read_ledger(ledger).non_results, out)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(main))
