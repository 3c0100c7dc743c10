"""`ghost list`: everything that has a name, a line each: experiments, figures, tables, decoders, steps."""

import ast
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

from ghost.errors import GhostError, did_you_mean
from ghost.runs.code import ROOT
from ghost.runs.records import open_runs
from ghost.study.builds import Config

Columns = list[str]


def listing(config: Config, what: str = "", text: str = "") -> str:
    """The lines of one kind, or of all kinds, that contain a text; without either, how many there are of each kind."""
    if what and what not in KINDS:
        raise GhostError(f"there is no list of {what!r}{did_you_mean(what, KINDS)}")
    lines = {kind: [line for line in of(config) if text in "  ".join(line)] for kind, of in KINDS.items()}
    if not what and not text:
        return "\n".join(f"{kind:12} {len(found):3}    ghost list {kind}" for kind, found in lines.items())
    chosen = [line for kind in ([what] if what else KINDS) for line in aligned(lines[kind])]
    if not chosen:
        raise GhostError(f"nothing{f' among the {what}' if what else ''} contains {text!r}")
    return "\n".join(chosen)


def aligned(lines: list[Columns]) -> list[str]:
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=False)).rstrip() for line in lines]


def _experiments(config: Config) -> list[Columns]:
    """Name, step, module, seeds, finished runs, the experiments that it needs."""
    lines = []
    for experiment in config.experiments:
        manifest = config.manifest(experiment.name)
        made = _count(len(open_runs(manifest)), "run") if manifest.exists() else "not run"
        needs = f"needs {', '.join(experiment.needs)}" if experiment.needs else ""
        seeds = _count(len(experiment.seeds), "seed")
        lines.append([experiment.name, experiment.step, experiment.module, seeds, made, needs])
    return lines


def _artefacts(config: Config, kind: str) -> list[Columns]:
    """Label, the step that makes it, its number of cells, the experiments that these rest on."""
    return [
        [each.id, each.step or "not built", _count(len(each.cells), "cell"), ", ".join(each.experiments)]
        for each in config.artefacts
        if each.kind == kind
    ]


def _decoders(config: Config) -> list[Columns]:
    """Name, file, the experiments that train it."""
    trained: dict[str, list[str]] = {}
    for experiment in config.experiments:
        trained.setdefault(experiment.module, []).append(experiment.name)
    return [
        [path.stem, _file(path), ", ".join(trained.get(f"ghost.decoders.{path.stem}", ["no experiment trains it"]))]
        for path in sorted((ROOT / "decoders").glob("*.py"))
        if any(isinstance(node, ast.ClassDef) and node.name == "Decoder" for node in _tree(path).body)
    ]


def _steps(config: Config) -> list[Columns]:
    """Name, file, number of experiments, what it does."""
    return [
        [
            path.stem,
            _file(path),
            _count(sum(experiment.step == path.stem for experiment in config.experiments), "experiment"),
            (ast.get_docstring(_tree(path)) or "").partition("\n")[0].partition(": `")[0].rstrip(":"),
        ]
        for path in sorted((ROOT / "steps").glob("[!_]*.py"))
    ]


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def _file(path: Path) -> str:
    return str(Path("src") / path.relative_to(ROOT.parent))


KINDS: dict[str, Callable[[Config], list[Columns]]] = {
    "experiments": _experiments,
    "figures": lambda config: _artefacts(config, "fig"),
    "tables": lambda config: _artefacts(config, "tab"),
    "decoders": _decoders,
    "steps": _steps,
}
