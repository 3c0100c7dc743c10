"""What each figure and table of a build rests on, as one hash each: the dependency of its stage in dvc.yaml.

DVC compares files, and cannot see that one edited experiment concerns two figures only. So the first stage of dvc.yaml
depends on all sources and writes a line per figure and table. A recipe covers what the rules of Snakemake compare:
settings, seeds, code without comments, pinned packages, files that are read; and the rules themselves.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ghost.files import canonical, sha256
from ghost.runs.code import code_hash, imports
from ghost.study import ARTEFACTS
from ghost.study.builds import Config
from ghost.study.declarations import Artefact

NOTEBOOKS = "workflow/notebooks"
TEXT = (
    *("paper/main.tex", "paper/supplement.tex", "paper/ghost.sty", "paper/references.bib", "paper/sections"),
    "paper/studies",
    *("paper/tikz", "paper/claims.yaml", "paper/sentences.yaml"),
)
PAGE = tuple(f"src/ghost/audit/{name}" for name in ("page.html.jinja", "page.js", "page_runs.js"))
REPORT = ("collect", "macros", "typeset", "audit", "notebook", "inventory")  # the steps behind figures and tables


def recipes(config: Config) -> dict[str, str]:
    """Stage -> the hash of what it rests on: every figure and table, and the paper."""
    rules = _contents(["Snakefile", "workflow/rules"])
    runs: dict[str, str] = {}
    for experiment in config.experiments:  # what an experiment needs stands above it
        runs[experiment.name] = _digest(
            config.declaration(experiment.name),
            code_hash(*experiment.modules, science=True),
            _contents(map(str, config.locks(experiment.name))),
            _contents(experiment.reads),
            [runs[need] for need in experiment.needs],
        )
    made = {artefact.stage: _artefact(artefact.within(runs), runs, rules) for artefact in ARTEFACTS if artefact.step}
    notebooks = {name for path in sorted(Path(NOTEBOOKS).glob("*.py")) for name in imports(path.resolve())}
    code = code_hash(*(f"ghost.steps.{step}" for step in REPORT), *sorted(notebooks))
    return {**made, "paper": _digest(rules, made, runs, code, _contents([*TEXT, *PAGE, NOTEBOOKS]))}


def _artefact(artefact: Artefact, runs: dict[str, str], rules: dict[str, str]) -> str:
    return _digest(
        rules,
        artefact.declaration(),
        artefact.layout(),
        code_hash(*artefact.modules, *artefact.implementations),
        _contents(artefact.sources),
        {name: runs[name] for name in artefact.experiments},
    )


def _contents(names: Iterable[str]) -> dict[str, str]:
    """The sha256 of files, and of the files below folders."""
    paths = [path for name in names for path in ([Path(name)] if Path(name).is_file() else Path(name).rglob("*"))]
    return {str(path): sha256(path) for path in sorted(paths) if path.is_file() and "__pycache__" not in path.parts}


def _digest(*what: Any) -> str:
    return hashlib.sha256(canonical(what).encode()).hexdigest()[:16]
