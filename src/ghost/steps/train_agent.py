"""Train an agent, once per seed: `python -m ghost.steps.train_agent --row '{...}' [--needs demos.json] --out ...`.

The row's module is an agent (`ghost.agents` has the contract); its settings are the agent's `Settings` and those of
`ghost.steps.train.Training` in one flat list. What it needs are demonstrations or histories; an agent that learns by acting
needs nothing. The loop is that of `ghost.steps.train`: the same resumption, the same determinism.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import tyro

from ghost.errors import exit_on_error
from ghost.files import sha256
from ghost.runs.code import code_hash
from ghost.runs.progress import Progress
from ghost.runs.records import record_runs
from ghost.runs.results import Outcome
from ghost.runs.settings import read_row, read_settings
from ghost.steps.train import STATE, Fit, be_deterministic, split_settings
from ghost.training.checkpoint import MODEL, save_decoder


def train_agent(row: str, out: Path, needs: tuple[Path, ...] = ()) -> None:
    """Train every seed of a row.

    Args:
        row: a line of the table, as JSON.
        out: the manifest to write; the runs go beside it.
        needs: the manifest of what it learns from, if that is not its own acting.
    """
    line = read_row(row)
    module = importlib.import_module(line["module"])
    settings, training = read_settings(line, lambda **given: split_settings(given, module))
    be_deterministic()
    identity = {
        "row": line,
        "needs": [sha256(path) for path in needs],
        "code": code_hash("ghost.steps.train_agent", line["module"], science=True),
    }
    progress = Progress("epochs")

    def run(seed: int, folder: Path) -> Outcome:
        before = line["seeds"].index(seed) * training.epochs

        def tell(epoch: int, text: str) -> None:
            progress(before + epoch, len(line["seeds"]) * training.epochs, f"seed {seed}, {text}")

        samples = module.gather(settings, needs, seed)
        fit = Fit(module, settings, training, samples, seed, folder / STATE, {**identity, "seed": seed})
        fit.run(tell)
        save_decoder(folder / MODEL, line["module"], fit.decoder, fit.weights())
        return fit.outcome()

    record_runs(line, ("ghost.steps.train_agent", line["module"]), out, run, inputs=needs)
    for seed in line["seeds"]:
        (out.parent / f"seed{seed}" / STATE).unlink(missing_ok=True)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(train_agent))
