"""Run benchmarks: `python -m ghost.steps.bench --features .../dual_arm_features/manifest.json --out data/bench`.

Each bench (`ghost.benches`) writes its pairs to a file of its own. The output shows the median ratio of ours to the
reference with its quartiles, and the goal. A ratio is a regression if it is worse than in the previous file by more
than a quarter, and its nearer quartile is worse too. Regressions are listed, and the exit code is then 1.
"""

import importlib
import tempfile
from pathlib import Path

import tyro

from ghost.benches import Place, Summary, read_pairs, summaries, write_pairs
from ghost.errors import GhostError, did_you_mean, exit_on_error
from ghost.study.benchmarks import BENCHES, LINES, Line

WORSE = 1.25


def bench(features: Path, out: Path, only: tuple[str, ...] = ()) -> int:
    """Measure, write, compare.

    Args:
        features: manifest of the feature cache that the training bench reads.
        out: the folder of the files.
        only: benches to run; all if left out.
    """
    for name in only:
        if name not in BENCHES:
            raise GhostError(f"no bench {name!r}{did_you_mean(name, BENCHES)}")
    worse = []
    for name in only or BENCHES:
        path = out / f"{name}.csv"
        before = {s.name: s for s in summaries(read_pairs(path))} if path.is_file() else {}
        with tempfile.TemporaryDirectory(prefix="ghost-bench-") as scratch:
            pairs = importlib.import_module(f"ghost.benches.{name}").measure(
                Place(Path.cwd(), features.resolve(), Path(scratch))
            )
        write_pairs(path, pairs)
        for found in summaries(pairs):
            line = LINES.get(f"{name}/{found.name}")
            print(described(name, found, line), flush=True)
            if line and found.name in before and regressed(line, before[found.name], found):
                worse.append(f"{name}/{found.name}: {before[found.name].ratio:.3g} before, {found.ratio:.3g} now")
    print("\n".join(["", *(f"worse: {text}" for text in worse)] if worse else []))
    return 1 if worse else 0


def described(bench: str, found: Summary, line: Line | None) -> str:
    goal = f"  goal {line.goal_text}: {'met' if line.met(found) else 'MISSED'}" if line and line.goal else ""
    sides = f"{found.ours:.4g} against {found.reference:.4g} {found.unit}"
    spread = f"{found.ratio:8.3g} ({found.low:.3g} to {found.high:.3g}, n = {found.repeats})"
    return f"{f'{bench}/{found.name}':44s}{spread:36s}{sides:34s}{goal}"


def regressed(line: Line, before: Summary, now: Summary) -> bool:
    if line.larger_is_better:
        return now.ratio < before.ratio / WORSE and now.high < before.ratio
    return now.ratio > before.ratio * WORSE and now.low > before.ratio


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(bench))
