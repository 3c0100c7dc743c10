"""Record the last results of `make bench`: `python -m ghost.steps.read_bench --row '{...}' --reads ...csv --out ...`.

Benchmarks need a quiet machine and ten minutes, so the pipeline does not run them: it reads their files, which are in
the repository. The measured values are the median ratio of each measurement with its quartiles, our value and the goal,
and the exponent of a power law for each size that grows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tyro

from ghost.benches import Pair, Settings, read_pairs, summaries
from ghost.errors import GhostError, exit_on_error
from ghost.runs.records import record_runs
from ghost.runs.results import Measured, Outcome
from ghost.runs.settings import read_row, read_settings


def read_bench(row: str, reads: tuple[Path, ...], out: Path) -> None:
    """Record the benchmarks as one run.

    Args:
        row: an experiment of the study, as JSON.
        reads: the files of data/bench.
        out: the manifest to write; the run goes beside it.
    """
    line = read_row(row)
    settings = read_settings(line, Settings)
    pairs = {path.stem: read_pairs(path) for path in reads}
    record_runs(
        line,
        ("ghost.steps.read_bench", line["module"]),
        out,
        lambda seed, folder: outcome(pairs, settings),
        inputs=reads,
    )


def outcome(pairs: dict[str, list[Pair]], settings: Settings) -> Outcome:
    found = {f"{bench}/{summary.name}": summary for bench, of in pairs.items() for summary in summaries(of)}
    missing = [name for name in settings.goals if name not in found]
    if missing:
        raise GhostError(f"data/bench lacks {', '.join(missing)}; run `make bench`")
    measured = []
    for name, goal in settings.goals.items():
        summary = found[name]
        for metric in ("ratio", "low", "high", "ours", "reference"):
            measured.append(Measured(name, metric, getattr(summary, metric), summary.repeats))
        if goal:
            measured.append(Measured(name, "goal", goal))
    arrays: dict[str, np.ndarray] = {}
    for name in settings.growing:
        sizes, taken_s = growth(pairs["growth"], name)
        measured.append(
            Measured(f"growth/{name}", "exponent", float(np.polyfit(np.log(sizes), np.log(taken_s), 1)[0]), len(sizes))
        )
        arrays |= {f"growth/{name}/sizes": sizes, f"growth/{name}/seconds": taken_s}
    return Outcome(measured, arrays)


def growth(pairs: list[Pair], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The sizes, and the median seconds of each: [n] both."""
    found = [s for s in summaries(pairs) if s.name.startswith(f"{name}/")]
    return np.array([float(s.name.split("/")[1]) for s in found]), np.array([s.ours for s in found])


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(read_bench))
