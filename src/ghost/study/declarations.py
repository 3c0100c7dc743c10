"""What a line of the table is: an experiment, a figure or table of the report, a number in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.runs.code import module_path


@dataclass(frozen=True)
class Experiment:
    name: str
    step: str  # the rule and module that runs it
    module: str  # what the step imports for it
    settings: Mapping[str, Any]
    seeds: tuple[int, ...] = (0,)
    needs: tuple[str, ...] = ()  # experiments whose runs are its inputs
    reads: tuple[str, ...] = ()  # files of the repository that it reads

    @property
    def modules(self) -> tuple[str, str]:
        """Entry modules of its code: a change behind either reruns it."""
        return (f"ghost.steps.{self.step}", self.module)


@dataclass(frozen=True)
class Cell:
    """One displayed number: `estimator` applied to the runs' `metric` under `condition` (see ghost.report.estimators).

    An estimator of a difference compares them with the runs of `against`, under the same condition or another one.
    """

    name: str
    experiment: str
    metric: str
    condition: str = ""
    estimator: str = "value"
    digits: str = ".2f"  # a Python format specification
    unit: str = ""
    published: str = ""  # as the paper prints it, where it does
    against: str = ""  # the experiment that this one is compared with
    against_condition: str = ""  # empty: the same condition
    against_metric: str = ""  # empty: the same metric


@dataclass(frozen=True)
class Artefact:
    kind: str  # fig or tab
    label: str
    step: str = ""  # plot, draw, tabulate; empty: declared, not built
    cells: tuple[Cell, ...] = ()

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
        if self.step == "tabulate":
            return (f"paper/tables/{self.stage}.tex.jinja",)
        return (f"paper/tikz/{self.label}.tikz", "paper/ghost.sty") if self.step == "draw" else ()

    @property
    def implementations(self) -> tuple[str, ...]:
        """Modules that its cells show (estimator `module`), where they exist."""
        names = [cell.metric for cell in self.cells if cell.estimator == "module"]
        return tuple(name for name in names if module_path(name))

    def declaration(self) -> list[dict[str, Any]]:
        """Its cells as plain values with their full ids: what is computed, and a parameter to Snakemake."""
        return [{**asdict(cell), "id": f"{self.id}/{cell.name}"} for cell in self.cells]


def check(experiments: Iterable[Experiment], artefacts: Iterable[Artefact]) -> None:
    """Names are unique, and every cell rests on an experiment that exists."""
    experiments, artefacts = tuple(experiments), tuple(artefacts)
    _unique("experiment", [row.name for row in experiments])
    _unique("artefact", [artefact.id for artefact in artefacts])
    known = [row.name for row in experiments]
    for number, row in enumerate(experiments):
        for need in row.needs:
            if need not in known[:number]:
                hint = did_you_mean(need, known[:number])
                raise GhostError(f"table: {row.name} needs {need!r}, which does not stand above it{hint}")
        _unique(f"seed of {row.name}", [str(seed) for seed in row.seeds])
    for artefact in artefacts:
        _unique(f"cell of {artefact.id}", [cell.name for cell in artefact.cells])
        for cell in artefact.cells:
            for name in filter(None, (cell.experiment, cell.against)):
                if name not in known:
                    hint = did_you_mean(name, known)
                    raise GhostError(f"table: {artefact.id}/{cell.name}: no experiment {name!r}{hint}")


def _unique(what: str, names: list[str]) -> None:
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise GhostError(f"table: {what} {doubled[0]!r} stands twice; give one of them another name")
