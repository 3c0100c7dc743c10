"""dvc.yaml from the study: a stage per experiment, per figure, per table, and one for the paper.

Snakemake owns the DAG, DVC owns the bytes: a stage's command runs Snakemake on its targets, then `ghost snapshot`,
which keeps Snakemake's records of them (ghost.project.snapshots). The stages together output all that `snakemake all`
makes, so a clone with `dvc pull` lacks nothing. `persist` keeps DVC from deleting outputs before Snakemake has checked
them. A build's settings are parameters (`dvc exp run -S`), measured numbers are metrics, figures are plots.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from ghost.errors import GhostError, did_you_mean
from ghost.runs.code import ROOT, imports, sources
from ghost.study import ARTEFACTS
from ghost.study.builds import Config, load
from ghost.study.declarations import Artefact, Experiment

HEAD = "# Generated from the study by `ghost dvc`; do not edit.\n"
PARAMETERS = "config/laptop.yaml"
NOTEBOOK = "notebooks/ghost_walkthrough.html"
NOTEBOOK_SOURCE = "workflow/notebooks/ghost_walkthrough.py"
PAGE = ("src/ghost/audit/page.html.jinja", "src/ghost/audit/page.js")
TEXT = (
    *("paper/main.tex", "paper/ghost.sty", "paper/references.bib", "paper/sections", "workflow/notebooks"),
    *("paper/claims.yaml", "paper/sentences.yaml"),
)
ALWAYS = ("Snakefile", "src/ghost/study")


@dataclass(frozen=True)
class Stage:
    """One stage of DVC: it keeps `outs`; Snakemake makes `targets`, which are among them."""

    name: str
    deps: tuple[str, ...]
    targets: tuple[str, ...]
    folder: str = ""  # of runs: DVC keeps all of it, also the files that Snakemake does not know
    metrics: str = ""

    @property
    def outs(self) -> tuple[str, ...]:
        return (self.folder,) if self.folder else self.targets

    @property
    def snapshot(self) -> str:
        return f"data/laptop/snapshots/{self.name}.json"

    def declaration(self) -> dict[str, Any]:
        """The stage's entry in dvc.yaml."""
        return {
            "cmd": f"snakemake {' '.join(self.targets)} && ghost snapshot {self.name}",
            "deps": sorted(self.deps),
            "params": [{PARAMETERS: ["steps", "experiments"]}],
            "outs": [{out: {"persist": True}} for out in (*self.outs, self.snapshot) if out != self.metrics],
            **({"metrics": [{self.metrics: {"persist": True}}]} if self.metrics else {}),
        }


def stages() -> dict[str, Stage]:
    """The stages by name, at laptop scale, in the order the data flows."""
    config = load({})
    runs = [_experiment_stage(experiment, config) for experiment in config.experiments]
    artefacts = [_artefact_stage(artefact, config) for artefact in ARTEFACTS if artefact.step]
    return {stage.name: stage for stage in (*runs, *artefacts, _paper_stage(artefacts, config))}


def find_stage(name: str) -> Stage:
    known = stages()
    if name not in known:
        raise GhostError(f"no stage {name!r}{did_you_mean(name, known)}")
    return known[name]


def _experiment_stage(experiment: Experiment, config: Config) -> Stage:
    manifest = config.manifest(experiment.name)
    needs = [str(config.manifest(need).parent) for need in experiment.needs]
    deps = (*ALWAYS, *_code(*experiment.modules, science=True), *experiment.reads, *needs)
    return Stage(f"run_{experiment.name}", deps, (str(manifest),), str(manifest.parent))


def _artefact_stage(artefact: Artefact, config: Config) -> Stage:
    runs = [str(config.manifest(name).parent) for name in artefact.experiments]
    code = _code(*artefact.modules, *artefact.implementations)
    cells = str(config.data / "cells" / f"{artefact.stage}.jsonl")
    return Stage(artefact.stage, (*ALWAYS, *code, *artefact.sources, *runs), (*files(artefact, config), cells))


def _paper_stage(artefacts: list[Stage], config: Config) -> Stage:
    metrics = str(config.data / "metrics.json")
    made = [config.data / name for name in ("cells.jsonl", "results.csv", "audit.html", NOTEBOOK)]
    generated = [config.generated / f"{name}.tex" for name in ("numbers", "provenance_entries", "verdict_entries")]
    targets = [str(path) for path in (config.pdf, *generated, *made, config.inventory)]
    steps = ("collect", "macros", "typeset", "audit", "notebook", "inventory")
    code = _code(*(f"ghost.steps.{step}" for step in steps), *imports(ROOT.parents[1] / NOTEBOOK_SOURCE))
    deps = (*ALWAYS, *TEXT, *PAGE, *code, *(out for a in artefacts for out in a.outs))
    return Stage("paper", deps, (*targets, metrics), metrics=metrics)


def files(artefact: Artefact, config: Config) -> list[str]:
    """The files of a figure or table."""
    if artefact.kind == "tab":
        return [str(config.generated / f"{artefact.stage}.tex")]
    return [str(config.figures / f"{artefact.label}.{suffix}") for suffix in ("pdf", "pgf", "png")]


def _code(*modules: str, science: bool = False) -> list[str]:
    return [str(path.relative_to(ROOT.parents[1])) for path in sources(*modules, science=science)]


def stages_text() -> str:
    """The whole of dvc.yaml."""
    known = stages()
    pictures = [target for stage in known.values() for target in stage.targets if target.endswith(".png")]
    declared = {"stages": {name: stage.declaration() for name, stage in known.items()}, "plots": pictures}
    return HEAD + yaml.safe_dump(declared, sort_keys=False, width=120)
