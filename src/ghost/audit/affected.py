"""The way back: from a run, seed, host, GPU, commit or file to every cell, figure and sentence that rests on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ghost.audit.build import Build
from ghost.errors import GhostError, did_you_mean


@dataclass(frozen=True)
class Query:
    """What to start from; every field that is given must match."""

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
    artefacts: list[str]
    sentences: list[str]  # file:line: text

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def affected(build: Build, query: Query) -> Affected:
    """Everything that rests on the runs of a query."""
    from ghost.claims.sentences import SENTENCES, cells_of, read_sentences  # with numpy, which a lookup does without

    start = [run_id for run_id in build.runs if _matches(build, run_id, query)]
    if not start:
        known = sorted({str(value) for run_id in build.runs for value in _known(build, run_id, query)})
        asked = ", ".join(f"{name} {value}" for name, value in asdict(query).items() if value not in ("", None))
        raise GhostError(f"no run with {asked}{did_you_mean(asked.split(' ')[-1], known)}")
    reached = build.above(start)
    cells = [identity for identity, cell in build.cells.items() if reached & set(cell["runs"])]
    bound = {f"holds:{s.id}": set(cells_of(s, build.cells)) for s in read_sentences(SENTENCES)}
    touched = set(cells)
    sentences = [
        f"{sentence.path}:{sentence.line}: {sentence.text}"
        for sentence in build.sentences()
        if any(cited in touched or bound.get(cited, set()) & touched for cited in sentence.cites)
    ]
    artefacts = list(dict.fromkeys(identity.split("/")[0] for identity in cells))
    above = [run_id for run_id in build.runs if run_id in reached and run_id not in start]
    return Affected(start, above, cells, artefacts, sentences)


def _matches(build: Build, run_id: str, query: Query) -> bool:
    record = build.records[run_id]
    gpus = [text for gpu in record["gpus"] for text in gpu.values()]
    return (
        run_id.startswith(query.run)
        and query.seed in (None, build.runs[run_id].seed)
        and query.host in ("", record["host"])
        and (not query.gpu or any(query.gpu in text for text in gpus))
        and (record["commit"] or "").startswith(query.commit)
        and (not query.file or _has_file(build, run_id, query.file))
    )


def _has_file(build: Build, run_id: str, name: str) -> bool:
    for path, entry in _files(build, run_id).items():
        if path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}"):
            return True
        if len(name) >= 8 and entry["sha256"].startswith(name):
            return True
    return False


def _files(build: Build, run_id: str) -> dict[str, dict[str, str]]:
    """What a run read and wrote, and the code it ran, as paths from the root."""
    record, run = build.records[run_id], build.runs[run_id]
    outputs = {str(run.folder / f"seed{run.seed}" / name): entry for name, entry in record["outputs"].items()}
    code = {str(Path("src", name)): entry for name, entry in record["code"]["files"].items()}
    return {**record["inputs"], **outputs, **code}


def _known(build: Build, run_id: str, query: Query) -> list[Any]:
    """What the field in question is for some run: to suggest."""
    record = build.records[run_id]
    if query.host:
        return [record["host"]]
    if query.gpu:
        return [text for gpu in record["gpus"] for text in gpu.values()]
    if query.commit:
        return [record["commit"]]
    if query.file:
        return list(_files(build, run_id))
    return [build.runs[run_id].seed] if query.seed is not None else [run_id]


def report(build: Build, found: Affected) -> str:
    """For people."""

    def names(run_ids: list[str]) -> list[str]:
        return [
            f"  {run_id}  {build.records[run_id]['experiment']}, seed {build.runs[run_id].seed}" for run_id in run_ids
        ]

    lines = [f"runs       {len(found.runs)}", *names(found.runs)]
    lines += [f"resting on them: {len(found.above)} more", *names(found.above)]
    lines += [f"cells      {len(found.cells)}", *(f"  {identity}" for identity in found.cells)]
    lines += [f"figures and tables  {len(found.artefacts)}", *(f"  {identity}" for identity in found.artefacts)]
    lines += [f"sentences  {len(found.sentences)}", *(f"  {sentence}" for sentence in found.sentences)]
    return "\n".join(lines)
