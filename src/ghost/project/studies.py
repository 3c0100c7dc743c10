"""`ghost ship`: copy what the closed-loop study found into the repository, data/studies/<build>/.

    study.json                       what is shipped, its marks, and the sha256 of every file below
    cells/<stage>.jsonl              the cells of LIBERO-10
    runs/<experiment>/manifest.json  as in the build
    runs/<experiment>/seed<k>/       of each run the record, the measured values and, of a rollout, the episodes

Weights, features and demonstrations stay where they are; manifests and records have their hashes. The folder has the
form of a build, so that `ghost audit --diff data/closed_loop data/studies/closed_loop` compares a build with it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ghost.data.results import EPISODES, MEASURED
from ghost.errors import GhostError
from ghost.files import sha256, write_json
from ghost.runs.records import RECORD, Run, open_runs
from ghost.study.builds import Config
from ghost.study.closed_loop import INDEX, STAGES, STUDIES, targets
from ghost.study.closed_loop_claims import EASY, HARD

LARGEST_MB = 10  # of a shipped build: more does not belong into a repository
LEVELS = (HARD, EASY)


def ship(config: Config, name: str = "", folder: Path = Path(STUDIES)) -> str:
    """Copy a finished study, under its own name or another one; what was shipped before goes."""
    named = name or config.scale
    names = [experiment.name for experiment in config.experiments]
    for target in targets(config.data, named, tuple(names)):
        if not target.is_file():
            raise GhostError(f"there is no {target}; run `snakemake study --config scale={config.scale}` first")
    made = [each for each in names if each.startswith("libero_") and config.manifest(each).is_file()]
    out = folder / named
    shutil.rmtree(out, ignore_errors=True)
    experiments: dict[str, Any] = {}
    for each in made:
        runs = open_runs(config.manifest(each))
        for path in _kept(config.manifest(each), runs):
            _copy(path, out / path.relative_to(config.data))
        experiments[each] = _entry(runs)
    for path in (config.data / "cells" / f"{stage}.jsonl" for stage in STAGES):
        if path.is_file():
            _copy(path, out / path.relative_to(config.data))
    files = {str(path.relative_to(out)): sha256(path) for path in sorted(out.rglob("*")) if path.is_file()}
    write_json(out / INDEX, {"build": named, "experiments": experiments, "files": files})
    size_mb = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 2**20
    if size_mb > LARGEST_MB:
        raise GhostError(f"{out} has {size_mb:.1f} MB, more than {LARGEST_MB}: it does not belong into the repository")
    return f"{out}: {len(experiments)} experiments, {len(files)} files, {size_mb:.1f} MB"


def _kept(manifest: Path, runs: list[Run]) -> Iterator[Path]:
    """The small files of an experiment, each verified; a record must be whole and unedited."""
    yield manifest
    for run in runs:
        run.record()
        yield manifest.parent / f"seed{run.seed}" / RECORD
        yield from (run.path(name) for name in (MEASURED, EPISODES) if f"seed{run.seed}/{name}" in run.files)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _entry(runs: list[Run]) -> dict[str, Any]:
    """What the study declares of an experiment whose runs are shipped."""
    records = [run.record() for run in runs]
    reduced = {
        f"{key} {value['here']} (paper: {value['paper']})"
        for record in records
        for key, value in record["reduced"].items()
    }
    return {
        "seeds": [run.seed for run in runs],
        "stand_ins": sorted({name for record in records for name in record["stand_ins"]}),
        "reduced": sorted(reduced),
    }
