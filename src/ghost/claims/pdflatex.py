r"""pdflatex on somebody else's article: within bounds, and not stopped by what is missing.

TeX runs without shell escape in a scratch folder. It reads and writes there and in its own trees alone (openin_any and
openout_any are `p`), for at most SECONDS and MOST_BYTES. pdfTeX lets an article embed any file as a stream all the same
(\pdfobj), so the list of what it read is checked before the PDF is used. The scratch folder has links to the files of
the article's folder; one that leads out of it is not linked. Missing packages get an empty stand-in, a missing class is
replaced by `article`, missing figures by a grey box. All of that is listed.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from PIL import Image

from ghost.claims.tex import BEGIN, INPUT, Article, Edit
from ghost.errors import GhostError, one_line
from ghost.report.tex import available

SECONDS = 60  # of the processor in one run, twice that by the clock
MOST_BYTES = 200_000_000  # of a file that TeX writes
MOST_LOG = 20_000_000  # characters of a log that are read
MOST_FILES = 5000  # in the article's folder
MOST_RUNS = 4
USED = [
    ".tex",
    ".sty",
    ".cls",
    ".clo",
    ".bst",
    ".bib",
    ".bbl",
    ".bbx",
    ".cbx",
    ".def",
    ".cfg",
    ".fd",
    ".ldf",
    ".tikz",
    ".pgf",
    ".csv",
    ".dat",
    ".txt",
]
PICTURES = (".pdf", ".png", ".jpg", ".jpeg")
ABSENT = "ghost_absent"  # the picture in place of a missing figure
_PACKAGE = re.compile(r"\\(usepackage|RequirePackage|documentclass|LoadClass)\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}")
_GOODBYE = ("==>", "Emergency stop")  # behind the error itself
_GRAPHICS = re.compile(r"\\includegraphics\*?\s*(?:\[[^\]]*\]\s*)?\{([^{}]*)\}")
_ERROR = re.compile(
    r"^(?P<file>\./[^:\n]+|[^:\n]+\.\w+):(?P<line>\d+): (?P<said>.*(?:\n(?!l\.\d).*){0,2})", re.MULTILINE
)


@dataclass(frozen=True)
class Missing:
    """What the article needs and its folder lacks: the changes that do without, and a line for each."""

    edits: dict[str, list[Edit]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # stand-ins, by name
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Typeset:
    """What pdflatex made: the PDF, or nothing where TeX gave up."""

    pdf: Path
    errors: tuple[tuple[str, int, str], ...]  # file, line and what TeX said
    lines: tuple[str, ...]  # what TeX missed


def find_missing(article: Article, replaced: Mapping[str, list[tuple[int, int]]] | None = None) -> Missing:
    """Packages, files and figures that neither the article's folder nor TeX has; not those in replaced parts."""
    edits: dict[str, list[Edit]] = {name: [] for name in article.files}
    stand_ins, lines, figures = {}, [], []
    wanted: dict[str, str] = {}
    for name, file in article.files.items():
        for match in _PACKAGE.finditer(file.printed):
            suffix = "sty" if match[1].endswith("ackage") else "cls"
            wanted |= {f"{each.strip()}.{suffix}": name for each in match[2].split(",") if each.strip()}
        for match in INPUT.finditer(file.printed):
            given = match[1] or match[2]
            if not article.find(given) and not _known([f"{given}.tex", given]):
                edits[name].append(Edit(*match.span(), ""))
                lines.append(f"the file {given}")
        for match in _GRAPHICS.finditer(file.printed):
            gone = any(start < match.end() and match.start() < end for start, end in (replaced or {}).get(name, []))
            if not gone and not _picture(article, match[1].strip()):
                edits[name].append(Edit(*match.span(1), ABSENT))
                figures.append(match[1].strip() or "without a name")
    absent = [each for each in wanted if not (article.folder / each).is_file()]
    for each in sorted(set(absent) - _known(absent)):
        stem, suffix = each.rsplit(".", 1)
        if not re.fullmatch(r"[\w.+-]+", stem):
            raise GhostError(f"{article.main} asks for {each!r}, which is no name of a package")
        stand_ins[each] = f"\\ProvidesPackage{{{stem}}}\n" if suffix == "sty" else "\\LoadClass{article}\n"
        lines.append(f"the {'package' if suffix == 'sty' else 'class'} {stem}: its commands print nothing or an error")
    if figures:
        named = ", ".join(sorted(set(figures) - {"without a name"})[:8])
        lines.append(counted(len(figures), "figure") + (f" ({named})" if named else ", whose file names are empty"))
    return Missing(edits, stand_ins, tuple(lines))


def _known(names: list[str]) -> set[str]:
    """Those of some files that TeX itself has."""
    if not available():
        return set(names)
    names = [name for name in names if re.fullmatch(r"[\w.+/-]+", name) and not name.startswith("-")]
    command = [shutil.which("kpsewhich") or "kpsewhich", *names]
    # S603: kpsewhich with names that are plain words, without a shell
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/") if names else None  # noqa: S603
    found = {Path(line).name for line in done.stdout.splitlines()} if done else set()
    return {name for name in names if Path(name).name in found}


def _picture(article: Article, name: str) -> bool:
    if not name or "\\" in name:
        return bool(name)  # a name that TeX makes itself is left to TeX
    folders = [""]
    for file in article.files.values():
        for given in re.findall(r"\\graphicspath\s*\{((?:\{[^{}]*\}\s*)*)\}", file.printed):
            folders += re.findall(r"\{([^{}]*)\}", given)
    places = [article.folder / folder / f"{name}{suffix}" for folder in folders for suffix in ("", *PICTURES)]
    home = article.folder.resolve()
    here = any(place.is_file() and place.resolve().is_relative_to(home) for place in places)
    return here or bool(_known([name, *(f"{name}{suffix}" for suffix in PICTURES)]))


def lay_out(article: Article, texts: Mapping[str, str], folder: Path, *, copy: bool = False) -> None:
    """The article in another folder: its texts as given, and links to (or copies of) its other files."""
    folder.mkdir(parents=True, exist_ok=True)
    home, count = article.folder.resolve(), 0
    for path in sorted(article.folder.rglob("*")):
        relative = path.relative_to(article.folder)
        if path.suffix.lower() not in (*USED, *PICTURES) or any(part.startswith(".") for part in relative.parts):
            continue
        real = path.resolve()
        if not real.is_file() or not real.is_relative_to(home) or folder.resolve() in real.parents:
            continue
        count += 1
        if count > MOST_FILES:
            raise GhostError(f"{article.folder} has more than {MOST_FILES} files: put the article into its own folder")
        if relative.as_posix() not in texts:
            target = folder / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copyfile(real, target) if copy else target.symlink_to(real)
    for name, text in texts.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_text(text, encoding="utf-8")
    if any(ABSENT in text for text in texts.values()):
        Image.new("L", (800, 300), 232).save(folder / f"{ABSENT}.png")


def typeset(folder: Path, main: str) -> Typeset:
    """Run pdflatex until nothing changes any more, and bibtex where there is a bibliography."""
    stem = Path(main).stem
    (folder / f"{stem}.pdf").unlink(missing_ok=True)
    said, before = "", _state(folder, stem)
    for number in range(MOST_RUNS):
        command = ["pdflatex", "-recorder", "-no-shell-escape", "-interaction=nonstopmode", "-file-line-error", main]
        said = _run(folder, command, stem)
        if number == 0 and _bibliography(folder, stem):
            _run(folder, ["bibtex", stem], stem)
        after = _state(folder, stem)
        if after == before:
            break
        before = after
    pdf = folder / f"{stem}.pdf"
    found = [(Path(m["file"]).as_posix(), int(m["line"]), one_line(m["said"])) for m in _ERROR.finditer(said)]
    errors = tuple(each for each in found if not each[2].startswith(_GOODBYE))
    if not errors and not pdf.is_file():
        errors = ((main, 0, one_line(said[-300:])),)
    return Typeset(pdf, errors, tuple(_unresolved(said, folder, stem)))


def made_pdf(done: Typeset) -> Path:
    """The PDF, or one line with TeX's own last word."""
    if not done.pdf.is_file():
        file, line, said = done.errors[-1]
        raise GhostError(f"LaTeX made no PDF: {file}, line {line}: {said}")
    return done.pdf


def _state(folder: Path, stem: str) -> list[bytes]:
    """What a run leaves for the next one."""
    paths = [folder / f"{stem}{suffix}" for suffix in (".aux", ".toc", ".bbl", ".out")]
    return [path.read_bytes() if path.is_file() else b"" for path in paths]


def _bibliography(folder: Path, stem: str) -> bool:
    aux = folder / f"{stem}.aux"
    names = re.findall(r"\\bibdata\{([^{}]*)\}", aux.read_text(errors="replace")) if aux.is_file() else []
    return any((folder / f"{name.strip()}.bib").is_file() for given in names for name in given.split(","))


def _unresolved(said: str, folder: Path, stem: str) -> list[str]:
    """Citations and references that stayed open, as lines."""
    flat = said.replace("\n", " ")
    lines = []
    cited = len(set(re.findall(r"Citation [`'](.*?)' ", flat)))
    if cited:
        aux = (folder / f"{stem}.aux").read_text(errors="replace")
        named = ", ".join(f"{name}.bib" for name in re.findall(r"\\bibdata\{([^{}]*)\}", aux))
        lines.append(f"the bibliography{f' {named}' if named else ''}: {counted(cited, 'citation')} shown as [?]")
    open_references = set(re.findall(r"Reference [`'](.*?)' ", flat))
    if open_references:
        named = ", ".join(sorted(open_references)[:8])
        lines.append(f"{counted(len(open_references), 'reference')} without a label: {named}")
    return lines


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _limits(folder: Path) -> None:
    """In the process that becomes TeX. What it reads, it writes to its output: a pipe, which no article can rewrite."""
    (folder / f"pdflatex{os.getpid()}.fls").symlink_to("/dev/stdout")
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def _run(folder: Path, command: list[str], stem: str) -> str:
    """Run a program of TeX in the folder; its log."""
    if not available():
        raise GhostError("no LaTeX on this machine; docs/build.md says how to get it")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TEX", "BIB", "BST"))},
        **{"openin_any": "p", "openout_any": "p", "shell_escape": "f", "max_print_line": "1000"},
        **{"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1"},  # \today as well: no clock
    }
    stopped = GhostError(f"{command[0]} ran for more than {SECONDS} s on {stem}.tex and was stopped")
    try:
        # S603: TeX with options of ours, without a shell and without shell escape
        done = subprocess.run(  # noqa: S603
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=2 * SECONDS,
            preexec_fn=partial(_limits, folder),
        )
    except subprocess.TimeoutExpired:
        raise stopped from None
    if done.returncode == -signal.SIGXCPU:
        raise stopped
    if "-recorder" in command:
        _check_read(done.stdout.decode(errors="replace"), folder, stem)
    log = folder / f"{stem}.log"
    if not log.is_file():
        return ""
    with log.open(errors="replace") as handle:
        return handle.read(MOST_LOG)


def _check_read(said: str, folder: Path, stem: str) -> None:
    """Refuse an article that made TeX read a file which is neither in its folder nor TeX's own."""
    inputs = re.findall(r"INPUT (.*)", said)
    if not inputs:
        raise GhostError(f"pdflatex does not say which files it read for {stem}.tex, so its PDF is not used")
    for given in inputs:
        path = Path(os.path.normpath(folder / given))
        if not any(path.is_relative_to(place) for place in (folder, folder.resolve(), *_trees())):
            raise GhostError(f"{stem}.tex has TeX read {one_line(given)}, which is outside of the article's folder")


@cache
def _trees() -> tuple[Path, ...]:
    """The folders of TeX's own files."""
    command = [shutil.which("kpsewhich") or "kpsewhich", "--expand-path=$TEXMF:$TEXMFCNF"]
    # S603: kpsewhich with options of ours, without a shell
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")  # noqa: S603
    return tuple(Path(os.path.normpath(place)) for place in done.stdout.strip().split(os.pathsep) if place)


def around_document(article: Article, before: str, after: str, end: str) -> list[Edit]:
    r"""Edits of the main file: text before and after \begin{document}, and before \end{document}."""
    printed = article.files[""].printed
    first, last = printed.find(BEGIN), printed.rfind(r"\end{document}")
    if first < 0 or last < 0:
        raise GhostError(f"{article.main} is not a whole article: it has no {BEGIN}")
    return [Edit(first, first + len(BEGIN), f"{before}{BEGIN}{after}"), Edit(last, last, end)]
