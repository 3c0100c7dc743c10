"""The DAG, in a copy of the repository: the time that Snakemake and our code add to the work, and a whole build.

overhead          wall time of the smoke DAG against the time that its jobs compute, shared by the cores. For a run we
                  count the time in its record, for any other job the whole job
no_op             a second `snakemake all`, which does nothing, against the start of Snakemake alone
plan              a dry run with 10,000 more runs in the study, five seeds an experiment, against 100 more
audit             `ghost audit` of one cell among a hundred times as many cells, against the cells of the build
end_to_end/<part> set-up, compute and typesetting, each against all three
"""

import json
import os
import shutil
import sys
from pathlib import Path

from ghost.benches import Pair, Place, call, in_turns, interleaved, python, read_pairs, seconds, write_pairs
from ghost.files import read_json, read_lines
from ghost.study import EXPERIMENTS
from ghost.study.benchmarks import LINES

OWN = "data/bench/dag.csv"
SMOKE = ("--config", "scale=smoke")
REPEATS, FEW, MANY, COPIES = 5, 100, 10_000, 100
SEEDS = 5
MORE = """
from dataclasses import replace

EXPERIMENTS = (*EXPERIMENTS, *(replace(EXPERIMENTS[0], name=f"more_{k}", seeds=tuple(range(%d))) for k in range(%d)))
"""
RULE = """
rule more:
    input:
        [scale.manifest(e.name) for e in scale.experiments if e.name.startswith("more_")],
"""


def measure(place: Place) -> list[Pair]:
    clone = place.scratch / "clone"

    def build() -> None:
        python("snakemake", "all", *SMOKE, root=clone)

    copy(place.root, clone)
    fill(clone / OWN)
    set_up_s = seconds(lambda: set_up(clone))
    wall_s = seconds(build)
    compute_s, typeset_s = own_time(clone)
    total_s = set_up_s + wall_s
    parts = {"set_up": set_up_s, "compute": wall_s - typeset_s, "typeset": typeset_s}
    return [
        Pair("overhead", 0, wall_s, compute_s / (os.cpu_count() or 1), "s"),
        *interleaved("no_op", build, lambda: python("snakemake", "--version", root=clone), REPEATS),
        *audits(clone),
        Pair("plan", 0, plan(place, MANY), plan(place, FEW), "s"),
        *(Pair(f"end_to_end/{name}", 0, taken_s, total_s, "s") for name, taken_s in parts.items()),
    ]


def copy(root: Path, to: Path) -> None:
    """Copy the files that git tracks, in their present state."""
    for name in call("git", "ls-files", "--cached", "--others", "--exclude-standard", folder=root).splitlines():
        source, target = root / name, to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink() or source.is_file():
            shutil.copy(source, target, follow_symlinks=False)


def fill(path: Path) -> None:
    """Add a pair of ones for what was never measured: the DAG reads all lines, also those of this bench."""
    known = read_pairs(path) if path.is_file() else []
    names = {name.removeprefix("dag/") for name in LINES if name.startswith("dag/")} - {pair.name for pair in known}
    write_pairs(path, [*known, *(Pair(name, 0, 1, 1, "s") for name in sorted(names))])


def set_up(folder: Path) -> None:
    """Make the environment, without the variables of the `make bench` that started us."""
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "BIN")}
    call("make", ".venv/ready", f"PYTHON={sys.executable}", folder=folder, environment=environment)


def own_time(folder: Path) -> tuple[float, float]:
    """Seconds that the jobs of a finished build computed, and those of the typesetting alone."""
    jobs: dict[tuple[str, ...], float] = {}  # a job has a record for each of its outputs, and one log
    for path in (folder / ".snakemake/metadata").iterdir():
        record = read_json(path)
        jobs[record["rule"], *record["log"]] = record["endtime"] - record["starttime"]
    typeset_s = sum(taken_s for (rule, *_), taken_s in jobs.items() if rule == "typeset")
    steps = {experiment.step for experiment in EXPERIMENTS}
    others_s = sum(taken_s for (rule, *_), taken_s in jobs.items() if rule not in steps)
    runs_s = sum(read_json(path)["wall_s"] for path in (folder / "data/smoke/runs").glob("*/seed*/run.json"))
    return others_s + runs_s, typeset_s


def audits(folder: Path) -> list[Pair]:
    path = folder / "data/smoke/cells.jsonl"
    cells = [json.loads(line) for line in read_lines(path)]

    def audit() -> None:
        python("ghost.cli", "audit", cells[0]["id"], "--scale", "smoke", root=folder)

    few_s = in_turns([audit], REPEATS)
    with path.open("a", encoding="utf-8") as file:
        for k in range(COPIES - 1):
            file.writelines(json.dumps({**cell, "id": f"{cell['id']}_{k}"}) + "\n" for cell in cells)
    many_s = in_turns([audit], REPEATS)
    return [Pair("audit", k, many_s[k][0], few_s[k][0], "s") for k in range(REPEATS)]


def plan(place: Place, runs: int) -> float:
    """Seconds of a dry run with so many more runs in the study."""
    folder = place.scratch / f"plan{runs}"
    copy(place.root, folder)
    for name, more in (("src/ghost/study/__init__.py", MORE % (SEEDS, runs // SEEDS)), ("Snakefile", RULE)):
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(more)
    return seconds(lambda: python("snakemake", "more", "-n", *SMOKE, root=folder))
