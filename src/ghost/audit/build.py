"""A finished build: its cells, its runs with their records, the runs that each run used, and the report's sentences."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ghost.claims.ledger import Ledger, read_ledger
from ghost.errors import GhostError
from ghost.report.cells import read_cells
from ghost.runs.records import Run, open_runs
from ghost.study.builds import Config

PAPER = Path("paper")
CITED = re.compile(r"\\cell\{([^{}]*)\}|\\verdicts\{[^{}]*\}")
HOLDS = re.compile(r"\\(?:holds|whether)\{([^{}]*)\}\{")
VERDICTS = "verdicts"  # what a sentence cites that counts verdicts


@dataclass(frozen=True)
class Sentence:
    """A sentence of the report, with the cells that it cites."""

    path: str
    line: int
    text: str
    cites: tuple[str, ...]  # cells; predicates as holds:<id>; the counts of verdicts as VERDICTS


class Runs(dict[str, Run]):
    """Runs by id."""

    def __missing__(self, run_id: str) -> Run:
        raise GhostError(f"no manifest lists the run {run_id}: it is of another build; `snakemake all` makes all anew")


class Records(dict[str, dict[str, Any]]):
    """Records by run id. Each is read when it is first used."""

    def __init__(self, runs: dict[str, Run]) -> None:
        super().__init__()
        self.runs = runs

    def __missing__(self, run_id: str) -> dict[str, Any]:
        self[run_id] = self.runs[run_id].record()
        return self[run_id]


@dataclass
class Build:
    config: Config
    manifests: dict[str, list[Run]] = field(default_factory=dict)  # by experiment

    @classmethod
    def open(cls, config: Config) -> Self:
        listed = {experiment.name: config.manifest(experiment.name) for experiment in config.experiments}
        return cls(config, {name: open_runs(path) for name, path in listed.items() if path.exists()})

    @cached_property
    def cells(self) -> dict[str, dict[str, Any]]:
        return read_cells(self.config.data / "cells.jsonl")

    @cached_property
    def ledger(self) -> Ledger:
        return read_ledger()

    @cached_property
    def runs(self) -> Runs:
        return Runs({run.run_id: run for runs in self.manifests.values() for run in runs})

    @cached_property
    def records(self) -> Records:
        return Records(self.runs)

    def rests_on(self, run_id: str) -> list[Run]:
        """The runs that a run used, as its record names them. A run that no manifest lists any more is left out."""
        named = [entry["run_id"] for entry in self.records[run_id]["inputs"].values() if "run_id" in entry]
        return [self.runs[name] for name in named if name in self.runs]

    def lineage(self, run_ids: Iterable[str]) -> Iterator[tuple[int, Run]]:
        """Some runs (depth 0) and all runs below them, each once: down to the demonstrations."""
        seen: set[str] = set()
        level = [self.runs[run_id] for run_id in run_ids]
        depth = 0
        while level:
            for run in level:
                seen.add(run.run_id)
                yield depth, run
            below = {other.run_id: other for run in level for other in self.rests_on(run.run_id)}
            level, depth = [run for run_id, run in below.items() if run_id not in seen], depth + 1

    def above(self, run_ids: Iterable[str]) -> set[str]:
        """Some runs and all that rest on them."""
        reached = set(run_ids)
        used = {run_id: {other.run_id for other in self.rests_on(run_id)} for run_id in self.runs}
        while True:
            more = {run_id for run_id, rests in used.items() if rests & reached} - reached
            if not more:
                return reached
            reached |= more

    def sentences(self) -> list[Sentence]:
        """The sentences of every text file of the report that cite something. Generated files are no text."""
        written = sorted(path for path in PAPER.rglob("*.tex") if not path.is_relative_to(PAPER / "generated"))
        return [sentence for path in written for sentence in sentences_of(path)]


def sentences_of(path: Path) -> list[Sentence]:
    r"""The sentences of a file that cite cells, captions included. \holds{...}{...} may go over several sentences."""
    text = re.sub(r"(?<!\\)%.*", "", path.read_text(encoding="utf-8"))
    bound = [(match.start(), _closing(text, match.end()), match[1]) for match in HOLDS.finditer(text)]
    found, start = [], 0
    for match in [*re.finditer(r"(?<=[.:?])\}?\s+(?=[A-Z\\$])|\n\s*\n", text), None]:
        end = match.start() if match else len(text)
        piece = text[start:end]
        cites = [named[1] or VERDICTS for named in CITED.finditer(piece)]
        cites += [f"holds:{name}" for first, last, name in bound if first < end and start < last]
        if cites:
            line = text.count("\n", 0, start + len(piece) - len(piece.lstrip())) + 1
            found.append(Sentence(str(path), line, " ".join(piece.split()), tuple(dict.fromkeys(cites))))
        start = match.end() if match else end
    return found


def _closing(text: str, start: int) -> int:
    """Where the brace ends that was opened just before `start`."""
    depth = 1
    for brace in re.finditer(r"(?<!\\)[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return start + brace.start()
    return len(text)
