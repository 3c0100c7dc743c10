"""The cells of one figure or table: `python -m ghost.steps.summarize --artefact fig:x --manifests ... --out ...jsonl`.

A cell is a line of JSON: id, what is shown, the unrounded value, unit, estimator, what it is compared with, interval,
n, the runs behind it, and whether it rests on a reduced scale or a stand-in.
"""

from pathlib import Path
from typing import Any

import tyro

from ghost.errors import GhostError, exit_on_error
from ghost.evaluations.quiet import busy
from ghost.files import canonical, write_text
from ghost.report.estimators import COMPARISONS, CORRECTED, ESTIMATORS
from ghost.report.over_cells import OVER_CELLS, over_cells
from ghost.report.shown import show_p
from ghost.report.statistics import holm
from ghost.runs.records import Run, open_runs
from ghost.study.builds import opened


def summarize(artefact: str, out: Path, manifests: tuple[Path, ...] = (), scale: str = "laptop") -> None:
    """Compute the cells of one artefact.

    Args:
        artefact: its id in the study, such as fig:switch_speed.
        out: the file of cells to write, a JSON line each.
        manifests: the manifests of the experiments that it rests on.
        scale: the build.
    """
    runs = {manifest.parent.name: open_runs(manifest) for manifest in manifests}
    cells = opened(scale).artefact(artefact).declaration()
    made = [
        summarize_cell(cell, runs.get(cell["experiment"], []), runs.get(cell["against"], []))
        for cell in cells
        if cell["estimator"] not in OVER_CELLS
    ]
    correct(made, {cell["id"]: cell["digits"] for cell in cells})
    made += over_cells(cells, made)
    write_text(out, "".join(f"{canonical(cell)}\n" for cell in made))


def summarize_cell(cell: dict[str, Any], runs: list[Run], against: list[Run] | None = None) -> dict[str, Any]:
    """One cell; `against` are the runs that it is compared with."""
    for name, found in ((cell["experiment"], runs), (cell["against"], against)):
        if name and not found:
            raise GhostError(f"{cell['id']}: no runs of {name}")
    compares = cell["estimator"] in COMPARISONS
    if compares != bool(cell["against"]):
        raise GhostError(f"{cell['id']}: {cell['estimator']} {'lacks' if compares else 'has no use for'} `against`")
    if against and compares:
        estimate = COMPARISONS[cell["estimator"]](cell, runs, against)
    else:
        estimate = ESTIMATORS[cell["estimator"]](cell, runs)
    behind = list({run.run_id: run for run in (*runs, *(against or []))}.values())
    timed = ((runs, cell["metric"]), (against or [], cell["against_metric"] or cell["metric"]))
    stand_ins = [busy(of, metric) for of, metric in timed] + [run.marks[1] for run in behind]
    return {
        **{key: value for key, value in cell.items() if key not in ("name", "digits")},
        "shown": estimate.shown,
        "value": estimate.value,
        "interval": estimate.interval,
        "n": estimate.n,
        "unpaired": estimate.unpaired,
        "sha256": estimate.sha256,
        "runs": [run.run_id for run in behind],
        "reduced": any(run.marks[0] for run in behind),
        "stand_ins": sorted(set().union(*stand_ins)),
    }


def correct(cells: list[dict[str, Any]], digits: dict[str, str]) -> None:
    """Holm's correction, in place, over all cells of the artefact that ask for it."""
    family = [cell for cell in cells if cell["estimator"] in CORRECTED and cell["value"] is not None]
    for cell, p in zip(family, holm([cell["value"] for cell in family]), strict=True):
        cell |= {"value": float(p), "shown": show_p(p, digits[cell["id"]])}


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(summarize))
