"""dvc.yaml from the table: a stage per figure, per table, and one for the paper.

Snakemake owns the DAG, DVC owns the bytes: a stage's command is one Snakemake target. Its dependencies are the code
behind it and the configuration; `persist` keeps DVC from deleting outputs before Snakemake has looked at them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from ghost.config import Config, load
from ghost.experiments import ARTEFACTS, EXPERIMENTS
from ghost.files import write_text
from ghost.sources import ROOT, sources
from ghost.table import Artefact

HEAD = "# Generated from the table by `ghost dvc`; do not edit.\n"
ALWAYS = ("Snakefile", "config/laptop.yaml", "src/ghost/experiments", "src/ghost/table.py")


def stages() -> dict[str, Any]:
    """The stages, at laptop scale."""
    config = load({})
    built = [artefact for artefact in ARTEFACTS if artefact.step]
    made = {artefact.stage: _stage(outputs(artefact, config), dependencies(artefact)) for artefact in built}
    everything = sorted({path for artefact in built for path in dependencies(artefact)} | {"paper/main.tex"})
    return {**made, "paper": _stage([str(config.pdf)], [*everything, "paper/sections"])}


def outputs(artefact: Artefact, config: Config) -> list[str]:
    """The files of a figure or table."""
    if artefact.kind == "tab":
        return [str(config.generated / f"{artefact.stage}.tex")]
    return [str(config.figures / f"{artefact.label}.{suffix}") for suffix in ("pdf", "pgf", "png")]


def dependencies(artefact: Artefact) -> list[str]:
    modules = {module for row in EXPERIMENTS if row.name in artefact.experiments for module in row.modules}
    code = sources(*sorted(modules | set(artefact.modules)))
    return sorted({*ALWAYS, *artefact.sources, *(str(path.relative_to(ROOT.parents[1])) for path in code)})


def _stage(outs: Iterable[str], deps: Iterable[str]) -> dict[str, Any]:
    targets = list(outs)
    return {
        "cmd": f"snakemake {' '.join(targets)}",
        "deps": list(deps),
        "outs": [{target: {"persist": True}} for target in targets],
    }


def write_stages(path: Path) -> None:
    write_text(path, stages_text())


def stages_text() -> str:
    return HEAD + yaml.safe_dump({"stages": stages()}, sort_keys=False, width=120)
