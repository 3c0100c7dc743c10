"""The report: cells, LaTeX and the audit page, each made anew from the runs and compared with what is there.

cells      every cell, computed anew from the measured values, is the one in cells.jsonl and in its figure's or
           table's own file; so are results.csv and the metrics
text       numbers.tex, the tables and the appendices are what the cells give; no number is typed
page       the audit page is what cells and records give
"""

import tempfile
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ghost.audit.checks import Problem, attempt
from ghost.audit.checks.runs import Runs
from ghost.audit.page import render
from ghost.errors import GhostError
from ghost.files import canonical
from ghost.report.cells import cell_lines, read_cells
from ghost.report.headlines import metric_texts
from ghost.report.lint import lint
from ghost.report.over_cells import OVER_CELLS, over_cells
from ghost.report.tex import available
from ghost.steps.collect import results_text
from ghost.steps.macros import macros
from ghost.steps.summarize import correct, summarize_cell
from ghost.steps.tabulate import tabulate
from ghost.study.builds import Config
from ghost.study.declarations import Artefact

Cell = dict[str, Any]


@dataclass
class Report:
    """The report of a build, as its runs give it."""

    runs: Runs
    cells: dict[str, Cell] = field(default_factory=dict)  # computed; where that fails, as stored

    @property
    def config(self) -> Config:
        return self.runs.config

    @property
    def artefacts(self) -> list[Artefact]:
        return self.config.buildable(tex=available())

    def check_cells(self) -> Iterator[Problem]:
        """All problems of the cells. It fills `cells`."""
        path = self.config.data / "cells.jsonl"
        stored = yield from _read(path)
        computed: dict[str, Cell] = {}
        for artefact in self.artefacts:
            yield from self._artefact(artefact, stored, computed)
        for identity in sorted((stored or {}).keys() - computed.keys()):
            yield Problem("cells", str(path), f"{identity} is not in the study", path)
        self.cells = dict(sorted(computed.items()))
        yield from attempt("cells", self.config.data / "results.csv", self._tables)

    def _artefact(
        self, artefact: Artefact, stored: Mapping[str, Cell] | None, computed: dict[str, Cell]
    ) -> Iterator[Problem]:
        """The cells of one figure or table: computed, in cells.jsonl, and in its own file."""
        together, own = self.config.data / "cells.jsonl", self.config.data / "cells" / f"{artefact.stage}.jsonl"
        declared, made = artefact.declaration(), []
        for cell in (cell for cell in declared if cell["estimator"] not in OVER_CELLS):
            try:
                sides = self.runs.of(cell["experiment"]), self.runs.of(cell["against"])
                made.append(summarize_cell(cell, *sides))
            except (GhostError, OSError) as error:
                yield Problem("cells", cell["id"], str(error))
                if stored and cell["id"] in stored:
                    computed[cell["id"]] = stored[cell["id"]]
        correct(made, {cell["id"]: cell["digits"] for cell in declared})
        try:
            made += over_cells(declared, made)
        except GhostError as error:
            yield Problem("cells", artefact.id, str(error))
        computed |= {cell["id"]: cell for cell in made}
        theirs = yield from _read(own)
        for path, there in ((together, stored), (own, theirs)):
            if there is None:
                continue
            lacking = [cell["id"] for cell in made if cell["id"] not in there]
            if lacking:
                says = f"lacks {len(lacking)} cells of {artefact.id}, {lacking[0]} among them"
                yield Problem("cells", str(path), says, path)
            for cell in made:
                if cell["id"] in there and canonical(cell) != canonical(there[cell["id"]]):
                    yield Problem("cells", str(path), _unlike(there[cell["id"]], cell), path)

    def _tables(self) -> Iterator[Problem]:
        runs = [run for experiment in self.config.experiments for run in self.runs.of(experiment.name)]
        metrics = {
            self.config.data / "metrics" / name: text
            for name, text in metric_texts(self.cells, self.config.artefacts).items()
        }
        yield from self._written({**metrics, self.config.data / "results.csv": results_text(runs)})

    def check_text(self) -> Iterator[Problem]:
        for complaint in lint(self.config.text, self.cells):
            yield Problem("text", complaint.split(": ")[0], complaint.partition(": ")[2])
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder)
            cells = made / "cells.jsonl"
            cells.write_text(cell_lines(self.cells.values()), encoding="utf-8")
            macros(cells, self.config.scale, made, self.config.page, tuple(a.id for a in self.artefacts))
            for artefact in self.artefacts:
                if artefact.step == "tabulate":
                    tabulate(artefact.id, cells, made / f"{artefact.stage}.tex", self.config.scale)
            texts = {self.config.generated / path.name: path.read_text("utf-8") for path in sorted(made.glob("*.tex"))}
        yield from self._written(texts, "text")

    def check_page(self) -> Iterator[Problem]:
        runs = [run for experiment in self.config.experiments for run in self.runs.of(experiment.name)]
        figures = [self.config.figures / f"{a.label}.png" for a in self.artefacts if a.step in ("plot", "draw")]
        path = self.config.data / "audit.html"
        # a missing page is found also where a spoilt record leaves nothing to compare it with
        page = render(self.cells, runs, self.config.scale, figures) if path.exists() else ""
        yield from self._written({path: page}, "page")

    def _written(self, texts: Mapping[Path, str], kind: str = "cells") -> Iterator[Problem]:
        """Files that are not what they should be."""
        for path, text in texts.items():
            if not path.exists():
                yield Problem(kind, str(path), "is missing", path)
            elif path.read_bytes() != text.encode():
                there = path.read_text(encoding="utf-8", errors="replace")
                yield Problem(kind, str(path), f"was edited, or is stale: {_first_difference(there, text)}", path)


def _read(path: Path) -> Generator[Problem, None, dict[str, Cell] | None]:
    """The cells of a file; None where it cannot be read, which is a problem."""
    try:
        return read_cells(path)
    except (GhostError, OSError) as error:
        yield Problem("cells", str(path), str(error), path)
        return None


def _unlike(stored: Cell, computed: Cell) -> str:
    keys = [key for key in computed if canonical(computed[key]) != canonical(stored.get(key))]
    said = ", ".join(f"{key} {stored.get(key)} is {computed[key]}" for key in keys)
    return f"{computed['id']} does not recompute from the measured values: {said}"


def _first_difference(written: str, made: str) -> str:
    ours, theirs = written.split("\n"), made.split("\n")
    for number, (a, b) in enumerate(zip(ours, theirs, strict=False), 1):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            has, give = a[max(0, at - 30) : at + 20], b[at : at + 20]
            return f"line {number} has ...{has}... where the runs give ...{give}..."
    return f"it has {len(ours)} lines, the runs give {len(theirs)}"
