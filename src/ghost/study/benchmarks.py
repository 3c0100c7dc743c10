"""Benchmarks in the report: what `make bench` measured last, of which the files are kept in the repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ghost.study.cells import over
from ghost.study.declarations import Cell, Experiment, Tex, figure
from ghost.study.tables import Column, Row, Text, tabulated

if TYPE_CHECKING:
    from ghost.benches import Summary


@dataclass(frozen=True)
class Line:
    """One measurement, ours against the reference, and what was aimed at. `ghost.benches` says what is measured."""

    ours: Text = ""  # as the table prints it
    against: Text = ""
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


AS_FAST = 1.02  # no slower, as far as a median of repeats can tell
LINES: Mapping[str, Line] = {
    "training/share/paper": Line("update at the paper's widths, FLOP/s", "matrix product", ".2f", 0.6, True),
    "training/share/laptop": Line("update at laptop widths, FLOP/s", "matrix product", ".2f", 0.4, True),
    "training/share/laptop/products": Line("its matrix products alone", "matrix product"),
    "training/waiting/paper": Line("update at the paper's widths", "the same, its loss read", ".3f", AS_FAST),
    "training/waiting/laptop": Line("update at laptop widths", "the same, its loss read", ".3f", AS_FAST),
    "training/seeds": Line("five seeds in one job", "five plain autograd processes", ".2f", 1 / 1.7),
    "training/seeds/loss": Line("their last losses", "the same", ".4f"),
    "inference/ghost_over_mlp/exported/batch1": Line("Ghost, exported", "MLP, exported", ".2f", 1.5),
    "inference/ghost_over_mlp/exported/batch64": Line("the same, batch", "MLP, exported", ".2f", 1.5),
    "inference/ghost_over_mlp/eager/batch1": Line("Ghost, eager", "MLP, eager"),
    "inference/exported_over_eager/batch1": Line("Ghost, exported", "Ghost, eager"),
    "inference/ghost_over_neural_ode/batch1": Line("Ghost, eager", "Neural ODE by torchdiffeq"),
    "inference/dit_over_ghost/batch1": Line("diffusion transformer", "Ghost, eager", ".0f", 100, True),
    "inference/memory": Line("memory after many control steps", "after few", ".3f", 1.01),
    "cache/sequential": Line("tokens in order", "plain copy", ".2f", 1.3),
    "cache/shuffled": Line("tokens in random order", "plain copy"),
    "cache/open": Line("opening a large cache", "an eighth of it", ".2f", 1.3),
    "cache/first_read": Line("first reading of it, verified", "hashing its bytes"),
    "cache/training": Line("training from the disk, samples/s", "from memory", ".2f", 0.8, True),
    "cache/bounded": Line("memory after reading it all", "after a tenth", ".3f", 1.01),
    "feeding/workers": Line("pictures decoded by two workers", "by one", ".2f", 0.7),
    "rollouts/episodes": Line("episodes on two cores", "hf-libero, plain loop", ".2f", 0.25),
    "rollouts/episodes/core": Line("an episode on one core", "hf-libero"),
    "rollouts/drift": Line("distance of the two hands at the end", "way of the hand", ".4f"),
    "rollouts/success": Line("successes of the disturbed expert", "hf-libero, paired"),
    "rollouts/success/alike": Line("pairs that end alike", "all"),
    "rollouts/dark_room": Line("Dark Room in batches, steps/s", "one at a time", ",.0f", 0, True),
    "serving/batch": Line("a pass for eight simulators", "one forward of the batch", ".2f", 1.2),
    "serving/episodes": Line("two simulators on a server", "each with the policy", ".2f", 1 / 0.9),
    "serving/seen": Line("two with cameras on a server", "each with the policy", ".2f", 1 / 0.9),
    "dag/overhead": Line("smoke DAG", "its jobs' own time, by cores", ".2f", 1.15),
    "dag/no_op": Line(
        Tex(r"second \texttt{snakemake all}", "second snakemake all"),
        Tex(r"\texttt{snakemake -{}-version}", "snakemake --version"),
        ".2f",
        3.0,
        of_ours=True,
    ),
    "dag/plan": Line("dry run, many more runs", "a hundredth of them", ".1f", 60.0, of_ours=True),
    "dag/audit": Line(
        Tex(r"\texttt{ghost audit}, many more cells", "ghost audit, many more cells"), "a hundredth of them"
    ),
    "dag/end_to_end/set_up": Line("clone to PDF, tiny: set-up", "all"),
    "dag/end_to_end/compute": Line("the same: compute", "all"),
    "dag/end_to_end/typeset": Line("the same: typesetting", "all"),
}
SHOWN = ("ratio", "low", "high")  # median, quartiles
GROWTH = {"samples": 256, "tokens": 16, "seeds": 1, "episodes": 1}  # the least of each, which is doubled three times
COMPARING = tuple(dict.fromkeys(name.split("/")[0] for name in LINES))
BENCHES = (*COMPARING, "growth")
FILES = tuple(f"data/bench/{bench}.csv" for bench in BENCHES)

SETTINGS = {"goals": {name: line.goal for name, line in LINES.items()}, "growing": list(GROWTH)}
EXPERIMENTS = (Experiment("benchmarks", "read_bench", "ghost.benches", SETTINGS, reads=FILES),)


def _row(name: str, line: Line) -> Row:
    ratio, low, high = (Cell(f"{name}/{metric}", "benchmarks", metric, name, digits=line.digits) for metric in SHOWN)
    goal = Cell(f"{name}/goal", "benchmarks", "goal", name, digits=".3g")
    sign, seconds = "≥ " if line.larger_is_better else "≤ ", Tex(r"\,s", " s")
    ours = Cell(f"{name}/ours", "benchmarks", "ours", name, digits=".1f")
    estimator = "at_least" if line.larger_is_better else "at_most"
    met = over(estimator, (ours if line.of_ours else ratio, goal), name=f"{name}/met")
    aimed: tuple[Cell | Text, ...] = (sign, goal, ", ", met) if line.goal else ("",)
    if line.of_ours:
        aimed = (ours, seconds, " ", sign, goal, seconds, ", ", met)
    return Row(name, (line.ours, line.against, ratio, (low, ", ", high), aimed))


ARTEFACTS = (
    tabulated(
        "benchmarks",
        ("Ours", "against", Column("ratio", "Ratio"), Column("quartiles", "Quartiles"), Column("goal", "Goal")),
        *([_row(name, line) for name, line in LINES.items() if name.split("/")[0] == bench] for bench in COMPARING),
    ),
    figure(
        "growth",
        *(
            cell
            for name in GROWTH
            for cell in (
                Cell(f"{name}/exponent", "benchmarks", "exponent", f"growth/{name}"),
                Cell(f"{name}/curve", "benchmarks", f"growth/{name}/seconds", estimator="series"),
            )
        ),
    ),
)
