"""What jobs take on one machine beside their runs: the start of a job, and light rules as a whole.

Snakemake records when each job began and ended. `ghost plan --keep` puts what these records say of a build into
data/bench/jobs.json, from where `ghost plan --here` prices what no rehearsal knows. It is the clock's time, so the
build should have had the machine to itself.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean

from ghost.errors import GhostError
from ghost.files import canonical, read_json, write_text
from ghost.forms import COUNT, shortened
from ghost.project.snapshots import METADATA
from ghost.runs.records import open_runs
from ghost.study.builds import Config

BENCH = Path("data/bench/jobs.json")
RECORD = {"rule": str, "log": [str], "starttime": float, "endtime": float}


@dataclass(frozen=True)
class JobTime:
    """The mean of a rule's jobs in one build; of a rule that makes runs, without the runs themselves."""

    rule: str
    build: str
    device: str
    jobs: int
    each_s: float


FORM = {field.name: COUNT if field.type is int else field.type for field in fields(JobTime)}


def measured(config: Config, metadata: Path = METADATA) -> list[JobTime]:
    """What Snakemake's records say of a build that was made here."""
    runs_s: dict[str, float] = {}  # by experiment
    devices: set[str] = set()
    for experiment in config.experiments:
        manifest = config.manifest(experiment.name)
        if manifest.is_file():
            records = [run.record() for run in open_runs(manifest)]
            runs_s[experiment.name] = sum(record["wall_s"] for record in records)
            devices |= {record["cpu"] for record in records}
    jobs: dict[Path, tuple[str, float]] = {}  # by its log: a job has a record for each of its outputs
    for path in (path for path in metadata.rglob("*") if path.is_file()):
        record = read_json(path, RECORD)
        below = Path("logs") / config.scale
        if record["log"] and (log := Path(record["log"][0])).is_relative_to(below):
            jobs[log] = (record["rule"], record["endtime"] - record["starttime"])
    steps = {experiment.step for experiment in config.experiments}
    found: dict[str, list[float]] = {}
    for log, (rule, taken_s) in jobs.items():
        if taken_s > 0 and (rule not in steps or log.stem in runs_s):
            found.setdefault(rule, []).append(max(0.0, taken_s - (runs_s[log.stem] if rule in steps else 0.0)))
    device = ", ".join(sorted(devices))
    return [JobTime(rule, config.scale, device, len(s), round(fmean(s), 3)) for rule, s in sorted(found.items())]


def keep(config: Config, bench: Path = BENCH) -> str:
    """Put them into data/bench/jobs.json, in place of those of the same build."""
    new = measured(config)
    rows = [row for row in read(bench) if row.build != config.scale] + new
    lines = [canonical(asdict(row)) for row in sorted(rows, key=lambda row: (row.build, row.rule))]
    write_text(bench, "[\n" + ",\n".join(lines) + "\n]\n")
    return f"{bench}: {len(new)} rules of {config.data}, {len(lines)} in all"


def read(bench: Path = BENCH) -> list[JobTime]:
    rows = [JobTime(**{key: row[key] for key in FORM}) for row in (read_json(bench, [FORM]) if bench.is_file() else [])]
    for row in rows:
        if row.each_s < 0:
            raise GhostError(f"{bench}: each_s of {shortened(repr(row.rule))} must not be below 0, got {row.each_s}")
    return rows


def of_rule(rows: Iterable[JobTime], rule: str, build: str) -> float | None:
    """Seconds of a rule's job: of this build, or the mean of others; None if nobody has measured it."""
    known = [row for row in rows if row.rule == rule]
    own = [row for row in known if row.build == build]
    return fmean(row.each_s for row in own or known) if known else None
