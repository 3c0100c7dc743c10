"""The way back: from a run, seed, host, GPU, commit or file to every cell, figure and sentence that rests on it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ghost.audit.build import VERDICTS, Build
from ghost.errors import GhostError, did_you_mean
from ghost.runs.records import MANIFEST


@dataclass(frozen=True)
class Query:
    """The runs to start from: those that match every field that is given."""

    run: str = ""  # the beginning of a run id
    seed: int | None = None
    host: str = ""
    gpu: str = ""  # UUID or model, or a part of it
    commit: str = ""  # the beginning of one
    file: str = ""  # a path, its end, or the beginning of a sha256

    @property
    def given(self) -> bool:
        return self != Query()


@dataclass(frozen=True)
class Affected:
    runs: list[str]  # that match
    above: list[str]  # that rest on them
    cells: list[str]
    artefacts: list[str]  # figures and tables that print these cells
    sentences: list[str]  # file:line: text


def affected(build: Build, query: Query) -> Affected:
    """Everything that rests on the runs of a query."""
    start = [run_id for run_id in build.runs if _matches(build, run_id, query)]
    if not start:
        known = sorted({str(value) for run_id in build.runs for value in _known(build, run_id, query)})
        asked = ", ".join(f"{name} {value}" for name, value in asdict(query).items() if value not in ("", None))
        raise GhostError(f"no run with {asked}{did_you_mean(asked.split(' ')[-1], known)}")
    reached = build.above(start)
    cells = _cells(build, reached)
    above = [run_id for run_id in build.runs if run_id in reached and run_id not in start]
    artefacts = list(dict.fromkeys(identity.split("/")[0] for identity in cells))
    return Affected(start, above, cells, artefacts, _sentences(build, set(cells)))


def _cells(build: Build, runs: set[str]) -> list[str]:
    """The cells that rest on runs. Holm's correction of one p rests on all those of its figure or table."""
    touched = {identity for identity, cell in build.cells.items() if runs & set(cell["runs"])}
    corrected = [identity for identity, cell in build.cells.items() if cell["estimator"] == "holm_p"]
    families = {identity.split("/")[0] for identity in corrected if identity in touched}
    touched |= {identity for identity in corrected if identity.split("/")[0] in families}
    return [identity for identity in build.cells if identity in touched]


def _sentences(build: Build, cells: set[str]) -> list[str]:
    """The sentences that use one of the cells: by itself, in a predicate, or in a count of verdicts."""
    from ghost.claims.ledger import read_ledger  # these load what a lookup does without
    from ghost.claims.sentences import SENTENCES, cells_of, read_sentences

    uses = {f"holds:{name}": cells_of(holds, build.cells) for name, holds in read_sentences(SENTENCES).items()}
    uses[VERDICTS] = {identity for claim in read_ledger().claims.values() for identity in claim.cell}
    return [
        f"{sentence.path}:{sentence.line}: {sentence.text}"
        for sentence in build.sentences()
        if any(cells & uses.get(cited, {cited}) for cited in sentence.cites)
    ]


def _matches(build: Build, run_id: str, query: Query) -> bool:
    record = build.records[run_id]
    gpus = [text for gpu in record["gpus"] for text in gpu.values()]
    return (
        run_id.startswith(query.run)
        and query.seed in (None, record["seed"])
        and query.host in ("", record["host"])
        and (not query.gpu or any(query.gpu in text for text in gpus))
        and (record["commit"] or "").startswith(query.commit)
        and (not query.file or _has_file(build, run_id, query.file))
    )


def _has_file(build: Build, run_id: str, name: str) -> bool:
    return any(
        f"/{path}".endswith(f"/{name}") or name.endswith(f"/{path}") or (len(name) >= 8 and digest.startswith(name))
        for path, digest in _files(build, run_id).items()
    )


def _files(build: Build, run_id: str) -> dict[str, str]:
    """The files that a run read and wrote, its code and its manifest: path from the root -> sha256."""
    record, run = build.records[run_id], build.runs[run_id]
    inputs = {name: entry["sha256"] for name, entry in record["inputs"].items()}
    outputs = {str(run.folder / f"seed{run.seed}" / name): entry["sha256"] for name, entry in record["outputs"].items()}
    code = {str(Path("src", name)): entry["sha256"] for name, entry in record["code"]["files"].items()}
    return {**inputs, **outputs, **code, str(run.folder / MANIFEST): ""}


def _known(build: Build, run_id: str, query: Query) -> list[Any]:
    """Values of the field that the query asks for: to suggest one."""
    record = build.records[run_id]
    if query.host:
        return [record["host"]]
    if query.gpu:
        return [text for gpu in record["gpus"] for text in gpu.values()]
    if query.commit:
        return [record["commit"]]
    if query.file:
        return list(_files(build, run_id))
    return [record["seed"]] if query.seed is not None else [run_id]


def report(build: Build, found: Affected) -> str:
    """For people."""
    named = {run_id: f"{run_id}  {run.folder.name}, seed {run.seed}" for run_id, run in build.runs.items()}
    parts = {
        "runs      ": found.runs,
        "runs that rest on them ": found.above,
        "cells     ": found.cells,
        "figures and tables ": found.artefacts,
        "sentences ": found.sentences,
    }
    return "\n".join(
        line
        for head, names in parts.items()
        for line in (f"{head} {len(names)}", *(f"  {named.get(name, name)}" for name in names))
    )
