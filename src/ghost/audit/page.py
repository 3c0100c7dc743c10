"""The audit page: one HTML file that works offline.

It has the tables as printed, each number opening its runs, their values, what they rest on, and the verdict on the
published number; and a list of all runs (ghost.audit.run_list), of which two can be compared. Whatever is shown stands
in the page as data and is put in place as text; the only script that a browser will run is ours, named by its hash.
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2

from ghost.audit import run_list
from ghost.audit.lookup import check_runs
from ghost.claims.ledger import LEDGER, read_ledger
from ghost.claims.verdicts import VERDICTS, judge_all
from ghost.report.appendix import anchor, doubts, sides, unpaired, versus
from ghost.report.tables import page
from ghost.runs.records import Run
from ghost.study.builds import opened

HERE = Path(__file__).parent
Cell = dict[str, Any]
OF_CELLS = ("id", "shown", "unit", "estimator", "experiment", "against", "condition", "metric", "interval", "n", "runs")
SCRIPTS = ("page_runs.js", "page.js")
PNG = "data:image/png;base64,"
NO_POINTS = ("setting", "series", "module", "runs")  # estimators that take no single value from a run


def render(cells: dict[str, Cell], listed: Iterable[Run], scale: str, figures: Iterable[Path]) -> str:
    """The page as HTML, with the figures as PNG inside."""
    runs = {run.run_id: run for run in listed}
    build = opened(scale)
    records = {run_id: run.record() for run_id, run in runs.items()}
    touched: dict[str, list[str]] = {run_id: [] for run_id in runs}
    for name, cell in cells.items():
        for run_id in cell["runs"]:
            touched.get(run_id, []).append(name)
    script = "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    data = {
        "scale": scale,
        "cells": _cells(cells, runs, records),
        "runs": [run_list.listed(runs[run_id], record) for run_id, record in records.items()],
        "tables": {artefact.id: page(artefact, cells) for artefact in build.artefacts if artefact.table},
        "figures": {f"fig:{path.stem}": f"{PNG}{_base64(path.read_bytes())}" for path in sorted(figures)},
        "absent": [artefact.id for artefact in build.artefacts if not artefact.step],
        "verdicts": VERDICTS,
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((HERE / "page.html.jinja").read_text(encoding="utf-8"))
    return template.render(
        data=_embedded(data),
        script=script,
        digest=_base64(hashlib.sha256(script.encode()).digest()),
        scale=scale,
        # what the page shows before any script runs, and to those who run none
        cells=data["cells"],
        runs=data["runs"],
        records=records,
        not_run=run_list.not_run(runs.values(), build.paper),
        touched=touched,
        anchor=anchor,
    )


def _cells(cells: dict[str, Cell], runs: dict[str, Run], records: dict[str, Any]) -> list[dict[str, Any]]:
    ledger = read_ledger(LEDGER)
    devices = {run_id: ", ".join(gpu["model"] for gpu in record["gpus"]) for run_id, record in records.items()}
    verdicts = {verdict.claim: verdict for verdict in judge_all(ledger, cells, devices)}
    claims: dict[str, list[dict[str, str]]] = {}
    for claim in ledger.claims.values():
        for identity in claim.cell:
            claims.setdefault(identity, []).append(asdict(verdicts[claim.id]))
    return [
        {
            **{key: cell[key] for key in OF_CELLS},
            "versus": versus(cell),
            "anchor": anchor(identity),
            "value": cell["value"] if cell["value"] is not None else cell["sha256"],
            "doubts": [*doubts(cell), *unpaired(cell)],
            "claims": claims.get(identity, []),
            "points": _points(cell, runs),
        }
        for identity, cell in cells.items()
    ]


def _points(cell: Cell, runs: dict[str, Run]) -> list[dict[str, Any]]:
    """What each run contributes: its own value, and whether it is one of those that the others are compared with."""
    check_runs(cell, runs)
    if cell["estimator"] in NO_POINTS:
        return []
    points: list[dict[str, Any]] = []
    for run in map(runs.__getitem__, cell["runs"]):
        for against, side in enumerate(sides(cell)):
            found = [m.value for m in run.measured() if (run.folder.name, m.condition, m.metric) == side]
            points += [{"run": run.run_id, "seed": run.seed, "value": v, "against": against == 1} for v in found[:1]]
    return [point for point in points if not math.isnan(point["value"])]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
