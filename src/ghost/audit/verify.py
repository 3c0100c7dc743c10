"""`ghost audit --verify`: does everything still hold together, from the bytes of the runs to the text of the PDF?

    files      every file of every run is the one that its manifest lists
    records    every record is whole, and of the experiment and the seed of its folder
    seeds      every seed of the study is there
    inputs     every run was made from the runs and files that are there now, by the step, the code and the settings
               that are there now
    cells      every cell, computed anew from the measured values, is the one in cells.jsonl; so is results.csv
    text       numbers.tex, the tables and the appendices are what the cells give; no number is typed
    pdf        the PDF was made from these cells, and prints them where its links are

A problem names the file and what is wrong. Nothing is repaired: `snakemake all` does that.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdf
import pypdfium2

from ghost.audit.build import Build
from ghost.errors import GhostError
from ghost.files import canonical, confined, sha256
from ghost.report.appendix import anchor
from ghost.report.cells import read_cells
from ghost.report.latexmk import available
from ghost.report.lint import lint
from ghost.runs.code import code_hash
from ghost.runs.records import Run
from ghost.steps.collect import collect
from ghost.steps.macros import macros
from ghost.steps.summarize import correct, summarize_cell
from ghost.steps.tabulate import tabulate
from ghost.study import ARTEFACTS
from ghost.study.builds import Config
from ghost.study.declarations import Artefact, Experiment

MARGIN = 0.5  # points: less than the margin that TeX leaves around a link


@dataclass(frozen=True)
class Problem:
    kind: str  # one of the checks above
    where: str
    says: str


def verify(config: Config, parts: tuple[str, ...] = ("runs", "cells", "text", "pdf")) -> list[Problem]:
    """Every problem of a build, in the order the data flows; none when everything holds together."""
    problems: list[Problem] = []
    for part in parts:
        try:
            problems.extend(PARTS[part](config))
        except GhostError as error:  # an error that stops a check is a problem too
            problems.append(Problem(part, str(config.data), str(error)))
    return problems


def _runs(config: Config) -> Iterator[Problem]:
    listed: list[tuple[Path, str]] = []
    build = Build.open(config)
    for experiment in config.experiments:
        name, seeds, manifest = experiment.name, experiment.seeds, config.manifest(experiment.name)
        if name not in build.manifests:
            yield Problem("seeds", str(manifest), f"no runs of {name}")
            continue
        runs = build.manifests[name]
        missing = sorted(set(seeds) - {run.seed for run in runs})
        if missing:
            yield Problem("seeds", str(manifest), f"seeds {missing} of {name} are missing: {len(runs)} of {len(seeds)}")
        for run in runs:
            listed += [(confined(run.folder, file), expected) for file, expected in run.files.items()]
            path = str(run.folder / f"seed{run.seed}" / "run.json")
            try:
                record = run.record()
            except (GhostError, OSError) as error:
                yield Problem("records", path, str(error))
                continue
            yield from (Problem("records", path, says) for says in _misplaced(experiment, run, record))
            yield from (Problem("inputs", path, says) for says in _stale(build, experiment, record))
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter
        found = pool.map(lambda file: sha256(file) if file.exists() else "", [file for file, _ in listed])
        for (file, expected), digest in zip(listed, found, strict=True):
            if not digest:
                yield Problem("files", str(file), "is missing, though its manifest lists it")
            elif digest != expected:
                says = "was changed: it is not the file that its manifest lists (sha256 differs)"
                yield Problem("files", str(file), says)


def _misplaced(experiment: Experiment, run: Run, record: Mapping[str, Any]) -> Iterator[str]:
    if (record["experiment"], record["seed"]) != (experiment.name, run.seed):
        yield f"was swapped: this is the run of {record['experiment']}, seed {record['seed']}"
    recorded = {f"seed{run.seed}/{name}": entry["sha256"] for name, entry in record["outputs"].items()}
    if recorded != dict(run.files):
        yield "does not list the files that the manifest lists: swapped, or edited"


def _stale(build: Build, experiment: Experiment, record: Mapping[str, Any]) -> Iterator[str]:
    """What has changed since the run: runs and files that it used, its step, settings or code."""
    for name, entry in record["inputs"].items():
        if "run_id" in entry:
            yield from _stale_run(build, name, entry)
        elif not Path(name).is_file():  # nor a device, which has no end
            yield f"its input {name} is gone"
        elif sha256(Path(name)) != entry["sha256"]:
            yield f"is stale: {name} has changed since (was {entry['sha256'][:8]})"
    made, declared = (record["step"], record["module"]), (experiment.step, experiment.module)
    if made != declared:
        yield f"is stale: made by {' with '.join(made)}, the study has {' with '.join(declared)}"
    settings = dict(experiment.settings)
    if canonical(record["settings"]) != canonical(settings):
        changed = [key for key in settings if record["settings"].get(key) != settings[key]]
        yield f"is stale: {', '.join(changed)} changed in the study or the configuration"
    if record["code"]["sha256"] != code_hash(*experiment.modules, science=True):
        yield "is stale: its code has changed since"


def _stale_run(build: Build, name: str, entry: Mapping[str, str]) -> Iterator[str]:
    """Whether a run that was used, such as cvae/seed42, is still the one that its manifest lists."""
    experiment, _, seed = name.rpartition("/seed")
    listed = [run for run in build.manifests.get(experiment, []) if str(run.seed) == seed]
    if not listed:
        yield f"its input {name} is gone"
    elif listed[0].run_id != entry["run_id"]:
        yield f"is stale: it used run {entry['run_id']} of {name}, which is {listed[0].run_id} now"
    elif listed[0].content != entry["sha256"]:
        yield f"is stale: the files of {name} have changed since"


def _cells(config: Config) -> Iterator[Problem]:
    path, runs = config.data / "cells.jsonl", Build.open(config).manifests
    stored, computed = read_cells(path), set()
    for artefact in built():
        declared, made = artefact.declaration(), []
        for cell in declared:
            computed.add(cell["id"])
            try:
                made.append(summarize_cell(cell, runs.get(cell["experiment"], []), runs.get(cell["against"], [])))
            except (GhostError, OSError) as error:
                yield Problem("cells", cell["id"], str(error))
        correct(made, {cell["id"]: cell["digits"] for cell in declared})
        for cell in made:
            if cell["id"] not in stored:
                yield Problem("cells", str(path), f"{cell['id']} is missing")
            elif canonical(cell) != canonical(stored[cell["id"]]):
                yield _unlike(path, stored[cell["id"]], cell)
    for identity in stored.keys() - computed:
        yield Problem("cells", str(path), f"{identity} is not in the study")
    yield from _results(config, path)


def _unlike(path: Path, stored: dict[str, Any], computed: dict[str, Any]) -> Problem:
    keys = [key for key in computed if canonical(computed[key]) != canonical(stored.get(key))]
    said = ", ".join(f"{key} {stored.get(key)} is {computed[key]}" for key in keys)
    return Problem("cells", str(path), f"{stored['id']} does not recompute from the measured values: {said}")


def _results(config: Config, cells: Path) -> Iterator[Problem]:
    manifests = tuple(config.manifest(name) for name in Build.open(config).manifests)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        collect((cells,), manifests, made / "cells.jsonl", made / "results.csv", made / "metrics.json")
        for name in ("results.csv", "metrics.json"):
            path = config.data / name
            if not path.exists() or path.read_bytes() != (made / name).read_bytes():
                yield Problem("cells", str(path), "is not what the measured values give")


def built() -> list[Artefact]:
    """The figures and tables that are made here: without TeX, not the drawings."""
    return [artefact for artefact in ARTEFACTS if artefact.step and (available() or artefact.step != "draw")]


def _text(config: Config) -> Iterator[Problem]:
    cells = config.data / "cells.jsonl"
    for complaint in lint(Path("paper"), read_cells(cells)):
        yield Problem("text", complaint.split(": ")[0], complaint.partition(": ")[2])
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        macros(cells, config.scale, made, config.page, tuple(artefact.id for artefact in built()))
        for artefact in built():
            if artefact.step == "tabulate":
                tabulate(artefact.id, cells, made / f"{artefact.stage}.tex")
        for path in sorted(made.iterdir()):
            written = config.generated / path.name
            if not written.exists():
                yield Problem("text", str(written), "is missing")
            elif written.read_bytes() != path.read_bytes():
                yield Problem("text", str(written), f"was edited, or is stale: {_first_difference(written, path)}")


def _first_difference(written: Path, made: Path) -> str:
    ours, theirs = (path.read_text(encoding="utf-8").splitlines() for path in (written, made))
    for number, (a, b) in enumerate(zip(ours, theirs, strict=False), 1):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            has, give = a[max(0, at - 30) : at + 20], b[at : at + 20]
            return f"line {number} has ...{has}... where the cells give ...{give}..."
    return f"it has {len(ours)} lines, the cells give {len(theirs)}"


def _pdf(config: Config) -> Iterator[Problem]:
    path, cells = config.pdf, config.data / "cells.jsonl"
    if not path.exists():
        if available():
            yield Problem("pdf", str(path), "is missing")
        return
    reader = pypdf.PdfReader(path)
    information = reader.metadata
    made_from = str(information.get("/GhostCells", "unknown")) if information else "unknown"
    if made_from != (here := sha256(cells)):
        says = f"is from another build: made from cells {made_from[:8]}, here is {here[:8]}"
        yield Problem("pdf", str(path), says)
    stored = {anchor(identity): cell for identity, cell in read_cells(cells).items()}
    names, document = set(reader.named_destinations), pypdfium2.PdfDocument(path)
    for number, page in enumerate(reader.pages):
        text = document[number].get_textpage()
        for target, printed in _links(page, text):
            if target not in names:
                yield Problem("pdf", f"{path}, page {number + 1}", f"a link leads nowhere: {target}")
            cell = stored.get(target.removeprefix("prov:"))
            if cell and target.startswith("prov:") and not re.fullmatch(_as_printed(cell), printed):
                said = f"prints {printed!r} where the cell {cell['id']} has {cell['shown']!r}"
                yield Problem("pdf", f"{path}, page {number + 1}", said)


def _links(page: pypdf.PageObject, text: pypdfium2.PdfTextPage) -> list[tuple[str, str]]:
    """The targets of a page's links, and the text under each. A link that is broken over lines counts once."""
    characters = [(*text.get_charbox(index), index) for index in range(text.count_chars())]
    found: list[tuple[str, str]] = []
    for annotation in page.get("/Annots", []):
        entry = annotation.get_object()
        action = entry.get("/A", {})
        if action.get("/S") != "/GoTo":
            continue
        left, bottom, right, top = map(float, entry["/Rect"])
        inside = [
            index
            for x0, y0, x1, y1, index in characters
            if left + MARGIN < (x0 + x1) / 2 < right - MARGIN and bottom < (y0 + y1) / 2 < top
        ]
        printed = _plain("".join(text.get_text_range(index, 1) for index in inside))
        target = str(action["/D"])
        if found and found[-1][0] == target:
            found[-1] = (target, found[-1][1] + printed)
        else:
            found.append((target, printed))
    return found


def _as_printed(cell: dict[str, Any]) -> str:
    """A pattern for a cell's text in the PDF: with its unit in prose, without it in a table, or the link [runs]."""
    shown = _plain(re.sub(r"e([-+])0*(\d+)", lambda match: f"×10{match[1].strip('+')}{match[2]}", cell["shown"]))
    value, unit = re.escape(shown), re.escape(_plain(cell["unit"]))
    return rf"(?:{value}(?:{unit})?|\[runs\])+"


def _plain(text: str) -> str:
    return re.sub(r"[\s\x00-\x1f]", "", text.replace("−", "-").replace("–", "-").replace("·", "×"))


PARTS: dict[str, Callable[[Config], Iterator[Problem]]] = {"runs": _runs, "cells": _cells, "text": _text, "pdf": _pdf}


def report(problems: list[Problem]) -> str:
    """For people: a line per problem, the total last."""
    lines = [f"{problem.kind:8} {problem.where}: {problem.says}" for problem in problems]
    return "\n".join([*lines, f"{len(problems)} problems" if problems else "verified: everything holds together"])
