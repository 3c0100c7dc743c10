"""The few central cells of a build: those of README.md (`ghost glance`) and of `dvc metrics show`."""

from collections.abc import Mapping, Sequence
from typing import Any

from ghost.files import json_text
from ghost.study import ARTEFACTS
from ghost.study.declarations import Artefact

# table, its title in README.md, the cell shown of each row, a cell that only rows of interest have (a decoder or an
# agent has parameters, a policy has trials; a random walk has neither), and the cell that compares a row with Ghost
SHOWN = (
    ("tab:lightweight", "test error (MSE), dual-arm data", "test_mse", "params", "p"),
    ("tab:meta_rl", "steps to a new goal, Dark Room", "latency", "params", ""),
    ("tab:libero10", "success rate, LIBERO-10", "success", "trials", ""),
    ("tab:decoders", "test error (MSE), own data", "test_mse", "params", "p"),
)


def chosen(artefacts: Sequence[Artefact] = ARTEFACTS) -> list[tuple[str, str, str, str]]:
    """(title, row, id of its cell, id of the p-value against Ghost or "") for every headline."""
    lines = []
    built = {artefact.id: artefact for artefact in artefacts}
    for table, title, shown, required, compared in (line for line in SHOWN if line[0] in built):
        names = [cell.name for cell in built[table].within(()).cells]
        for label in (name.removesuffix(f"/{shown}") for name in names if name.endswith(f"/{shown}")):
            if f"{label}/{required}" in names:
                p = f"{table}/{label}/{compared}" if f"{label}/{compared}" in names else ""
                lines.append((title, label, f"{table}/{label}/{shown}", p))
    return lines


def metric_names(artefacts: Sequence[Artefact] = ARTEFACTS) -> list[str]:
    """The names of the files of metrics: one per method, since `dvc metrics show` prints a line per file."""
    return sorted({f"{label}.json" for _, label, _, _ in chosen(artefacts)})


def metric_texts(cells: Mapping[str, Mapping[str, Any]], artefacts: Sequence[Artefact] = ARTEFACTS) -> dict[str, str]:
    """The files of metrics: the unrounded headlines of each method."""
    metrics: dict[str, dict[str, float]] = {name: {} for name in metric_names(artefacts)}
    for _, label, identity, _ in chosen(artefacts):
        if identity in cells and cells[identity]["value"] is not None:
            artefact, _, metric = identity.partition(f"/{label}/")
            metrics[f"{label}.json"][f"{artefact.replace(':', '_')}.{metric}"] = cells[identity]["value"]
    return {name: json_text(values) for name, values in metrics.items()}
