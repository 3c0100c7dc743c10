"""`ghost choose`: the learning rate of each policy of LIBERO-10, from a build with candidates (ghost.study.candidates).

The rate with the most successes is chosen, the first of equally good ones; a rate at which the training diverged is
left out. What was seen, and in which runs, is written down with it: a file of config/ that the builds of the
closed-loop study extend.
"""

from pathlib import Path

import numpy as np

from ghost.errors import GhostError
from ghost.files import write_text
from ghost.runs.records import Run, open_runs
from ghost.study.builds import Config
from ghost.study.candidates import POLICIES, RATE, rollout_name, training_name

CHOSEN = Path("config/closed_loop_chosen.yaml")
DIVERGED = "the loss is not finite"  # as the training loop says it


def choose(config: Config, out: Path = CHOSEN) -> str:
    """Write the rates, and say what was chosen."""
    found = {policy: _candidates(config, policy) for policy in POLICIES}
    first = config.experiment(rollout_name(POLICIES[0], 1))
    rates = ", ".join(map(_decimal, found[POLICIES[0]]))
    where = f"env_seed {first.settings['env_seed']}, which the study does not use"
    lines = [
        f"# Written by `ghost choose`, from the build {config.scale}; do not edit.",
        f"# Of each policy the rate with the most successes in trials with {where}.",
        f"# Behind it: successes at {rates}, and the runs that acted.",
        "experiments:",
    ]
    for policy, tried in found.items():
        known = {rate: run for rate, run in tried.items() if run is not None}
        if not known:
            raise GhostError(f"{policy}: the training diverged at every rate; name smaller candidates")
        best = max(known, key=lambda rate: _successes(known[rate]))  # the first of equally good ones
        seen = ", ".join("diverged" if run is None else str(_successes(run)) for run in tried.values())
        ids = ", ".join(run.run_id for run in known.values())
        lines.append(f"  {policy}: {{{RATE}: {_decimal(best)}}} # {seen} of {_trials(known[best])}; {ids}")
    write_text(out, "\n".join(lines) + "\n")
    return f"{out}: the rates of {len(found)} policies, from {rates}"


def _candidates(config: Config, policy: str) -> dict[float, Run | None]:
    """The run that acted with each rate; None where the training diverged."""
    names = {experiment.name for experiment in config.experiments}
    numbers = [number for number in range(1, len(names)) if training_name(policy, number) in names]
    if not numbers:
        raise GhostError(f"the build {config.scale} has no candidates; closed_loop_choice has some")
    found: dict[float, Run | None] = {}
    for number in numbers:
        manifest, training = config.manifest(rollout_name(policy, number)), training_name(policy, number)
        diverged = _diverged(config.scale, training)
        if not manifest.is_file() and not diverged:
            raise GhostError(f"there is no {manifest}; run `snakemake study --config scale={config.scale}` first")
        rate = float(config.experiment(training).settings[RATE])
        found[rate] = None if diverged else open_runs(manifest)[0]
    return found


def _diverged(scale: str, training: str) -> bool:
    """By the log of the last attempt, since a training that diverged leaves no run."""
    log = Path("logs") / scale / "train" / f"{training}.log"
    return log.is_file() and DIVERGED in log.read_text(encoding="utf-8", errors="replace")


def _successes(run: Run) -> int:
    return round(run.value("all", "success") * _trials(run))


def _trials(run: Run) -> int:
    return next(m.n for m in run.measured() if (m.condition, m.metric) == ("all", "success"))


def _decimal(rate: float) -> str:
    """Without an exponent, which YAML would take for a text."""
    return np.format_float_positional(rate)
