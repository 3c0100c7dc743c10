"""The parts of the study: an experiment, a number of the report (a cell), a figure or table with its cells."""

import os
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.report.over_cells import OVER_CELLS, SEPARATOR
from ghost.runs.code import ROOT, module_path
from ghost.runs.marks import StandIn
from ghost.runs.outside import Source

# Conditions of rollouts: T4+T6 are two tasks, env_seed=1 is one evaluation, T0-T1_N50 changes to task 1 at step 50.
SEVERAL, ENV_SEED, SWITCHED = "+", "env_seed=", "_N"
HELPERS = {str(Path(__file__).with_name(f"{name}.py")) for name in ("declarations", "cells", "tables")} | {"<string>"}


@dataclass(frozen=True)
class Experiment:
    name: str
    step: str  # the rule and module that runs it
    module: str  # what the step imports for it
    settings: Mapping[str, Any]
    seeds: tuple[int, ...] = (0,)  # none: see ghost.study.seeds.AS_TRAINED
    needs: tuple[str, ...] = ()  # experiments whose runs are its inputs
    reads: tuple[str, ...] = ()  # files of the repository that it reads
    places: tuple[Source, ...] = ()  # settings that name folders from outside
    uses: tuple[str, ...] = ()  # further modules whose code it runs: those of the decoders and backbones that it loads
    stand_ins: tuple[StandIn, ...] = ()  # what it stands in for
    timed: bool = False  # it measures time: no second run repeats it, and on one machine no job runs beside it

    @property
    def modules(self) -> tuple[str, ...]:
        """Entry modules of its code: a change behind one of them reruns it."""
        return (f"ghost.steps.{self.step}", self.module, *self.uses)


@dataclass(frozen=True)
class Cell:
    """One displayed number: `estimator` applied to the runs' `metric` under `condition` (see ghost.report.estimators).

    An estimator of a difference compares them with the runs of `against`, under the same condition or another one.
    """

    name: str  # empty in a table: <row>/<column>
    experiment: str
    metric: str
    condition: str = ""
    estimator: str = "value"
    digits: str = ".2f"  # a Python format specification
    unit: str = ""
    against: str = ""  # the experiment that this one is compared with
    against_condition: str = ""  # empty: the same condition
    against_metric: str = ""  # empty: the same metric
    declared: str = field(default="", compare=False)  # file:line of the study

    def __post_init__(self) -> None:
        if not self.declared:
            object.__setattr__(self, "declared", _caller())


def _caller() -> str:
    """File and line of the nearest code outside the helpers that declare cells."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in HELPERS and frame.f_back:
        frame = frame.f_back
    return f"{os.path.relpath(frame.f_code.co_filename, ROOT.parents[1])}:{frame.f_lineno}"


@dataclass(frozen=True)
class Tex:
    """A fixed text of a table: in LaTeX, and in plain Unicode for the audit page."""

    tex: str
    plain: str


DASH = Tex("---", "—")  # an entry that there is not
Part = Tex | str  # of an entry: a fixed text, or the name of a cell
Entry = tuple[Part, ...]


@dataclass(frozen=True)
class Table:
    """What a table prints, with a rule between groups of rows. `ghost.study.tables` makes it from rows and columns."""

    align: str  # a letter for each column, as LaTeX's tabular has it
    head: tuple[Tex, ...]
    groups: tuple[tuple[tuple[Entry, ...], ...], ...]

    def without(self, rows: Collection[str], cells: Collection[str]) -> "Table":
        """Without the rows that show one of some cells, and with a dash in place of some others."""

        def shows(row: tuple[Entry, ...]) -> bool:
            return any(part in rows for entry in row for part in entry)

        def dashed(entry: Entry) -> Entry:
            return (DASH,) if any(part in cells for part in entry) else entry

        groups = (tuple(tuple(map(dashed, row)) for row in group if not shows(row)) for group in self.groups)
        return replace(self, groups=tuple(group for group in groups if group))


@dataclass(frozen=True)
class Artefact:
    kind: str  # fig or tab
    label: str
    step: str = ""  # plot, draw, tabulate; empty: declared, not built
    cells: tuple[Cell, ...] = ()
    table: Table | None = None
    optional: tuple[str, ...] = ()  # experiments that a build may lack; then their rows and cells are left out

    def within(self, experiments: Collection[str]) -> "Artefact":
        """As a build has it that has these experiments, and all that are not optional."""
        return self.without(set(self.optional) - set(experiments))

    def without(self, absent: Collection[str]) -> "Artefact":
        """As a build has it that lacks these experiments.

        A table loses the rows that show one of them, and has a dash for a comparison with one. A figure that lacks a
        cell is not built, nor is a table without rows.
        """
        own = {cell.name for cell in self.cells if cell.experiment in absent}
        lost = own | {cell.name for cell in self.cells if cell.against in absent}
        if not lost:
            return self
        for cell in (cell for cell in self.cells if cell.estimator in OVER_CELLS):
            lost |= {cell.name} if lost & set(cell.metric.split(SEPARATOR)) else set()
        table = self.table and self.table.without(own, lost)
        if not (table and table.groups):
            return replace(self, step="", cells=(), table=None)
        return replace(self, cells=tuple(cell for cell in self.cells if cell.name not in lost), table=table)

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.label}"

    @property
    def stage(self) -> str:
        """Name of its DVC stage and of its files."""
        return f"{self.kind}_{self.label}"

    @property
    def experiments(self) -> tuple[str, ...]:
        named = (name for cell in self.cells for name in (cell.experiment, cell.against))
        return tuple(dict.fromkeys(filter(None, named)))

    @property
    def modules(self) -> tuple[str, ...]:
        """Entry modules of the code that makes it from the runs: its cells, and the drawing itself."""
        drawing = (f"ghost.report.plots.{self.label}",) if self.step == "plot" else ()
        return ("ghost.steps.summarize", f"ghost.steps.{self.step}", *drawing)

    @property
    def sources(self) -> tuple[str, ...]:
        """Files beside the code that it is made from."""
        return (f"paper/tikz/{self.label}.tikz", "paper/ghost.sty") if self.step == "draw" else ()

    @property
    def implementations(self) -> tuple[str, ...]:
        """Modules that its cells show (estimator `module`), where they exist."""
        names = [cell.metric for cell in self.cells if cell.estimator == "module"]
        return tuple(name for name in names if module_path(name))

    def declaration(self) -> list[dict[str, Any]]:
        """Its cells as plain values with their full ids, but not where they are declared: moving one reruns nothing."""
        made = [{**asdict(cell), "id": f"{self.id}/{cell.name}"} for cell in self.cells]
        return [{key: value for key, value in cell.items() if key != "declared"} for cell in made]

    def layout(self) -> dict[str, Any] | None:
        """What its table prints, as plain values: a parameter to Snakemake."""
        return asdict(self.table) if self.table else None


def figure(label: str, *cells: Cell) -> Artefact:
    return Artefact("fig", label, "plot", cells)


def check(experiments: Sequence[Experiment], artefacts: Sequence[Artefact]) -> None:
    """Names are unique, and every cell rests on an experiment that exists."""
    known = [experiment.name for experiment in experiments]
    _unique("experiment", known)
    _unique("artefact", [artefact.id for artefact in artefacts])
    for number, experiment in enumerate(experiments):
        for need in experiment.needs:
            if need not in known[:number]:
                hint = did_you_mean(need, known[:number])
                raise GhostError(f"study: {experiment.name} needs {need!r}, which does not stand above it{hint}")
        _unique(f"seed of {experiment.name}", [str(seed) for seed in experiment.seeds])
    for artefact in artefacts:
        names = [cell.name for cell in artefact.cells]
        _unique(f"cell of {artefact.id}", names)
        for cell in (cell for cell in artefact.cells if cell.estimator in OVER_CELLS):
            for part in cell.metric.split(SEPARATOR):
                if part not in names:
                    hint = did_you_mean(part, names)
                    raise GhostError(f"study: {artefact.id}/{cell.name}: no cell {part!r}{hint} ({cell.declared})")
        for cell in artefact.cells:
            for name in filter(None, (cell.experiment, cell.against)):
                if name not in (*known, *artefact.optional):
                    hint = did_you_mean(name, known)
                    raise GhostError(
                        f"study: {artefact.id}/{cell.name}: no experiment {name!r}{hint} ({cell.declared})"
                    )


def _unique(what: str, names: list[str]) -> None:
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise GhostError(f"study: {what} {doubled[0]!r} stands twice; give one of them another name")
