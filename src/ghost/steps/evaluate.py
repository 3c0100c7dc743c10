"""Measure trained decoders: `python -m ghost.steps.evaluate --row '{...}' --needs <manifest> ... --out .../manifest.json`.

The needs are the manifests of the feature cache and of the training runs. A run of the evaluation with seed s looks at
the decoders that were trained with seed s, so runs of two evaluations are pairs when their seeds agree. The module of
the row has `Settings` and `evaluate(settings, cache, decoders, *, seed, progress) -> Outcome`. All this stands apart
from the training, so that a new metric retrains nothing. One with `FEATURES = False` lets agents act in a world: all
that it needs are trained agents.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import torch
import tyro

from ghost.data.features import FeatureCache
from ghost.errors import GhostError, exit_on_error
from ghost.runs.progress import Progress
from ghost.runs.records import Run, open_runs, record_runs
from ghost.runs.results import Outcome
from ghost.runs.settings import read_row, read_settings
from ghost.training.checkpoint import load_decoder


def evaluate(row: str, out: Path, needs: tuple[Path, ...] = ()) -> None:
    """Evaluate every seed of a row.

    Args:
        row: a line of the table, as JSON.
        out: the manifest to write; the runs go beside it.
        needs: the manifests of the feature cache, first, and of the decoders; none for what needs no training.
    """
    line = read_row(row)
    module = importlib.import_module(line["module"])
    settings = read_settings(line, module.Settings)
    caches = needs[:1] if getattr(module, "FEATURES", True) else ()
    cache = FeatureCache.open(caches[0]) if caches else None
    trained = {manifest.parent.name: open_runs(manifest) for manifest in needs[len(caches) :]}
    torch.set_num_threads(1)  # sums split over threads round differently
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stand_ins = {name for runs in trained.values() for run in runs for name in run.record()["stand_ins"]}

    def run(seed: int, folder: Path) -> Outcome:
        decoders = {name: load_decoder(_with_seed(name, runs, seed), device) for name, runs in trained.items()}
        outcome: Outcome = module.evaluate(settings, cache, decoders, seed=seed, progress=Progress("parts"))
        return outcome

    record_runs(
        line,
        (f"ghost.steps.{line['step']}", line["module"]),
        out,
        run,
        inputs=needs,
        stand_ins=stand_ins.union(cache.stand_ins if cache else ()),
    )


def _with_seed(name: str, runs: list[Run], seed: int) -> Run:
    for run in runs:
        if run.seed == seed:
            return run
    raise GhostError(f"{name} was not trained with seed {seed}, only with {', '.join(str(run.seed) for run in runs)}")


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(evaluate))
