"""`ghost audit CELL`: the value, the estimator, and the runs behind it with their inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ghost.audit.build import Build
from ghost.errors import GhostError, did_you_mean
from ghost.files import canonical
from ghost.report.cells import read_cells
from ghost.runs.records import Run, open_runs
from ghost.study import ARTEFACTS
from ghost.study.builds import Config


def lookup(config: Config, identity: str) -> str:
    """What there is to say about a cell, or about all cells below a prefix such as `tab:lightweight` or `fig:`."""
    path = config.data / "cells.jsonl"
    if not path.exists():
        raise GhostError(f"no {path} yet; `snakemake all` makes it")
    cells = read_cells(path)
    if identity in cells:
        return explain(cells[identity], config)
    listed = [cell for name, cell in cells.items() if _below(name, identity)]
    declared = [a for a in ARTEFACTS if _below(a.id, identity)]
    if not listed and not declared:
        known = [*cells, *(artefact.id for artefact in ARTEFACTS)]
        raise GhostError(f"no cell {identity!r}{did_you_mean(identity, known)}")
    width = max((len(cell["id"]) for cell in listed), default=0)
    lines = [f"{cell['id']:{width}}  {display(cell)}" for cell in listed]
    lines += [f"{artefact.id}  not built" for artefact in declared if not artefact.step]
    return "\n".join(lines)


def _below(name: str, prefix: str) -> bool:
    """Prefixes end where a part of the id ends: fig:method is not below fig:met, but is below fig: and fig."""
    return name == prefix or name.startswith((f"{prefix.rstrip('/:')}/", f"{prefix.rstrip('/:')}:"))


def display(cell: dict[str, Any]) -> str:
    """Value with its unit, and what is to be said against it."""
    unit = f" {cell['unit']}" if cell["unit"] else ""
    marks = (["reduced scale"] if cell["reduced"] else []) + [f"stand-in: {name}" for name in cell["stand_ins"]]
    shown = f"{cell['shown']} of {cell['n']} points" if cell["estimator"] == "series" else f"{cell['shown']}{unit}"
    return f"{shown}  [{'; '.join(marks)}]" if marks else shown


def explain(cell: dict[str, Any], config: Config) -> str:
    fields = [
        ("cell", cell["id"]),
        ("value", display(cell)),
        ("unrounded", "" if cell["value"] is None else repr(cell["value"])),
        (
            "estimator",
            f"{cell['estimator']} of {'/'.join(filter(None, (cell['condition'], cell['metric'])))}",
        ),
        ("interval", "" if not cell["interval"] else "95 %: {:.6g} to {:.6g}".format(*cell["interval"])),
        ("n", str(cell["n"])),
        ("sha256", cell["sha256"] or ""),
    ]
    lines = [f"{name:10} {text}" for name, text in fields if text]
    if not cell["runs"]:
        return "\n".join([*lines, "rests on no run: it is read from the code"])
    manifests = [config.manifest(name) for name in (cell["experiment"], cell["against"]) if name]
    listed = " and ".join(map(str, manifests))
    found = {run.run_id: run for manifest in manifests for run in open_runs(manifest)}
    lines.append(f"runs       {len(cell['runs'])}, listed in {listed}")
    for run_id in cell["runs"]:
        if run_id not in found:
            raise GhostError(f"{cell['id']} rests on run {run_id}, which {listed} does not list; run snakemake")
        lines += explain_run(found[run_id])
    return "\n".join([*lines, *explain_lineage(Build.open(config), cell["runs"])])


def explain_lineage(build: Build, run_ids: list[str]) -> list[str]:
    """What the runs rest on, level by level, down to the demonstrations."""
    lines = [
        f"  {'  ' * depth}{run.run_id}  {build.records[run.run_id]['experiment']}, seed {run.seed}"
        for depth, run in build.lineage(run_ids)
        if depth
    ]
    return ["rests on", *lines] if lines else []


def as_json(config: Config, identity: str) -> list[dict[str, Any]]:
    """A cell, or all below a prefix, each with the records of its runs and of all that they rest on."""
    build = Build.open(config)
    chosen = [cell for name, cell in build.cells.items() if _below(name, identity)]
    if not chosen:
        raise GhostError(f"no cell {identity!r}{did_you_mean(identity, build.cells)}")
    return [
        {**cell, "records": [build.records[run.run_id] for _, run in build.lineage(cell["runs"])]} for cell in chosen
    ]


def explain_run(run: Run) -> list[str]:
    """A run's record, as indented lines."""
    record = run.record()
    path = run.folder / f"seed{run.seed}"
    gpus = ", ".join(f"{gpu['model']} {gpu['uuid']}" for gpu in record["gpus"]) or "none"
    commit = record["commit"] or "none"
    fields = {
        "record": str(path / "run.json"),
        "seeds": ", ".join(f"{name} {seed}" for name, seed in record["seeds"].items() if seed is not None),
        "reduced": ", ".join(f"{k} {v['here']} (paper: {v['paper']})" for k, v in record["reduced"].items()),
        "stand-ins": ", ".join(record["stand_ins"]),
        "code": f"{record['code']['sha256'][:16]} ({len(record['code']['files'])} files)",
        "commit": f"{commit} with changes" if record["dirty_sha256"] else commit,
        "lock": record["lock_sha256"][:16],
        "host": f"{record['host']}, {record['cpu']}, GPU: {gpus}, Slurm job: {record['slurm_job_id'] or 'none'}",
        "time": f"{record['start']}, {record['wall_s']} s, {record['peak_memory_mb']} MB at the peak",
    }
    lines = [f"  run {run.run_id}"] + [f"    {name:9} {text}" for name, text in fields.items() if text]
    lines += [f"    fact      {name} {canonical(value)}" for name, value in record.get("facts", {}).items()]
    lines += [f"    input     {name} {entry['sha256'][:16]}" for name, entry in record["inputs"].items()]
    lines += [f"    source    {name} {entry['sha256'][:16]}" for name, entry in record["code"]["files"].items()]
    lines += [f"    output    {Path(path, name)} {entry['sha256'][:16]}" for name, entry in record["outputs"].items()]
    return lines
