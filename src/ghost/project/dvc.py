"""dvc.yaml from the study, and the parts of a build whose bytes DVC keeps.

Snakemake owns the DAG, DVC owns the bytes. dvc.yaml has a stage per figure and table of the build at the root, and one
for the paper. Each depends on one line of data/recipes.json (ghost.project.recipes), which the first stage writes, so
an edit reruns only the stages that it concerns. All else of a build, its runs above all, lies in `data/<build>`, which
`ghost keep` gives to DVC as one folder. `persist` keeps DVC from deleting outputs before Snakemake has checked them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ghost.errors import GhostError, did_you_mean
from ghost.project.recipes import NOTEBOOKS, TEXT
from ghost.report.headlines import metric_names
from ghost.report.inventory import NOTEBOOK
from ghost.study import ARTEFACTS, SHIPPED
from ghost.study.builds import Config, load
from ghost.study.closed_loop import STUDIES
from ghost.study.declarations import Artefact

HEAD = """\
# Written by `ghost dvc` from the study; do not edit. docs/share.md says when to use Snakemake, and when DVC.
#
# dvc repro                    the whole report: one `snakemake all`
# dvc repro fig_switch_speed   one figure and what it needs: one Snakemake
# dvc push, dvc pull           the bytes: what these stages make, and the builds that `ghost keep` has kept (data/*.dvc)
"""
RECIPES = "data/recipes.json"
TRIAL = "data/trial_metrics"
PAPER = "paper"
# Whatever a recipe may rest on. A stage that makes one of these files would depend on itself: hence no `paper`.
MEASURED = ("data/bench", *((STUDIES,) if SHIPPED else ()))
SOURCES = ("Snakefile", "workflow/rules", NOTEBOOKS, "src/ghost", "requirements.lock", *MEASURED, *TEXT)


@dataclass(frozen=True)
class Part:
    """A part of a build that DVC keeps as one: the runs of an experiment, a figure or table, or the report."""

    name: str  # run_<experiment>, fig_<label>, tab_<label> or paper
    targets: tuple[str, ...]  # the files that Snakemake knows
    folder: str = ""  # of runs: all of its files belong to the part

    @property
    def made(self) -> list[str]:
        """The targets that are there. Without TeX, or if one file was asked for, they are not all."""
        return [target for target in self.targets if Path(target).is_file()]


def parts(config: Config) -> dict[str, Part]:
    """The parts of a build by name, in the order the data flows."""
    manifests = {experiment.name: config.manifest(experiment.name) for experiment in config.experiments}
    runs = [Part(f"run_{name}", (str(path),), str(path.parent)) for name, path in manifests.items()]
    made = [Part(a.stage, (*files(a, config), _cells(a, config))) for a in ARTEFACTS if a.step]
    return {part.name: part for part in (*runs, *made, Part(PAPER, tuple(_report(config))))}


def find_artefact_or_paper(name: str) -> str:
    """The stage of a figure or table (fig:switch_speed) or of the paper."""
    known = {PAPER: PAPER} | {artefact.id: artefact.stage for artefact in ARTEFACTS if artefact.step}
    if name not in known:
        raise GhostError(f"no figure or table {name!r}{did_you_mean(name, known)}")
    return known[name]


def files(artefact: Artefact, config: Config) -> list[str]:
    """The files of a figure or table."""
    if artefact.kind == "tab":
        return [str(config.generated / f"{artefact.stage}.tex")]
    return [str(config.figures / f"{artefact.label}.{suffix}") for suffix in ("pdf", "pgf", "png")]


def _cells(artefact: Artefact, config: Config) -> str:
    return str(config.data / "cells" / f"{artefact.stage}.jsonl")


def _report(config: Config) -> list[str]:
    names = ["cells.jsonl", "results.csv", "audit.html", f"notebooks/{NOTEBOOK}.html"]
    names += [f"metrics/{name}" for name in metric_names()]
    generated = [config.generated / f"{name}.tex" for name in ("numbers", "provenance_entries", "verdict_entries")]
    made = (config.data / name for name in names)
    return [str(path) for path in (*config.pdfs, *generated, *made, config.inventory)]


def stages_text() -> str:
    """The whole of dvc.yaml."""
    config = load({})
    artefacts = [artefact for artefact in ARTEFACTS if artefact.step]
    report = [path for path in _report(config) if not Path(path).is_relative_to(config.data)]
    stages = [
        _stage("recipes", "ghost recipes", _list("deps", (*SOURCES, *map(str, config.files))), [RECIPES]),
        _stage(PAPER, "ghost make paper && ghost keep", _rests_on(PAPER), report),
        *(_stage(a.stage, f"ghost make {a.id}", _rests_on(a.stage), files(a, config)) for a in artefacts),
        _stage("trial", "ghost trial ${what}", "    params: [what, experiments, steps]\n", [TRIAL]),
    ]
    pictures = [path for artefact in artefacts for path in files(artefact, config) if path.endswith(".png")]
    shown = _list("metrics", (f"{config.data}/metrics", TRIAL), "") + "\n" + _list("plots", pictures, "")
    return f"{HEAD}\nstages:\n" + "\n".join((*stages, shown))


def _stage(name: str, command: str, rests_on: str, outs: Iterable[str]) -> str:
    made = _list("outs", [f"{out}: {{persist: true}}" for out in outs])
    return f"  {name}:\n    cmd: {command}\n{rests_on}{made}"


def _rests_on(stage: str) -> str:
    return f"    params: [{RECIPES}: [{stage}]]\n"


def _list(key: str, values: Iterable[str], indent: str = "    ") -> str:
    return f"{indent}{key}:\n" + "".join(f"{indent}  - {value}\n" for value in values)
