"""`ghost audit CELL`: what a number is, the code that computed it, and the runs behind it.

A cell can be named by its id, by the beginning of ids, or by the number itself as the PDF prints it.
"""

import re
import textwrap
from collections.abc import Collection, Iterable
from typing import Any

from ghost.audit.build import Build
from ghost.audit.code_lines import Line, function_line, metric_line
from ghost.audit.listing import aligned
from ghost.errors import GhostError, did_you_mean
from ghost.files import canonical
from ghost.report.appendix import sides, unpaired
from ghost.report.over_cells import OVER_CELLS, parts_of
from ghost.runs.code import file_hash, module_path
from ghost.runs.environment import shortened
from ghost.runs.records import Run
from ghost.study.builds import Config

WIDTH = 110
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
NO_METRIC = ("setting", "runs", "module")  # estimators that take no measured value
Record = dict[str, Any]


def lookup(config: Config, asked: str, *, full: bool = False) -> str:
    """One cell explained, or a line for each of several."""
    build = Build.open(config)
    cells = choose(build, asked)
    if len(cells) == 1:
        return explain(build, cells[0], full=full)
    width = max((len(cell["id"]) for cell in cells), default=0)
    lines = [f"{cell['id']:{width}}  {display(cell)}" for cell in cells]
    return "\n".join([*lines, *(f"{identity}  not built" for identity in _not_built(build, asked))])


def as_json(config: Config, asked: str) -> list[Record]:
    """The same cells, each with the records of its runs and of all runs below them."""
    build = Build.open(config)
    return [
        {**cell, "records": [build.records[run.run_id] for _, run in build.lineage(cell["runs"])]}
        for cell in choose(build, asked)
    ]


def choose(build: Build, asked: str) -> list[Record]:
    """The cells that are asked for; none only where a figure or table is declared but not built."""
    cells, number = build.cells, _plain(asked)
    if NUMBER.match(number.lstrip("<>≈")):
        found = showing(cells.values(), number) or [cells[i] for i in _published(build, number) if i in cells]
        if not found:
            raise GhostError(f"no cell of {build.config.data} shows {asked}, and the article does not print it")
        return found
    found = [cell for identity, cell in cells.items() if _below(identity, asked)]
    if not found and not _not_built(build, asked):
        raise GhostError(
            f"no cell {asked!r}{did_you_mean(asked, [*cells, *(artefact.id for artefact in build.config.artefacts)])}"
        )
    return found


def showing(cells: Iterable[Record], number: str) -> list[Record]:
    """The cells whose text is the number; else those that print it beside others; else those that round to it."""
    shown = [(cell, _plain(cell["shown"]), _plain(cell["unit"])) for cell in cells]
    exact = [cell for cell, text, unit in shown if number in (text, f"{text}{unit}")]
    printed = [cell for cell, text, _ in shown if number in NUMBER.findall(text)]
    if exact or printed or not re.fullmatch(r"-?\d+(\.\d+)?", number):
        return exact or printed
    digits = len(number.partition(".")[2])
    return [cell for cell, _, _ in shown if cell["value"] is not None and f"{cell['value']:.{digits}f}" == number]


def _published(build: Build, number: str) -> list[str]:
    """The cells that answer to a number which the article prints."""
    claims = [(claim, _plain(claim.printed)) for claim in build.ledger.claims.values()]
    printing = [claim for claim, text in claims if number == text or number in NUMBER.findall(text)]
    return list(dict.fromkeys(identity for claim in printing for identity in claim.cell))


def _plain(text: str) -> str:
    """A number as it may be typed, or copied from the PDF: 4,614 as 4614, +0.2 as 0.2, 1.5 × 10−6 as 1.5e-6."""
    text = re.sub(r"\s*×\s*10\^?", "e", text.replace("−", "-"))
    text = re.sub(r"(?<=\d)e([-+]?)0*(\d)", lambda match: f"e{match[1].strip('+')}{match[2]}", text)
    text = re.sub(r"(?<=\d),(?=\d{3})|(?<![\de])\+(?=\d)", "", text)
    return "".join(text.split())


def _below(name: str, prefix: str) -> bool:
    """Prefixes end where a part of the id ends: fig:method is not below fig:met, but is below fig: and fig."""
    return name == prefix or name.startswith((f"{prefix.rstrip('/:')}/", f"{prefix.rstrip('/:')}:"))


def _not_built(build: Build, prefix: str) -> list[str]:
    return [artefact.id for artefact in build.config.artefacts if not artefact.step and _below(artefact.id, prefix)]


def display(cell: Record) -> str:
    """The value with its unit, and the reasons to doubt it."""
    unit = f" {cell['unit']}" if cell["unit"] else ""
    marks = (["reduced scale"] if cell["reduced"] else []) + [f"stand-in: {name}" for name in cell["stand_ins"]]
    shown = f"{cell['shown']} of {cell['n']} points" if cell["estimator"] == "series" else f"{cell['shown']}{unit}"
    return f"{shown}  [{'; '.join(marks)}]" if marks else shown


def explain(build: Build, cell: Record, *, full: bool = False) -> str:
    """The cell, its code, and its runs: once what they share, then for each run what differs."""
    check_runs(cell, build.runs)
    stage = cell["id"].partition("/")[0].replace(":", "_")
    scale = "" if build.config.scale == "laptop" else f" --config scale={build.config.scale}"
    remake = f"snakemake {build.config.data}/cells/{stage}.jsonl{scale}"
    lines = [*_about(build, cell), *_code(build, cell), *_lines("remake", remake)]
    said: dict[str, str] = {}
    for side in sides(cell):
        lines += _runs(build, cell, *side, said)
    if not cell["runs"]:
        lines += _lines("runs", "none: the value is read from the code")
    lines += _lineage(build, cell["runs"])
    if full:
        lines += [line for run_id in cell["runs"] for line in _everything(build, build.runs[run_id])]
    return "\n".join(lines)


def check_runs(cell: Record, runs: Collection[str]) -> None:
    for run_id in cell["runs"]:
        if run_id not in runs:
            raise GhostError(f"{cell['id']} rests on run {run_id}, which no manifest lists; run snakemake")


def _about(build: Build, cell: Record) -> list[str]:
    interval = "95 %: {:.6g} to {:.6g}".format(*cell["interval"]) if cell["interval"] else ""
    claims = [claim for claim in build.ledger.claims.values() if cell["id"] in claim.cell]
    published = [f"{claim.printed} {claim.unit}".strip() + f"  (verdict: ghost claims {claim.id})" for claim in claims]
    fields = [
        ("cell", cell["id"]),
        ("value", display(cell)),
        ("unrounded", "" if cell["value"] is None else repr(cell["value"])),
        ("interval", interval),
        ("n", "; ".join([str(cell["n"]), *unpaired(cell)])),
        ("sha256", cell["sha256"] or ""),
        *(("published", text) for text in published),
    ]
    return [line for name, text in fields for line in _lines(name, text)]


def _code(build: Build, cell: Record) -> list[str]:
    """Where the cell is declared, its estimator, what this is applied to, and the line that computes that."""
    artefact, _, name = cell["id"].partition("/")
    declared = [c for a in build.config.artefacts if a.id == artefact for c in a.cells if c.name == name]
    lines = _lines("declared", declared[0].declared if declared else "")
    module = "ghost.report.over_cells" if cell["estimator"] in OVER_CELLS else "ghost.report.estimators"
    estimator = function_line(module, cell["estimator"])
    lines += _lines("estimator", f"{cell['estimator']}, {estimator.where}" if estimator else cell["estimator"])
    if cell["estimator"] == "module":
        path = module_path(cell["metric"])
        return [*lines, *_lines("code", Line(path, 1).where if path else "")]
    if cell["estimator"] in OVER_CELLS:
        return [*lines, *_lines("of", ", ".join(parts_of(cell)))]
    computed: list[str] = []
    for word, (experiment, condition, metric) in zip(("of", "against"), sides(cell), strict=False):
        lines += _lines(word, f"{_named(condition, metric)} of {experiment}")
        modules = build.config.experiment(experiment).modules
        if cell["estimator"] not in NO_METRIC and (line := metric_line(modules, condition, metric)):
            code, function = line.text.partition("  #")[0], f"in {line.function}: " if line.function else ""
            text = f"{'computed':11}{line.where}  {function}{code}"
            computed.append(text if len(text) <= WIDTH else f"{text[: WIDTH - 4]} ...")
            if _changed(build, cell, experiment, line):
                computed += _lines("", f"src/{line.file} has changed since the runs; the line is the one of now")
    return [*lines, *dict.fromkeys(computed)]


def _changed(build: Build, cell: Record, experiment: str, line: Line) -> bool:
    records = [build.records[run_id] for run_id in cell["runs"] if build.runs[run_id].folder.name == experiment]
    recorded = [record["code"]["files"].get(line.file, {}).get("sha256") for record in records]
    return any(digest != file_hash(line.path) for digest in recorded if digest)


def _runs(build: Build, cell: Record, experiment: str, condition: str, metric: str, said: dict[str, str]) -> list[str]:
    """The runs of one experiment behind a cell; `said` holds what the lines above say of other runs."""
    runs = [build.runs[run_id] for run_id in cell["runs"] if build.runs[run_id].folder.name == experiment]
    if not runs:
        return []
    facts = [_facts(build.records[run.run_id]) for run in runs]
    shared = {name: text for name, text in facts[0].items() if all(fact[name] == text for fact in facts)}
    again = ", the rest as above" if said else ""
    lines = [f"{len(runs)} run{'s' * (len(runs) > 1)} of {experiment}, in {runs[0].folder}{again}"]
    news = {name: text or ("none" if said else "") for name, text in shared.items() if said.get(name) != text}
    lines += [line for name, text in news.items() for line in _lines(f"  {name}", text)]
    said |= shared
    values = [] if cell["estimator"] == "runs" else [_named(condition, metric)]
    table = [["run", "seed", *values, "start", "wall_s"]]
    for run, fact in zip(runs, facts, strict=True):
        record = build.records[run.run_id]
        differs = [f"{name} {text or 'none'}" for name, text in fact.items() if name not in shared]
        values = [_value(run, cell["estimator"], condition, metric)] if values else []
        table.append([run.run_id, str(run.seed), *values, record["start"], str(record["wall_s"]), "  ".join(differs)])
    return [*lines, *(f"  {line}" for line in aligned(table))]


def _facts(record: Record) -> dict[str, str]:
    """What runs of one experiment usually share."""
    commit, code = record["commit"] or "none", record["code"]
    gpus = ", ".join(f"{gpu['model']} {gpu['uuid']}" for gpu in record["gpus"]) or "no GPU"
    job = f", Slurm job {record['slurm_job_id']}" if record["slurm_job_id"] else ""
    places = record.get("places") or {}
    return {
        "step": f"{record['step']} with {record['module']}",
        "recorded": record["facts"].get("recorded", {}).get(str(record["seed"]), ""),
        "reduced": _reduced(record),
        "stand-ins": ", ".join(record["stand_ins"]),
        "outside": ", ".join(f"{name} {known[:16]} in {places.get(name)}" for name, known in record["outside"].items()),
        "code": f"{code['sha256'][:16]}, {len(code['files'])} files; lock {record['lock_sha256'][:16]}",
        "packages": _packages(record),
        "commit": f"{commit} with changes" if record["dirty_sha256"] else commit,
        "machine": f"{record['host']}, {record['cpu']}, {gpus}{job}",
    }


def _packages(record: Record) -> str:
    """The versions of what the run used, and where its environment was not that of its lock."""
    there = record.get("environment") or {"differs": []}
    used = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return f"{used}; not as in {there['lock']}: {shortened(there['differs'])}" if there["differs"] else used


def _reduced(record: Record) -> str:
    """The settings that are not the paper's: its own alone, since those of the runs below stand with them."""

    def short(value: Any) -> str:
        return f"[{value[0]}, ..., {value[-1]}]" if isinstance(value, list) and len(value) > 3 else str(value)

    own = {name: value for name, value in record["reduced"].items() if "." not in name}
    if "reduced" in own:  # of a run that was read (ghost.data.shipped), in words already
        return ", ".join(own["reduced"]["here"])
    found = [f"{name} {short(value['here'])} ({short(value['paper'])})" for name, value in own.items()]
    return ", ".join(found).replace("(", "(paper: ", 1)


def _value(run: Run, estimator: str, condition: str, metric: str) -> str:
    """What the estimator takes from a run: a measured value, or an array."""
    if estimator in NO_METRIC:
        return canonical(run.record()["settings"][metric]) if estimator == "setting" else ""
    found = [measured for measured in run.measured() if measured.metric == metric]
    exact = [measured for measured in found if measured.condition == condition]
    if exact:
        return repr(exact[0].value)
    arrays = run.arrays()
    if metric in arrays:
        array = arrays[metric]
        return f"{array.size} points" if estimator == "series" else f"{array.mean():.6g}, mean of {array.size}"
    return f"{len(found)} values" if found and not condition else "none"


def _lineage(build: Build, run_ids: list[str]) -> list[str]:
    """The runs below, an experiment at a time: what they share, then the run of each seed."""
    below: dict[str, list[Run]] = {}
    gone: dict[str, str] = {}
    for depth, run in build.lineage(run_ids):
        if depth:
            below.setdefault(run.folder.name, []).append(run)
        used = {name: entry.get("run_id") for name, entry in build.records[run.run_id]["inputs"].items()}
        gone |= {name: run_id for name, run_id in used.items() if run_id and run_id not in build.runs}
    lines = [f"  {name} {run_id}: no manifest lists this run any more" for name, run_id in gone.items()]
    for experiment, runs in below.items():
        records = [build.records[run.run_id] for run in runs]
        rows = [(each["step"], each["code"]["sha256"][:16], each["host"], _reduced(each)) for each in records]
        steps, codes, hosts, reduced = (" and ".join(dict.fromkeys(column)) for column in zip(*rows, strict=True))
        lines.append(f"  {experiment}: {steps}, code {codes}, on {hosts}")
        listed = ", ".join(f"seed\xa0{run.seed}\xa0{run.run_id}" for run in runs)  # not broken inside
        lines += [*_lines("    reduced", reduced), *_lines("    runs", listed)]
    return ["these rest on", *lines] if lines else []


def _everything(build: Build, run: Run) -> list[str]:
    """All that a run's record holds, as indented lines."""
    record, path = build.records[run.run_id], run.folder / f"seed{run.seed}"
    lines = [
        f"run {run.run_id}",
        f"  record    {path / 'run.json'}",
        f"  command   {' '.join(record['command'])}",
        f"  time      {record['start']}, {record['wall_s']} s, {record['peak_memory_mb']} MB at the peak",
    ]
    if "units" in record:
        lines.append(f"  units     {record['units']['all']}, of which {record['units']['new']} were new")
    lines += [f"  {name:9} {text}" for name, text in _facts(record).items() if text and name != "reduced"]
    lines += [f"  reduced   {name} {v['here']} (paper: {v['paper']})" for name, v in record["reduced"].items()]
    lines += [f"  fact      {name} {canonical(value)}" for name, value in record["facts"].items()]
    outputs = {str(path / name): entry for name, entry in record["outputs"].items()}
    files = {"input": record["inputs"], "source": record["code"]["files"], "output": outputs}
    return lines + [
        f"  {kind:9} {name} {entry['sha256'][:16]}" for kind, of in files.items() for name, entry in of.items()
    ]


def _named(condition: str, metric: str) -> str:
    return "/".join(filter(None, (condition, metric))) or "runs"


def _lines(name: str, text: str) -> list[str]:
    """A field and its text, broken at WIDTH; nothing without a text."""
    head = name.ljust(12 if name.startswith(" ") else 11)
    lines = textwrap.wrap(text, WIDTH - len(head), break_long_words=False, break_on_hyphens=False)
    indented = textwrap.indent("\n".join(lines), " " * len(head)).replace("\xa0", " ").splitlines()
    return [f"{head}{indented[0].strip()}", *indented[1:]] if lines else []
