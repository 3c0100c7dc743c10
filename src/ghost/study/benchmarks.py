"""Benchmarks in the report: what `make bench` measured last, of which the files are kept in the repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ghost.study.declarations import Artefact, Cell, Experiment

if TYPE_CHECKING:
    from ghost.benches import Summary


@dataclass(frozen=True)
class Line:
    """One measurement, ours against the reference, and what was aimed at. `ghost.benches` says what is measured."""

    digits: str = ".2f"  # of the ratio
    goal: float = 0.0  # 0: none
    larger_is_better: bool = False
    of_ours: bool = False  # the goal is for our value itself, in its unit

    @property
    def goal_text(self) -> str:
        return f"{'at least' if self.larger_is_better else 'at most'} {self.goal:g}"

    def met(self, found: Summary) -> bool:
        value = found.ours if self.of_ours else found.ratio
        return value >= self.goal if self.larger_is_better else value <= self.goal


LINES: Mapping[str, Line] = {
    "training/share/paper": Line(".2f", 0.6, True),
    "training/share/laptop": Line(".2f", 0.4, True),
    "training/share/laptop/products": Line(),
    "training/seeds": Line(".2f", 1 / 1.7),
    "training/seeds/loss": Line(".4f"),
    "inference/ghost_over_mlp/exported/batch1": Line(".2f", 1.5),
    "inference/ghost_over_mlp/exported/batch64": Line(".2f", 1.5),
    "inference/ghost_over_mlp/eager/batch1": Line(),
    "inference/exported_over_eager/batch1": Line(),
    "inference/ghost_over_neural_ode/batch1": Line(),
    "inference/dit_over_ghost/batch1": Line(".0f", 100, True),
    "inference/memory": Line(".3f", 1.01),
    "cache/sequential": Line(".2f", 1.3),
    "cache/shuffled": Line(),
    "cache/open": Line(".2f", 1.3),
    "cache/first_read": Line(),
    "cache/bounded": Line(".3f", 1.01),
    "rollouts/episodes": Line(".2f", 0.25),
    "rollouts/episodes/core": Line(),
    "rollouts/drift": Line(".4f"),
    "rollouts/success": Line(),
    "rollouts/success/alike": Line(),
    "rollouts/dark_room": Line(",.0f", 0, True),
    "dag/overhead": Line(".2f", 1.15),
    "dag/no_op": Line(".2f", 3.0, of_ours=True),
    "dag/plan": Line(".1f", 60.0, of_ours=True),
    "dag/audit": Line(),
    "dag/end_to_end/set_up": Line(),
    "dag/end_to_end/compute": Line(),
    "dag/end_to_end/typeset": Line(),
}
SHOWN = ("ratio", "low", "high")  # median, quartiles
GROWTH = {"samples": 256, "tokens": 16, "seeds": 1, "episodes": 1}  # the least of each, which is doubled three times
BENCHES = (*dict.fromkeys(name.split("/")[0] for name in LINES), "growth")
FILES = tuple(f"data/bench/{bench}.csv" for bench in BENCHES)

SETTINGS = {"goals": {name: line.goal for name, line in LINES.items()}, "growing": list(GROWTH)}
EXPERIMENTS = (Experiment("benchmarks", "read_bench", "ghost.benches", SETTINGS, reads=FILES),)


def _lines() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for name, line in LINES.items():
        cells += [Cell(f"{name}/{metric}", "benchmarks", metric, name, digits=line.digits) for metric in SHOWN]
        if line.goal:
            cells.append(Cell(f"{name}/goal", "benchmarks", "goal", name, digits=".3g"))
        if line.of_ours:
            cells.append(Cell(f"{name}/ours", "benchmarks", "ours", name, digits=".1f"))
    return tuple(cells)


def _growth() -> tuple[Cell, ...]:
    return tuple(
        cell
        for name in GROWTH
        for cell in (
            Cell(f"{name}/exponent", "benchmarks", "exponent", f"growth/{name}"),
            Cell(f"{name}/curve", "benchmarks", f"growth/{name}/seconds", estimator="series"),
        )
    )


ARTEFACTS = (
    Artefact("tab", "benchmarks", "tabulate", _lines()),
    Artefact("fig", "growth", "plot", _growth()),
)
