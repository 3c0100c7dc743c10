"""The audit page: `python -m ghost.steps.audit --cells cells.jsonl --manifests ... --figures ... --out audit.html`.

One HTML file that works offline: the tables as printed, each number opening its runs, their values, what they rest on,
and the verdict on the published number. Whatever is shown stands in the page as data and is put in place as text; the
only script that a browser will run is ours, named by its hash.
"""

import base64
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
import tyro

from ghost.claims.ledger import LEDGER, read_ledger
from ghost.claims.verdicts import VERDICTS, judge_all
from ghost.errors import GhostError, exit_on_error
from ghost.files import write_text
from ghost.report.appendix import anchor, doubts, versus
from ghost.report.cells import read_cells
from ghost.report.tables import page
from ghost.runs.records import MANIFEST, Run, open_runs
from ghost.study import ARTEFACTS

HERE = Path(__file__).parents[1] / "audit"
OF_CELLS = ("id", "shown", "unit", "estimator", "experiment", "against", "condition", "metric", "interval", "n", "runs")
OF_RUNS = (  # fields of a record
    *("experiment", "settings", "reduced", "stand_ins", "commit", "dirty_sha256", "start", "wall_s", "peak_memory_mb"),
    *("host", "cpu", "gpus", "slurm_job_id", "command", "versions"),
)
NO_POINTS = ("setting", "series", "module", "runs")  # estimators that take no single value from a run


def audit(
    cells: Path,
    manifests: tuple[Path, ...],
    scale: str,
    out: Path,
    figures: tuple[Path, ...] = (),
) -> None:
    """Write the audit page.

    Args:
        cells: all cells, a JSON line each.
        manifests: the manifests of every experiment.
        scale: the scale they were made at.
        out: the HTML file to write.
        figures: the figures, as PNG.
    """
    by_id = read_cells(cells)
    runs = {run.run_id: run for manifest in manifests for run in open_runs(manifest)}
    records = {run_id: run.record() for run_id, run in runs.items()}
    devices = {run_id: ", ".join(gpu["model"] for gpu in record["gpus"]) for run_id, record in records.items()}
    script = (HERE / "page.js").read_text(encoding="utf-8")
    data = {
        "scale": scale,
        "cells": _cells(by_id, runs, devices),
        "runs": [_run(record, runs[run_id]) for run_id, record in records.items()],
        "tables": {artefact.id: page(artefact, by_id) for artefact in ARTEFACTS if artefact.table},
        "figures": {f"fig:{path.stem}": _picture(path) for path in figures},
        "absent": [artefact.id for artefact in ARTEFACTS if not artefact.step],
        "verdicts": VERDICTS,
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((HERE / "page.html.jinja").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    write_text(out, template.render(data=_embedded(data), script=script, digest=digest, scale=scale, **_static(data)))


def _cells(by_id: dict[str, dict[str, Any]], runs: dict[str, Run], devices: dict[str, str]) -> list[dict[str, Any]]:
    ledger = read_ledger(LEDGER)
    verdicts = {verdict.claim: verdict for verdict in judge_all(ledger, by_id, devices)}
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
            "doubts": doubts(cell),
            "claims": claims.get(identity, []),
            "points": _points(cell, runs),
        }
        for identity, cell in by_id.items()
    ]


def _points(cell: dict[str, Any], runs: dict[str, Run]) -> list[dict[str, Any]]:
    """What each run contributes: its own value, and whether it is one of those that the others are compared with."""
    if cell["estimator"] in NO_POINTS:
        return []
    ours = (cell["experiment"], cell["condition"], cell["metric"])
    theirs = (cell["against"], cell["against_condition"] or ours[1], cell["against_metric"] or ours[2])
    points = []
    for run_id in cell["runs"]:
        if run_id not in runs:
            raise GhostError(f"{cell['id']} rests on run {run_id}, which no manifest lists; run snakemake")
        run = runs[run_id]
        for side in (ours, theirs):
            found = [m.value for m in run.measured() if (run.folder.name, m.condition, m.metric) == side]
            points += [{"run": run_id, "seed": run.seed, "value": v, "against": side is theirs} for v in found[:1]]
    return [point for point in points if point["value"] == point["value"]]


def _run(record: dict[str, Any], run: Run) -> dict[str, Any]:
    return {
        **{key: record[key] for key in OF_RUNS},
        "id": run.run_id,
        "seed": run.seed,
        "code": record["code"]["sha256"][:16],
        "sources": list(record["code"]["files"]),
        "inputs": {name: entry["sha256"][:16] for name, entry in record["inputs"].items()},
        "outputs": {name: entry["sha256"][:16] for name, entry in record["outputs"].items()},
        "needs": [Path(name).parent.name for name in record["inputs"] if Path(name).name == MANIFEST],
    }


def _picture(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _embedded(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _static(data: dict[str, Any]) -> dict[str, Any]:
    """What the page shows before any script runs, and to those who run none."""
    touched: dict[str, list[str]] = {run["id"]: [] for run in data["runs"]}
    for cell in data["cells"]:
        for run_id in cell["runs"]:
            touched[run_id].append(cell["id"])
    return {"cells": data["cells"], "runs": data["runs"], "touched": touched, "anchor": anchor}


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(audit))
