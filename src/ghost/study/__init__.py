"""The study: every experiment, and every figure and table of the report with the numbers that stand in it.

Wildcards, targets, cells, LaTeX macros, DVC stages and the audit derive from here; nothing else lists them.

* An `Experiment` is run by a step (`python -m ghost.steps.<step>`) once per seed. Its settings are the paper's sizes;
  `config/<build>.yaml` says what is smaller in a build. It may need other experiments: their runs are its inputs.
* An `Artefact` is a figure or a table under the paper's own label, which its files and its DVC stage bear too. One
  without a step is declared, and shown as "not built". What a table prints is declared with `tabulated`.
* A `Cell` is one number (or one curve) that the report shows: `\\cell{fig:switch_speed/ghost/min_ratio}` in the text,
  `ghost audit fig:switch_speed/ghost/min_ratio` on the command line. Published numbers are in paper/claims.yaml alone.

docs/add-an-experiment.md and docs/add-a-decoder.md say how to add one.
"""

from ghost.errors import GhostError, did_you_mean
from ghost.study import (
    ablation,
    analytic,
    benchmarks,
    closed_loop,
    distillation,
    groot,
    libero,
    multi_task,
    offline,
    switching,
)
from ghost.study.declarations import Artefact, Experiment, check
from ghost.study.seeds import resolved

DECLARED: tuple[Experiment, ...] = tuple(
    experiment
    for part in (analytic, offline, multi_task, distillation, ablation, switching, libero, benchmarks)
    for experiment in part.EXPERIMENTS
)
SHIPPED = closed_loop.EXPERIMENTS  # what they read was recorded: no build changes their settings or seeds
EXPERIMENTS = (*resolved(DECLARED), *SHIPPED)  # with the seeds that the study gives them
STAND_INS = frozenset(s.of for experiment in (*DECLARED, groot.CHECKPOINT) for s in experiment.stand_ins)
ARTEFACTS: tuple[Artefact, ...] = tuple(
    artefact
    for part in (analytic, multi_task, distillation, offline, ablation, switching, libero, closed_loop, benchmarks)
    for artefact in part.ARTEFACTS
)
check((*DECLARED, *SHIPPED), ARTEFACTS)


def find_artefact(identity: str) -> Artefact:
    for artefact in ARTEFACTS:
        if artefact.id == identity:
            return artefact
    raise GhostError(f"no figure or table {identity!r}{did_you_mean(identity, [a.id for a in ARTEFACTS])}")
