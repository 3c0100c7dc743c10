"""dvc.yaml from the table: a stage per experiment, per figure, per table, and one for the paper.

Snakemake owns the DAG, DVC owns the bytes: a stage's command is its Snakemake targets, then `ghost snapshot`, which
keeps what Snakemake knows about them (ghost.project.snapshots). Together the outputs of the stages are all that `snakemake all`
makes, so that a clone with `dvc pull` lacks nothing. `persist` keeps DVC from deleting outputs before Snakemake has
looked at them. A scale's settings are parameters (`dvc exp run -S`), measured numbers are metrics, figures are plots.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ghost.errors import GhostError, did_you_mean
from ghost.files import write_text
from ghost.runs.code import ROOT, imports, sources
from ghost.study import ARTEFACTS
from ghost.study.builds import Config, load
from ghost.study.declarations import Artefact, Experiment

HEAD = "# Generated from the table by `ghost dvc`; do not edit.\n"
PARAMETERS = "config/laptop.yaml"
NOTEBOOK = "notebooks/ghost_walkthrough.html"
NOTEBOOK_SOURCE = "workflow/notebooks/ghost_walkthrough.py"
PAGE = ("src/ghost/audit/page.html.jinja", "src/ghost/audit/page.js")
ALWAYS = ("Snakefile", "src/ghost/study")


@dataclass(frozen=True)
class Stage:
    """What DVC runs as one piece: `outs` are what it keeps, `targets` those among them that Snakemake makes."""

    name: str
    deps: tuple[str, ...]
    targets: tuple[str, ...]
    folder: str = ""  # of runs: kept whole, also the files that Snakemake does not know
    metrics: str = ""

    @property
    def outs(self) -> tuple[str, ...]:
        return (self.folder,) if self.folder else self.targets

    @property
    def snapshot(self) -> str:
        return f"data/laptop/snapshots/{self.name}.json"

    def declaration(self) -> dict[str, Any]:
        """As dvc.yaml has it."""
        kept = [{out: {"persist": True}} for out in (*self.outs, self.snapshot) if out != self.metrics]
        return {
            "cmd": f"snakemake {' '.join(self.targets)} && ghost snapshot {self.name}",
            "deps": sorted(self.deps),
            "params": [{PARAMETERS: ["steps", "experiments"]}],
            "outs": kept,
            **({"metrics": [{self.metrics: {"persist": True}}]} if self.metrics else {}),
        }


def stages() -> dict[str, Stage]:
    """The stages by name, at laptop scale, in the order the data flows."""
    config = load({})
    built = [artefact for artefact in ARTEFACTS if artefact.step]
    runs = [_experiment_stage(row, config) for row in config.experiments]
    artefacts = [_artefact_stage(artefact, config) for artefact in built]
    return {stage.name: stage for stage in (*runs, *artefacts, _paper_stage(artefacts, config))}


def find_stage(name: str) -> Stage:
    known = stages()
    if name not in known:
        raise GhostError(f"no stage {name!r}{did_you_mean(name, known)}")
    return known[name]


def _experiment_stage(row: Experiment, config: Config) -> Stage:
    manifest = config.manifest(row.name)
    needs = [str(config.manifest(need).parent) for need in row.needs]
    deps = (*ALWAYS, *_code(*row.modules, science=True), *row.reads, *needs)
    return Stage(f"run_{row.name}", deps, (str(manifest),), str(manifest.parent))


def _artefact_stage(artefact: Artefact, config: Config) -> Stage:
    runs = [str(config.manifest(name).parent) for name in artefact.experiments]
    code = _code(*artefact.modules, *artefact.implementations)
    cells = str(config.data / "cells" / f"{artefact.stage}.jsonl")
    return Stage(artefact.stage, (*ALWAYS, *code, *artefact.sources, *runs), (*files(artefact, config), cells))


def _paper_stage(artefacts: list[Stage], config: Config) -> Stage:
    data, text = (
        config.data,
        (
            *("paper/main.tex", "paper/ghost.sty", "paper/references.bib", "paper/sections", "workflow/notebooks"),
            *("paper/claims.yaml", "paper/sentences.yaml", *PAGE),
        ),
    )
    steps = ("collect", "macros", "typeset", "audit", "notebook")
    metrics = str(data / "metrics.json")
    made = [data / name for name in ("cells.jsonl", "results.csv", "audit.html", NOTEBOOK)]
    generated = [config.generated / f"{name}.tex" for name in ("numbers", "provenance_entries", "verdict_entries")]
    targets = [str(path) for path in (config.pdf, *generated, *made)]
    code = _code(*(f"ghost.steps.{step}" for step in steps), *imports(ROOT.parents[1] / NOTEBOOK_SOURCE))
    deps = (*ALWAYS, *text, *code, *(out for a in artefacts for out in a.outs))
    return Stage("paper", deps, (*targets, metrics), metrics=metrics)


def files(artefact: Artefact, config: Config) -> list[str]:
    """The files of a figure or table."""
    if artefact.kind == "tab":
        return [str(config.generated / f"{artefact.stage}.tex")]
    return [str(config.figures / f"{artefact.label}.{suffix}") for suffix in ("pdf", "pgf", "png")]


def _code(*modules: str, science: bool = False) -> list[str]:
    return [str(path.relative_to(ROOT.parents[1])) for path in sources(*modules, science=science)]


def write_stages(path: Path) -> None:
    write_text(path, stages_text())


def stages_text() -> str:
    known = stages()
    pictures = [target for stage in known.values() for target in stage.targets if target.endswith(".png")]
    declared = {"stages": {name: stage.declaration() for name, stage in known.items()}, "plots": pictures}
    return HEAD + yaml.safe_dump(declared, sort_keys=False, width=120)
