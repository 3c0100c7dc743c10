"""What was recorded elsewhere and is kept in the repository, as a run here: see `ghost.study.closed_loop`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghost.data.results import EPISODES, Outcome
from ghost.errors import GhostError
from ghost.files import write_text
from ghost.runs.records import MANIFEST, Run, open_runs


@dataclass(frozen=True)
class Settings:
    build: str  # that was shipped
    experiment: str  # of that build
    reduced: tuple[str, ...]  # settings that were smaller there than the paper's


def shipped_runs(reads: tuple[Path, ...]) -> dict[int, Run]:
    """The runs of a shipped experiment by seed, from the files that an experiment reads."""
    manifests = [path for path in reads if path.name == MANIFEST]
    if len(manifests) != 1:
        raise GhostError(f"expected one {MANIFEST} among the shipped files, got {len(manifests)}")
    return {run.seed: run for run in open_runs(manifests[0])}


def described(run: Run, build: str) -> str:
    """Where and when a shipped run was made. Its record must be whole and unedited."""
    record: dict[str, Any] = run.record()
    commit = (record["commit"] or "none")[:12]
    return f"run {run.run_id} of the build {build}, {record['start']}, on {record['cpu']}, commit {commit}"


def copied(run: Run, folder: Path) -> Outcome:
    """The measured values and the episodes of a shipped run, each verified against its manifest."""
    if f"seed{run.seed}/{EPISODES}" not in run.files:
        return Outcome(run.measured())
    write_text(folder / EPISODES, run.path(EPISODES).read_text(encoding="utf-8"))
    return Outcome(run.measured(), files=(EPISODES,))
