"""Snakemake's records of a stage's outputs, in a file that DVC keeps, so that a clone has them too.

Snakemake keeps a record of each output (rule, parameters, code, inputs and their checksums) in .snakemake/metadata,
which is not in the repository. Without it a clone with all files pulled either reruns everything or, after `--touch`,
no longer notices an edited experiment. `ghost snapshot STAGE` copies the records of a stage, with the sha256 of its
files, to data/laptop/snapshots/<stage>.json; `ghost restore` verifies every file and writes the records back.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.files import confined, read_json, sha256, write_json
from ghost.forms import NAME, SHA256
from ghost.project.dvc import Stage, stages

METADATA = Path(".snakemake/metadata")
LOCKS = Path(".snakemake/locks")
LONGEST_NAME = 254  # of a file on most file systems, without Snakemake's mark for a continued name
# The fields of Snakemake's record that decide whether an output is up to date. Times and the machine's hash are left
# out, so that the same work has the same snapshot.
KEPT = (
    *("rule", "input", "log", "shellcmd", "params", "code", "input_checksums"),
    *("record_format_version", "container_img_url", "software_stack_hash"),
)
TEXT = (str, None)
RECORD = {
    **{"rule": str, "input": [str], "log": [str], "shellcmd": TEXT, "params": [str], "code": TEXT},
    **{"input_checksums": ({str: str}, None), "record_format_version": int},
    **{"container_img_url": TEXT, "software_stack_hash": TEXT},
}
SNAPSHOT = {"stage": str, "files": {NAME: SHA256}, "records": {NAME: RECORD}}
SHOWN = 8  # wrong files that are named


def take(stage: Stage) -> str:
    """Write the snapshot of a stage; the returned text lists its new files."""
    path = Path(stage.snapshot)
    before = read_json(path, SNAPSHOT)["files"] if path.exists() else {}
    paths = [Path(target) for target in stage.targets]
    if stage.folder:
        paths = [found for found in Path(stage.folder).rglob("*") if found.is_file() and not found.name.startswith(".")]
    files = {str(found): sha256(confined(Path(), str(found))) for found in sorted(paths)}
    records = {}
    for target in stage.targets:
        if not record_path(target).exists():
            raise GhostError(f"Snakemake has no record of {target}; run `snakemake {target}` first")
        record = read_json(record_path(target), dict)
        records[target] = {key: record.get(key) for key in KEPT}
    write_json(path, {"stage": stage.name, "files": files, "records": records})
    changed = [name for name, digest in files.items() if before.get(name) != digest]
    what = f"{len(changed)} new or changed: {', '.join(changed)}" if changed else "all as before"
    return f"{stage.name}: {len(files)} file{'s' if len(files) != 1 else ''}, {what}"


def restore(folder: Path) -> str:
    """Verify every file of every snapshot below a folder, then write Snakemake's records."""
    if any(LOCKS.glob("*")):
        raise GhostError("Snakemake is running here (or was killed: `snakemake --unlock`); restore when it has ended")
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise GhostError(f"no snapshots in {folder}; `dvc pull` brings them")
    known = stages()
    snapshots = [_read(path, known) for path in paths]
    files = {name: digest for snapshot in snapshots for name, digest in snapshot["files"].items()}
    complaints = [complaint for name, digest in files.items() if (complaint := _wrong(name, digest))]
    if complaints:
        more = f"; and {len(complaints) - SHOWN} more" if len(complaints) > SHOWN else ""
        raise GhostError(f"nothing restored: {'; '.join(complaints[:SHOWN])}{more}")
    records = {target: record for snapshot in snapshots for target, record in snapshot["records"].items()}
    for target, record in records.items():
        end = Path(target).stat().st_mtime
        write_json(record_path(target), {**record, "incomplete": False, "starttime": end, "endtime": end})
    missing = sorted(known.keys() - {snapshot["stage"] for snapshot in snapshots})
    left_out = f"; no snapshot of {', '.join(missing)}" if missing else ""
    return f"{len(files)} files verified, {len(records)} of them known to Snakemake again{left_out}"


def _read(path: Path, known: Mapping[str, Stage]) -> dict[str, Any]:
    """A snapshot of a stage of ours: it records the stage's targets, and lists them among its files, and no others."""
    snapshot: dict[str, Any] = read_json(path, SNAPSHOT)
    stage = known.get(snapshot["stage"])
    if stage is None or path.name != Path(stage.snapshot).name:
        raise GhostError(f"{path}: {snapshot['stage']!r} is not its stage{did_you_mean(path.stem, known)}")
    if snapshot["records"].keys() != set(stage.targets):
        raise GhostError(f"{path} does not record what {stage.name} makes: {', '.join(stage.targets)}")
    missing = [target for target in stage.targets if target not in snapshot["files"]]
    if missing:
        raise GhostError(f"{path} has no sha256 of {missing[0]}, which it records")
    below = f"{stage.folder}/" if stage.folder else ""
    foreign = [
        name for name in snapshot["files"] if name not in stage.targets and not (below and name.startswith(below))
    ]
    if foreign:
        raise GhostError(f"{path}: {foreign[0]} is no file of {stage.name}")
    return snapshot


def _wrong(name: str, digest: str) -> str:
    path = confined(Path(), name)
    if not path.is_file():
        return f"{path} is missing"
    return "" if sha256(path) == digest else f"{path} is not the file of the snapshot (sha256 differs)"


def record_path(output: str) -> Path:
    """The file of Snakemake's record of an output: base64 of its path, split into names that a file system allows."""
    name = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [name[start : start + LONGEST_NAME] for start in range(0, len(name), LONGEST_NAME)]
    return METADATA.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])
