"""The DAG, in a copy of the repository: what Snakemake and we add to the work itself; and from a clone to the PDF.

overhead          wall time of the smoke DAG against the time that its jobs compute, shared by the cores; of a run
                  counts what its record says, of another job all of it
no_op             a second `snakemake all`, which does nothing, against the start of Snakemake alone
plan              a dry run with 10,000 more runs in the table, five seeds an experiment, against 100 more
audit             `ghost audit` of one cell where cells.jsonl has a hundred times as many, against as it is
end_to_end/<part> set-up, compute and typesetting, each against all three
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ghost.benches import Pair, Place, finish, interleaved, python, read_pairs, seconds, write_pairs
from ghost.errors import GhostError
from ghost.files import read_json
from ghost.study.benchmarks import LINES

OWN = "data/bench/dag.csv"
ALL = ("-m", "snakemake", "all", "--config", "scale=smoke")
REPEATS, FEW, MANY, COPIES = 5, 100, 10_000, 100
SEEDS = 5
ROWS = """
from dataclasses import replace

EXPERIMENTS = (*EXPERIMENTS, *(replace(EXPERIMENTS[0], name=f"more_{k}", seeds=tuple(range(%d))) for k in range(%d)))
"""
RULE = """
rule more:
    input:
        [scale.manifest(row.name) for row in scale.experiments if row.name.startswith("more_")],
"""


def measure(place: Place) -> list[Pair]:
    clone = place.scratch / "clone"
    copy(place.root, clone)
    fill(clone / OWN)
    set_up_s = seconds(lambda: set_up(clone))
    wall_s = seconds(lambda: finish(python(*ALL, root=clone)))
    compute_s, typeset_s = own_time(clone)
    total_s = set_up_s + wall_s
    parts = {"set_up": set_up_s, "compute": wall_s - typeset_s, "typeset": typeset_s}
    return [
        Pair("overhead", 0, wall_s, compute_s / (os.cpu_count() or 1), "s"),
        *interleaved("no_op", lambda: finish(python(*ALL, root=clone)), lambda: bare(clone), REPEATS),
        *audits(clone),
        Pair(
            "plan", 0, plan(place.root, place.scratch / "many", MANY), plan(place.root, place.scratch / "few", FEW), "s"
        ),
        *(Pair(f"end_to_end/{name}", 0, taken_s, total_s, "s") for name, taken_s in parts.items()),
    ]


def copy(root: Path, to: Path) -> None:
    """The files that git knows, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True
    )
    if listed.returncode:
        raise GhostError(f"bench: {root} is not a git checkout")
    for name in listed.stdout.splitlines():
        source, target = root / name, to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        elif source.is_file():
            target.write_bytes(source.read_bytes())


def fill(path: Path) -> None:
    """Lines that were never measured are ones: the DAG reads all of them, also what we are about to measure."""
    known = read_pairs(path) if path.is_file() else []
    names = {name.removeprefix("dag/") for name in LINES if name.startswith("dag/")} - {pair.name for pair in known}
    write_pairs(path, [*known, *(Pair(name, 0, 1, 1, "s") for name in sorted(names))])


def set_up(folder: Path) -> None:
    # As if typed there: without what the make that started us told its children.
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "BIN")}
    made = subprocess.run(
        ["make", ".venv/ready", f"PYTHON={sys.executable}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        raise GhostError(f"bench: set-up failed: {made.stderr.strip().splitlines()[-1]}")


def own_time(folder: Path) -> tuple[float, float]:
    """Seconds that the jobs of a finished build computed, and those of the typesetting alone."""
    jobs: dict[tuple[str, float], float] = {}
    for path in (folder / ".snakemake/metadata").iterdir():
        told = read_json(path)
        jobs[told["rule"], told["starttime"]] = told["endtime"] - told["starttime"]
    typeset_s = sum(taken_s for (rule, _), taken_s in jobs.items() if rule == "typeset")
    records = list((folder / "data/smoke/runs").glob("*/seed*/run.json"))
    steps = {json.loads(path.read_text(encoding="utf-8"))["command"][2].removeprefix("ghost.") for path in records}
    others_s = sum(taken_s for (rule, _), taken_s in jobs.items() if rule not in steps)
    return others_s + sum(read_json(path)["wall_s"] for path in records), typeset_s


def bare(folder: Path) -> None:
    finish(python("-m", "snakemake", "--version", root=folder))


def audits(folder: Path) -> list[Pair]:
    cells = folder / "data/smoke/cells.jsonl"
    lines = cells.read_text(encoding="utf-8").splitlines()
    name = json.loads(lines[0])["id"]

    def audit() -> None:
        finish(python("-m", "ghost.cli", "audit", name, "--scale", "smoke", root=folder))

    as_it_is = [seconds(audit) for _ in range(REPEATS + 1)][1:]
    told = [json.loads(line) for line in lines]
    more = [json.dumps({**cell, "id": f"{cell['id']}_{k}"}) for cell in told for k in range(COPIES - 1)]
    cells.write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    with_more = [seconds(audit) for _ in range(REPEATS + 1)][1:]
    return [Pair("audit", repeat, *both, "s") for repeat, both in enumerate(zip(with_more, as_it_is, strict=True))]


def plan(root: Path, folder: Path, runs: int) -> float:
    """Seconds of a dry run with so many more runs in the table."""
    copy(root, folder)
    table = folder / "src/ghost/study/__init__.py"
    table.write_text(table.read_text(encoding="utf-8") + ROWS % (SEEDS, runs // SEEDS), encoding="utf-8")
    snakefile = folder / "Snakefile"
    snakefile.write_text(snakefile.read_text(encoding="utf-8") + RULE, encoding="utf-8")
    return seconds(lambda: finish(python("-m", "snakemake", "more", "-n", "--config", "scale=smoke", root=folder)))
