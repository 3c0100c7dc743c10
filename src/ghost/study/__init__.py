"""THE TABLE: every experiment, and every figure and table of the report with the numbers that stand in it.

Wildcards, targets, cells, LaTeX macros, DVC stages and the audit derive from here; nothing else lists them.

* An `Experiment` is run by a step (`python -m ghost.<step>`) once per seed. Its settings are the paper's own sizes;
  `config/<scale>.yaml` says what is smaller at a scale. It may need other experiments: their runs are its inputs.
* An `Artefact` is a figure or a table under the paper's own label:
      fig:<label> -> figures/<label>.{pdf,png,pgf}        -> DVC stage fig_<label>
      tab:<label> -> paper/generated/tab_<label>.tex      -> DVC stage tab_<label>
  One without a step is declared, and shown as "not built".
* A `Cell` is one number (or one curve) that the report shows: `\\cell{fig:switch_speed/ghost/min_ratio}` in the text,
  `ghost audit fig:switch_speed/ghost/min_ratio` on the command line.

To add an experiment: write src/ghost/simulations/<name>.py, add a row beside its kin, name it in a figure or table.
"""

from __future__ import annotations

from ghost.errors import GhostError, did_you_mean
from ghost.study import analytic, benchmarks, libero, offline, switching
from ghost.study.declarations import Artefact, Experiment, check

EXPERIMENTS: tuple[Experiment, ...] = (
    *analytic.EXPERIMENTS,
    *offline.EXPERIMENTS,
    *switching.EXPERIMENTS,
    *libero.EXPERIMENTS,
    *benchmarks.EXPERIMENTS,
)

ARTEFACTS: tuple[Artefact, ...] = (
    *analytic.ARTEFACTS,
    *offline.ARTEFACTS,
    *switching.ARTEFACTS,
    *libero.ARTEFACTS,
    *benchmarks.ARTEFACTS,
)

check(EXPERIMENTS, ARTEFACTS)


def find_artefact(identity: str) -> Artefact:
    for artefact in ARTEFACTS:
        if artefact.id == identity:
            return artefact
    raise GhostError(f"no figure or table {identity!r}{did_you_mean(identity, [a.id for a in ARTEFACTS])}")
