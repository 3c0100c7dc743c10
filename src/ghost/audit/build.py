"""Everything that a build has: its cells, its runs with their records, and what each rests on.

A run rests on runs of the experiments that its record names as inputs: on the one with its own seed where there are
several, as the steps pair them, otherwise on all of them (an ensemble, one feature cache for every seed).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.report.cells import read_cells
from ghost.runs.records import MANIFEST, Run, open_runs
from ghost.study.builds import Config

SECTIONS = Path("paper/sections")


@dataclass(frozen=True)
class Sentence:
    """A sentence of the report, with the cells that it cites."""

    path: str
    line: int
    text: str
    cites: tuple[str, ...]  # cells, and predicates as holds:<id>


class Records(dict[str, dict[str, Any]]):
    """Records by run id, each read when it is asked for."""

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
    def open(cls, config: Config) -> Build:
        listed = {row.name: config.manifest(row.name) for row in config.experiments}
        return cls(config, {name: open_runs(path) for name, path in listed.items() if path.exists()})

    @cached_property
    def cells(self) -> dict[str, dict[str, Any]]:
        path = self.config.data / "cells.jsonl"
        if not path.exists():
            raise GhostError(f"no {path} yet; `snakemake all` makes it")
        return read_cells(path)

    @cached_property
    def runs(self) -> dict[str, Run]:
        return {run.run_id: run for runs in self.manifests.values() for run in runs}

    @cached_property
    def records(self) -> Records:
        return Records(self.runs)

    def rests_on(self, run_id: str) -> list[Run]:
        """The runs that are inputs of a run."""
        found: list[Run] = []
        for name in self.records[run_id]["inputs"]:
            path = Path(name)
            if path.name == MANIFEST:
                others = self.manifests.get(path.parent.name, [])
                same = [other for other in others if other.seed == self.runs[run_id].seed]
                found += same if len(others) > 1 and same else others
        return found

    def lineage(self, run_ids: Iterable[str]) -> Iterator[tuple[int, Run]]:
        """The runs below some runs, each once, with how far below: down to the demonstrations."""
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
        parents = {run_id: {other.run_id for other in self.rests_on(run_id)} for run_id in self.runs}
        while True:
            more = {run_id for run_id, rests in parents.items() if rests & reached} - reached
            if not more:
                return reached
            reached |= more

    def sentences(self) -> list[Sentence]:
        return [sentence for path in sorted(SECTIONS.glob("*.tex")) for sentence in sentences_of(path)]


def sentences_of(path: Path) -> list[Sentence]:
    """The sentences of a section that cite cells."""
    text = re.sub(r"(?<!\\)%.*", "", path.read_text(encoding="utf-8"))
    found, start = [], 0
    for match in [*re.finditer(r"(?<=[.:?])\}?\s+(?=[A-Z\\$])|\n\s*\n", text), None]:
        end = match.start() if match else len(text)
        piece = text[start:end]
        cites = [
            f"holds:{name[2]}" if name[1] == "holds" else name[2]
            for name in re.finditer(r"\\(cell|holds)\{([^{}]*)\}", piece)
        ]
        if cites:
            line = text.count("\n", 0, start + len(piece) - len(piece.lstrip())) + 1
            found.append(Sentence(str(path), line, " ".join(piece.split()), tuple(dict.fromkeys(cites))))
        start = match.end() if match else end
    return found
