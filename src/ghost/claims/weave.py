"""`ghost weave`: the article with the numbers and figures of a build, in the article's own layout.

A table keeps its columns, rules and words; each number that the ledger binds to a cell becomes ours, and the best of a
column is bold again if the article had a best in bold. A table without such numbers is replaced by the build's table of
the same label. A figure of the same label takes the place of the article's. Numbers that stay as printed are grey, and
listed with the reason. The article's own files are never changed.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ghost.claims.annotate import check_places
from ghost.claims.article import Located, keys, read_article
from ghost.claims.ledger import Claim, read_ledger
from ghost.claims.marks import reads_numbers
from ghost.claims.pdflatex import around_document, counted, find_missing, lay_out, made_pdf, typeset
from ghost.claims.report import judge
from ghost.claims.substitution import Ours, in_latex, is_magnitude, our_value, replaced_span, stars_after, stars_of
from ghost.claims.tabular import Tabular, tabulars
from ghost.claims.tex import Article, Edit, File
from ghost.errors import GhostError
from ghost.files import atomic, write_text
from ghost.report.cells import read_cells
from ghost.report.escaping import escape
from ghost.steps.macros import stamp
from ghost.study.builds import Config

FIGURES, LIST = "ghost_figures", "woven.txt"  # of the woven folder
_FLOAT = re.compile(r"\\begin\{((?:wrap|side|SC)?(figure|table)\*?)\}.*?\\end\{\1\}", re.DOTALL)
_LABEL = re.compile(r"\\label\s*\{([^{}]*)\}")
_GRAPHICS = re.compile(r"\\includegraphics\*?\s*(?:\[([^\]]*)\]\s*)?\{([^{}]*)\}")
_FITTED = re.compile(r"\\(?:resizebox|scalebox|adjustbox|rotatebox)\*?\s*(?:\{[^{}]*\}){1,2}$")
_BOLD = re.compile(r"\\(?:textbf|mathbf|boldsymbol|bm)\s*$")
_HEAD = r"""\makeatletter
\protected\def\ghostkept#1{\pdfcolorstack 0 push{.55 g .55 G}#1\pdfcolorstack 0 pop\relax}%
\pdftrailerid{}\pdfsuppressptexinfo=-1
\ifdefined\AddToHook\AddToHook{shipout/foreground}{\put(.5in,-\dimexpr\paperheight-.25in\relax){%
  \parbox[b]{\dimexpr\paperwidth-1in\relax}{\normalfont\fontsize{5.5}{6}\selectfont GHOSTSTAMP}}}\fi
\newbox\ghost@wide
\def\ghostfit{\leavevmode\setbox\ghost@wide\hbox\bgroup}
\def\endghostfit{\egroup\ifdim\wd\ghost@wide>\linewidth\resizebox{\linewidth}{!}{\box\ghost@wide}\else\box\ghost@wide\fi}
\makeatother
""".replace("\n", "%\n")


@dataclass(frozen=True)
class Float:
    """A figure or table environment."""

    kind: str
    label: str
    file: str
    start: int
    end: int


@dataclass
class Woven:
    """The edits so far, and what is to be said of them."""

    edits: dict[str, list[Edit]] = field(default_factory=dict)
    figures: dict[str, Path] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    numbers: int = 0

    def edit(self, file: str, start: int, end: int, text: str) -> None:
        self.edits.setdefault(file, []).append(Edit(start, end, text))


@dataclass(frozen=True)
class Place:
    """A place of a claim in the article, with its numbers there and our value for it."""

    claim: Claim
    at: str
    found: list[Located]
    ours: Ours | str

    @property
    def printed(self) -> str:
        return self.claim.at[self.at]


def weave(config: Config, source: Path, ledger_path: Path, out: Path, numbers: bool) -> str:
    """Write the woven article into a folder, and say what was replaced and what was not."""
    article, ledger = Article(source), read_ledger(ledger_path)
    if out.resolve() == article.folder.resolve():
        raise GhostError(f"{out} is the article's own folder, which is never changed: give another one")
    if out.exists() and not (out.is_dir() and ((out / LIST).is_file() or not any(out.iterdir()))):
        raise GhostError(f"{out} is there already, and not from ghost weave: give another folder, or an empty one")
    cells = read_cells(config.data / "cells.jsonl")
    located = {found.printed.key: found for found in read_article(article, ledger.non_results)}
    lost = check_places(ledger, located, source)
    places = [
        Place(claim, at, [located[key] for key in keys(at)], our_value(claim, _cell(claim, cells)))
        for claim in ledger.claims.values()
        for at in claim.at
        if not any(key in lost for key in keys(at))
    ]
    woven = Woven(left=[f"{key}: {reason}" for key, reason in lost.items()])
    inside: set[str] = set()
    for float_ in _floats(article):
        inside |= _table(article, float_, places, config, woven) if float_.kind == "table" else set()
        if float_.kind == "figure":
            _figure(article, float_, config, woven)
    if numbers:
        _inline(article, [place for place in places if place.at not in inside], woven)
    woven.sentences += [
        f"a sentence that does not hold with these numbers: {verdict.published}"
        for verdict in judge(config, ledger)
        if verdict.claim.startswith("relation:") and verdict.ours == "does not hold"
    ]
    return "\n".join(_write(article, woven, out, stamp(cells, config.scale), config.scale))


def _cell(claim: Claim, cells: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((cells[identity] for identity in claim.cell if identity in cells), None)


def _floats(article: Article) -> Iterator[Float]:
    for name, file in article.files.items():
        for match in _FLOAT.finditer(file.printed):
            label = _LABEL.search(match[0])
            yield Float(match[2], label[1] if label else "", name, *match.span())


def _table(article: Article, float_: Float, places: list[Place], config: Config, woven: Woven) -> set[str]:
    """Put our numbers into the tabulars of a table. Returns the places that lie in it."""
    file = article.files[float_.file]
    tables = tabulars(file, float_.start, float_.end)
    name = float_.label or f"the table at {file.at(float_.start)}"
    within = [
        (place, table)
        for place in places
        for table in tables
        if place.found[0].file == float_.file and table.start <= place.found[0].start < table.end
    ]
    ours = [(place, table) for place, table in within if isinstance(place.ours, Ours)]
    if not ours:
        _whole_table(article, float_, tables[0] if tables else None, config, woven)
        return {place.at for place, _ in within}
    best = {place.at for table in tables for place in _best(file, table, within, woven, name)}
    starred = any(stars_after(file.text, place.found[-1].end) > place.found[-1].end for place, _ in within)
    replaced = 0
    for place, table in within:
        if isinstance(place.ours, str):
            if place.claim.study:  # a setting, which the study has as well
                continue
            woven.left.append(f"{name}: {place.printed} in line {place.found[0].printed.line}: {place.ours}")
            _keep(file, [table], place, woven)
        elif _replace(file, [table], place, woven, bold=place.at in best, starred=starred):
            replaced += 1
    for table in tables:
        if table in [its for _, its in ours]:
            _fit(file, float_.file, table, woven)
    woven.done.append(f"{name}: {replaced} of {len(within)} numbers are ours")
    woven.numbers += replaced
    return {place.at for place, _ in within}


def _fit(file: File, name: str, table: Tabular, woven: Woven) -> None:
    """A table that our numbers make wider than its column is made narrower, unless the article already scales it."""
    around = [opening for opening, closing in file.groups.items() if opening < table.start and table.end <= closing]
    if not any(_FITTED.search(file.printed, max(0, opening - 60), opening) for opening in around):
        woven.edit(name, table.start, table.start, r"\ghostfit ")
        woven.edit(name, table.end, table.end, r"\endghostfit{}")


def _whole_table(article: Article, float_: Float, table: Tabular | None, config: Config, woven: Woven) -> None:
    """The build's own table of the same label, in the article's columns if it has as many."""
    path, name = config.generated / f"{float_.label.replace(':', '_')}.tex", float_.label or "a table without a label"
    if table is None:
        woven.left.append(f"{name}: it has no tabular")
    elif not float_.label or not path.is_file():
        woven.left.append(f"{name}: the ledger binds none of its numbers, and the build has no table of this label")
    else:
        made = File(path.name, path.read_text(encoding="utf-8"))
        theirs = tabulars(made)[0]
        body = made.text[theirs.start : theirs.end]
        if len(theirs.columns) == len(table.columns):
            spec = article.files[float_.file].text[slice(*table.spec)]
            body = made.text[theirs.start : theirs.spec[0]] + spec + made.text[theirs.spec[1] : theirs.end]
        woven.edit(
            float_.file,
            table.start,
            table.end,
            rf"\ghostfit\providecommand{{\ghostlink}}[2]{{#2}}{body}\endghostfit{{}}",
        )
        woven.done.append(f"{name}: the whole table is the build's")


def _best(file: File, table: Tabular, within: list[tuple[Place, Tabular]], woven: Woven, name: str) -> list[Place]:
    """The places to set in bold: the best of each column in which the article has its best in bold."""
    columns: dict[int, list[Place]] = {}
    for place, its in within:
        if its is table and (found := table.entry(place.found[0].start)):
            columns.setdefault(found[1].column, []).append(place)
    chosen: list[Place] = []
    for places in columns.values():
        bold = [(place, group) for place in places if (group := _bold(file, place))]
        if not bold:
            continue
        printed, values = ([p.claim.number.value for p in some] for some in (places, [p for p, _ in bold]))
        direction = max if set(values) == {max(printed)} else min if set(values) == {min(printed)} else None
        mine = [(place, place.ours.value) for place in places if isinstance(place.ours, Ours)]
        if direction is None:
            woven.left.append(f"{name}: the bold {bold[0][0].printed} is not the best of its column in the article")
            continue
        if len(mine) == len(places):
            top = direction(value for _, value in mine)
            chosen += [place for place, value in mine if value == top]
        else:
            woven.left.append(f"{name}: the best of a column in bold: some of its numbers are not ours")
        for place, (start, opening, closing) in bold:
            if isinstance(place.ours, Ours):
                woven.edit(place.found[0].file, start, opening + 1, "{")
                woven.edit(place.found[0].file, closing, closing + 1, "}")
    return chosen


def _bold(file: File, place: Place) -> tuple[int, int, int] | None:
    """The command that sets a number in bold: its start, and the braces of its argument."""
    for opening, closing in file.groups.items():
        if opening < place.found[0].start and place.found[-1].end <= closing:
            command = _BOLD.search(file.printed, max(0, opening - 20), opening)
            if command:
                return command.start(), opening, closing
    return None


def _replace(
    file: File, tables: list[Tabular], place: Place, woven: Woven, *, bold: bool = False, starred: bool = False
) -> bool:
    """Put our value in the place of a printed one; False if its form has no room for it.

    Stars of significance are those of our p values, where the table has such stars.
    """
    if isinstance(place.ours, str):
        return False
    if any(reads_numbers(file, tables, found) for found in place.found):
        for found, part in zip(place.found, place.ours.parts, strict=False):
            woven.edit(found.file, found.start, found.end, part)
        return True
    span = replaced_span(file.text, place.found, place.printed)
    if span is None:
        woven.left.append(
            f"{place.printed} in line {place.found[0].printed.line}: what stands between its numbers is not whole"
        )
        return False
    stars = stars_of(place.claim, place.ours) if starred else ""
    ours = place.ours.magnitude if is_magnitude(file.text, span[0]) else place.ours
    text = in_latex(ours, place.printed, bold=bold, stars=stars, joint=span[2])
    woven.edit(place.found[0].file, span[0], stars_after(file.text, span[1]), text)
    return True


def _keep(file: File, tables: list[Tabular], place: Place, woven: Woven) -> None:
    """Set a number that stays as printed in grey."""
    for found in place.found:
        if not reads_numbers(file, tables, found):
            woven.edit(found.file, found.start, found.end, rf"{{\ghostkept{{{file.text[found.start : found.end]}}}}}")


def _inline(article: Article, places: list[Place], woven: Woven) -> None:
    """Bind the numbers of the text to cells."""
    before, bound = len(woven.left), 0
    for place in places:
        file = article.files[place.found[0].file]
        if isinstance(place.ours, Ours):
            bound += _replace(file, tabulars(file), place, woven)
        elif place.claim.cell:
            woven.left.append(f"{place.printed} in line {place.found[0].printed.line}: {place.ours}")
            _keep(file, tabulars(file), place, woven)
    woven.numbers += bound
    woven.done.append(
        f"the text: {bound} of {len(places)} numbers are ours, {len(woven.left) - before} of the others have a cell"
    )


def _figure(article: Article, float_: Float, config: Config, woven: Woven) -> None:
    """The build's figure of the same label."""
    file, stem = article.files[float_.file], float_.label.partition(":")[2] or float_.label
    path = config.figures / f"{stem}.pdf"
    name = float_.label or f"the figure at {file.at(float_.start)}"
    pictures = list(_GRAPHICS.finditer(file.printed, float_.start, float_.end))
    around = [
        t
        for t in tabulars(file, float_.start, float_.end)
        if pictures and t.start < pictures[0].start() and pictures[-1].end() < t.end
    ]
    if not re.fullmatch(r"[\w.+-]+", stem) or not path.is_file():
        woven.left.append(f"{name}: the build has no figure of this label")
    elif not pictures:
        woven.left.append(f"{name}: it has no \\includegraphics")
    elif len(pictures) > 1 and not around:
        woven.left.append(f"{name}: it has {len(pictures)} pictures with texts of their own, the build has one picture")
    else:
        wanted = f"{FIGURES}/{stem}.pdf"
        start, end = (around[0].start, around[0].end) if len(pictures) > 1 else pictures[0].span()
        kept = re.findall(r"(?:width|height|scale)\s*=\s*[^,\]]+|keepaspectratio", pictures[0][1] or "")
        options = r"width=\linewidth" if len(pictures) > 1 else ",".join(kept)
        woven.edit(float_.file, start, end, rf"\includegraphics[{options}]{{{wanted}}}")
        woven.figures[wanted] = path
        woven.done.append(f"{name}: {path}")


def _write(article: Article, woven: Woven, out: Path, said: str, scale: str) -> list[str]:
    """The folder, its PDF and the list of what was done."""
    missing = find_missing(article, {name: [(e.start, e.end) for e in more] for name, more in woven.edits.items()})
    note = escape(f"Numbers and figures of the build {scale}, woven into the article. {said}".replace('"', "''"))
    head = _HEAD.replace("GHOSTSTAMP", note)
    if r"\toprule" in str(woven.edits) and "booktabs" not in article.files[""].printed:
        head = rf"\usepackage{{booktabs}}{head}"
    if (woven.figures or "ghostfit" in str(woven.edits)) and "graphicx" not in "".join(
        file.printed for file in article.files.values()
    ):
        head = rf"\usepackage{{graphicx}}{head}"
    edits = {**woven.edits, "": [*woven.edits.get("", []), *around_document(article, f"{head}", "", "")]}
    write_text(out / LIST, "ghost weave has not ended here\n")  # the folder is ours from now on
    lay_out(article, article.edited(edits), out, copy=True)
    for name, path in woven.figures.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, out / name)
    edits = {name: [*edits.get(name, []), *missing.edits[name]] for name in article.files}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lay_out(article, {**article.edited(edits), **missing.files}, folder)
        for name, path in woven.figures.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        done = typeset(folder, article.main)
        pdf = (out / article.main).with_suffix(".pdf")
        with atomic(pdf) as temporary:
            shutil.copyfile(made_pdf(done), temporary)
    what = f"{counted(woven.numbers, 'number')} and {counted(len(woven.figures), 'figure')}"
    lines = [f"{pdf}: {what} of the build {scale}"]
    lines += [f"missing: {line}" for line in (*missing.lines, *done.lines)]
    lines += [f"TeX, {file}, line {line}: {text}" for file, line, text in done.errors[:5]]
    lines += [*woven.done, *(f"not replaced: {line}" for line in woven.left), *woven.sentences]
    write_text(out / LIST, "\n".join([*lines, ""]))
    return lines
