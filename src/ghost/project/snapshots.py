"""Snakemake's records of the parts of a build, in files that DVC keeps, so that a clone has them too.

Snakemake keeps a record of each output (rule, parameters, code, inputs and their checksums) in .snakemake/metadata,
which is not in the repository. Without it a clone with all files pulled either reruns everything or, after `--touch`,
no longer notices an edited experiment. `ghost keep` copies the records of each part, with the sha256 of its files, to
data/<build>/snapshots/<part>.json; `ghost restore` verifies the files and writes the records back. A part of which no
file is there was not pulled.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.files import confined, read_json, sha256, write_json
from ghost.forms import NAME, SHA256
from ghost.project.dvc import Part, parts
from ghost.study.builds import Config

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
SNAPSHOT = {"part": str, "files": {NAME: SHA256}, "records": {NAME: RECORD}}
SHOWN = 8  # wrong files that are named


def snapshot_path(part: Part, config: Config) -> Path:
    return config.data / "snapshots" / f"{part.name}.json"


def take(part: Part, config: Config) -> int:
    """Write the snapshot of what is there of a part; returns the number of its files."""
    paths = [Path(target) for target in part.made]
    if part.folder:
        paths = [found for found in Path(part.folder).rglob("*") if found.is_file() and not found.name.startswith(".")]
    files = {str(found): sha256(confined(Path(), str(found))) for found in sorted(paths)}
    records = {}
    for target in part.made:
        if not record_path(target).exists():
            hint = f"run `snakemake {target}` first (`ghost restore`, if it was pulled)"
            raise GhostError(f"Snakemake has no record of {target}; {hint}")
        record = read_json(record_path(target), dict)
        records[target] = {key: record.get(key) for key in KEPT}
    write_json(snapshot_path(part, config), {"part": part.name, "files": files, "records": records})
    return len(files)


def restore(config: Config) -> str:
    """Verify every file of every part that was pulled, then write Snakemake's records."""
    if any(LOCKS.glob("*")):
        raise GhostError("Snakemake is running here (or was killed: `snakemake --unlock`); restore when it has ended")
    folder = config.data / "snapshots"
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise GhostError(f"no snapshots in {folder}; `dvc pull` brings them")
    known = parts(config)
    snapshots = [_read(path, known) for path in paths]
    pulled = [(each, there) for each in snapshots if (there := _there(each))]
    files = {name: each["files"][name] for each, there in pulled for name in there}
    complaints = [complaint for name, digest in files.items() if (complaint := _wrong(name, digest))]
    if complaints:
        more = f"; and {len(complaints) - SHOWN} more" if len(complaints) > SHOWN else ""
        raise GhostError(f"nothing restored: {'; '.join(complaints[:SHOWN])}{more}")
    records = {target: record for each, _ in pulled for target, record in each["records"].items()}
    for target, record in records.items():
        end = Path(target).stat().st_mtime
        write_json(record_path(target), {**record, "incomplete": False, "starttime": end, "endtime": end})
    missing = len(known) - sum(len(there) == len(each["files"]) for each, there in pulled)
    left_out = f"; {missing} of {len(known)} parts of the build {config.scale} are not here" if missing else ""
    return f"{len(files)} files verified, {len(records)} of them known to Snakemake again{left_out}"


def _there(snapshot: Mapping[str, Any]) -> list[str]:
    """The files of a part that should be here: none if none is, and a manifest alone if that is all, as `ghost pull`
    brings it of experiments behind those that were asked for. Else all."""
    found = [name for name in snapshot["files"] if confined(Path(), name).exists()]
    return found if not found or set(found) == snapshot["records"].keys() else list(snapshot["files"])


def _read(path: Path, known: Mapping[str, Part]) -> dict[str, Any]:
    """A snapshot of a part of ours: it records targets of the part, and lists them among its files, and no others."""
    snapshot: dict[str, Any] = read_json(path, SNAPSHOT)
    part = known.get(snapshot["part"])
    if part is None or path.stem != part.name:
        raise GhostError(f"{path}: {snapshot['part']!r} is not its part{did_you_mean(path.stem, known)}")
    recorded = snapshot["records"].keys()
    if not recorded or not recorded <= set(part.targets):
        raise GhostError(f"{path} does not record what {part.name} makes: {', '.join(part.targets)}")
    missing = [target for target in recorded if target not in snapshot["files"]]
    if missing:
        raise GhostError(f"{path} has no sha256 of {missing[0]}, which it records")
    below = f"{part.folder}/" if part.folder else ""
    foreign = [
        name for name in snapshot["files"] if name not in part.targets and not (below and name.startswith(below))
    ]
    if foreign:
        raise GhostError(f"{path}: {foreign[0]} is no file of {part.name}")
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
