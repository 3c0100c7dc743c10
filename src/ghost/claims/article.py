r"""Every number in the article's text: `python -m ghost.claims.article --source article.tex --ledger paper/claims.yaml
--out paper/article_numbers.csv`.

We may not copy the article. We keep only this list and the sha256 of the text. So every checkout can test that no
number is missing from the ledger; where the article is at hand, the list itself is tested too.

A number is a run of digits with its separators, a word from two to twenty, or a macro that stands for one number. The
list leaves out what a reader of the PDF does not see as a number: comments, labels, citations, lengths, column
specifications, drawings, verbatim text and definitions.
"""

import csv
import hashlib
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path

import tyro

from ghost.claims.ledger import NonResult, read_ledger
from ghost.claims.tabular import tabulars
from ghost.claims.tex import Article, File, blank
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
    re.compile(
        r"\\(?:label|ref|eqref|pageref|[cC]ref|autoref|nameref|cite[a-z]*|includegraphics|bibliography|"
        r"bibliographystyle|input|include|subfile|graphicspath|setlength|addtolength|setcounter|addtocounter|usepackage|"
        r"resizebox|begin|end|multicolumn|multirow|cmidrule|cline|[hv]space|vskip|hskip|rule|scalebox|rotatebox|fontsize|"
        r"definecolor|color|textcolor|hypersetup|sisetup|pagestyle|thispagestyle|IEEEPARstart)(?![A-Za-z@])\*?"
        r"(?:\([a-z]*\))?(?:\[[^\]]*\]){0,2}(?:\{[^{}]*\}){0,2}"
    ),
    re.compile(r"\\\\\*?\[[^\]]*\]|\\write\s*-?\d+"),  # \\[2pt], \write18
    re.compile(r"\\begin\{(tikzpicture|axis|thebibliography)\}.*?\\end\{\1\}", re.DOTALL),
)
_AROUND = (  # what may stand around the number in a macro that stands for it
    r"(?:[\s${}+\-~<>]|\\(?:ensuremath|textbf|mathbf|mathrm|text|xspace|num|approx|sim)(?![A-Za-z])|\\[,%;!]"
    r"|(?<![A-Za-z\\])[A-Za-z]{1,4}(?![A-Za-z]))*"
)
NUMBER_MACRO = re.compile(rf"{_AROUND}(?P<number>\d+(?:(?:\{{,\}}|,)\d{{3}})*(?:\.\d+)?|\.\d+){_AROUND}")
CONTEXT = 14  # characters either side


@dataclass(frozen=True)
class Printed:
    """One number of the article."""

    line: str  # 45, or intro.tex:45 in a file that the article inputs
    number: int  # counted from 1 on its line
    place: str  # label of the table, figure or section
    printed: str
    before: str
    after: str
    non_result: str  # the kind, or empty for a claim

    @property
    def key(self) -> str:
        return f"{self.line}.{self.number}"


@dataclass(frozen=True)
class Located:
    """A number and where it stands in its file, as offsets."""

    printed: Printed
    file: str
    start: int
    end: int


def keys(at: str) -> list[str]:
    """The numbers of a place in the ledger: 477.2-3 are the second and the third one of line 477."""
    line, _, span = at.rpartition(".")
    found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", span)
    if not line or not found or int(found[2] or found[1]) - int(found[1]) not in range(20):
        raise GhostError(
            f"{at!r} is no place of a number: line.number or line.first-last, such as 45.2 or intro.tex:8.1-2"
        )
    return [f"{line}.{number}" for number in range(int(found[1]), int(found[2] or found[1]) + 1)]


def value_of(printed: str) -> float:
    """The value of a number in the article's text, as LaTeX or in words."""
    text = printed.replace("{,}", "").replace(",", "").lower()
    if text in WORDS:
        return {"twenty": 20.0, "twice": 2.0}.get(text, WORDS.index(text) + 2.0)
    power = re.fullmatch(r"(?:([\d.]+) \\times )?10\^\{(-?\d{1,3})\}", text)
    return float(f"{power[1] or 1}e{power[2]}") if power else float(text)


def read_article(article: Article, kinds: Sequence[NonResult]) -> list[Located]:
    """The numbers of the article, in reading order."""
    macros = {name: made["number"] for name, body in article.macros.items() if (made := NUMBER_MACRO.fullmatch(body))}
    number = _with(tuple(macros))
    seen = {name: _seen(file) for name, file in article.files.items()}
    found: list[Located] = []
    for line, place in zip(article.lines, _places(article), strict=True):
        if not place:
            continue
        plain = seen[line.file][line.start : line.start + len(line.text)]
        spans = [
            (match.span(), kind.name)
            for kind in kinds
            if re.fullmatch(kind.at or ".*", place)
            for match in re.finditer(kind.pattern, plain)
        ]
        for count, match in enumerate(number.finditer(plain), 1):
            start, end = match.span()
            excused = next((name for (first, last), name in spans if first <= start and end <= last), "")
            before, after = plain[max(0, start - CONTEXT) : start].lstrip(), plain[end : end + CONTEXT].rstrip()
            printed = Printed(line.name, count, place, macros.get(match[0], match[0]), before, after, excused)
            found.append(Located(printed, line.file, line.start + start, line.start + end))
    return found


@cache
def _with(macros: tuple[str, ...]) -> re.Pattern[str]:
    """A number, or a macro that stands for one."""
    names = "|".join(re.escape(name) for name in sorted(macros, key=len, reverse=True))
    return re.compile(rf"{NUMBER.pattern}|(?:{names})(?![A-Za-z@])", re.IGNORECASE) if macros else NUMBER


def _seen(file: File) -> str:
    """The text of a file with blanks for what a reader does not see as a number."""
    text = file.printed
    for table in tabulars(file):
        text = blank(text, *table.spec)
    for pattern in UNSEEN:
        text = pattern.sub(lambda match: blank(match[0], 0, len(match[0])), text)
    return text


def _places(article: Article) -> list[str]:
    """The label that each line belongs to; empty before the title or the abstract, and in the preamble."""
    printed = {name: file.printed for name, file in article.files.items()}
    texts = [printed[line.file][line.start : line.start + len(line.text)] for line in article.lines]
    places: list[str] = []
    section, inside = "", ""
    for number, text in enumerate(texts):
        head = re.search(r"\\(?:(?P<section>section|chapter)|subsection)\*?\s*[\[{]", text)
        if re.search(r"\\begin\{abstract\}", text):
            section = "abstract"
        elif re.search(r"\\maketitle(?![A-Za-z])", text):
            section = section or "unlabelled"
        elif head:
            labelled = _label(text[head.end() :]) or _label(texts[number + 1] if number + 1 < len(texts) else "", "^")
            section = labelled or ("unlabelled" if head["section"] else section)
        opened = re.search(r"\\begin\{((?:wrap|side|SC)?(?:figure|table))\*?\}", text)
        if opened:
            inside = _label(_until_end(texts[number:], opened[1])) or "unlabelled"
        places.append(inside or section)
        if re.search(r"\\end\{(?:wrap|side|SC)?(?:figure|table)\*?\}", text):
            inside = ""
        if re.search(r"\\(?:end\{abstract\}|appendix|appendices)(?![A-Za-z])", text) and section == "abstract":
            section = "unlabelled"
    return places


def _until_end(texts: Sequence[str], environment: str) -> str:
    last = next((n for n, text in enumerate(texts) if re.search(rf"\\end\{{{environment}\*?\}}", text)), 0)
    return "\n".join(texts[: last + 1])


def _label(text: str, start: str = "") -> str:
    found = re.search(rf"{start}\s*\\label\s*\{{([^{{}}]*)\}}", text)
    return found[1] if found else ""


def write_numbers(source: Path, kinds: Sequence[NonResult], out: Path) -> None:
    """Write the list, with the hash of its source in the first line."""
    article = Article(source)
    content = b"".join((article.folder / (name or article.main)).read_bytes() for name in article.files)
    with atomic(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as handle:
        handle.write(f"# sha256 of the article's source: {hashlib.sha256(content).hexdigest()}\n")
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(field.name for field in fields(Printed))
        writer.writerows(astuple(found.printed) for found in read_article(article, kinds))


def read_numbers(path: Path) -> list[Printed]:
    """Read the list back."""
    head, *lines = read_lines(path) or [""]
    if not head.startswith("# sha256"):
        raise GhostError(f"{path} is not a list of the article's numbers")
    try:
        return [
            Printed(**{**line, "number": int(line["number"])})  # type: ignore[arg-type]
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
