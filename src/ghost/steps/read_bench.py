"""Bring what `make bench` measured last into the report, as a run.

Benchmarks need a quiet machine and ten minutes, so the pipeline does not run them. It reads their files, which are kept
in the repository. The run has the median ratio of each line with its quartiles, our value and the goal; where time
grows with size, the exponent of a power law is fitted.
"""

import numpy as np

from ghost.benches import Pair, Settings, read_pairs, summaries
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.runs.driver import Job, Plan, main


def read_bench(job: Job) -> Plan:
    """Read the files of data/bench."""
    (settings,) = job.read(Settings)
    return Plan(lambda unit: outcome({path.stem: read_pairs(path) for path in job.reads}, settings))


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
    """How many, and the median seconds that they took: [n] each."""
    found = [s for s in summaries(pairs) if s.name.startswith(f"{name}/")]
    return np.array([float(s.name.split("/")[1]) for s in found]), np.array([s.ours for s in found])


if __name__ == "__main__":
    main(read_bench)
