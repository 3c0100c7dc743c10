"""What rehearsals found: kept in data/bench/rehearsals/<build>.json, shown as a table, read by `ghost plan`."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path

from ghost.errors import GhostError, did_you_mean
from ghost.files import canonical, read_json, write_text
from ghost.forms import COUNT, require, shortened
from ghost.study.builds import Config

KEPT = Path("data/bench/rehearsals")
FITS, DOES_NOT_FIT, NOT_TRIED = "fits", "does not fit", "not tried"
TERA = 1e12


@dataclass(frozen=True)
class Rehearsed:
    """What an experiment's first unit took, and what one unit of the build will take."""

    experiment: str
    step: str
    state: str  # fits, does not fit, not tried
    why: str = ""
    unit: str = "seeds"
    device: str = ""
    on_gpu: bool = False
    start_s: float = 0.0  # imports, and what a job does before its first unit
    each_s: tuple[float, float, float] = (0.0, 0.0, 0.0)  # lowest, mean and highest of what was measured
    measured: int = 0  # how many times
    repeats: float = 1.0  # how often this happens in a unit of the build
    fixed_s: float = 0.0  # of a training: what comes once a run, such as making the model and writing it
    teach_s: float = 0.0  # of a training with a teacher: what the teacher does on all samples, once a run
    calls_s: float = 0.0  # of a training: at most what it takes to call the operations of an update
    flops: float = 0.0  # of a training: of the device in a product of matrices
    host_mb: float = 0.0  # that the full job needs
    device_mb: float = 0.0
    unit_bytes: int = 0  # that a unit writes
    took_s: float = 0.0  # of the processor, all of this rehearsal
    behind: str = ""  # a hash of its settings in the build, and of those of all that it rests on
    code: str = ""  # a hash of the code that was rehearsed

    @property
    def unit_s(self) -> float:
        return self.fixed_s + self.teach_s + self.repeats * self.each_s[1]

    def on_a_gpu_s(self, tflops: float) -> float:
        """A unit on a GPU of so many TFLOP/s, from a training that was rehearsed on a CPU.

        What takes time for its arithmetic is faster by as much as products of matrices are. What it costs to call the
        operations stays: at most what an update with a single sample takes, and at most as many calls as an update
        has, at what a call takes in the smallest decoder.
        """
        faster = tflops * TERA / self.flops
        return self.fixed_s + self.teach_s / faster + self.repeats * (self.calls_s + self.each_s[1] / faster)


def with_needs(config: Config, names: Sequence[str]) -> list[str]:
    """These experiments and all that they rest on, in the order of the study."""
    known = [experiment.name for experiment in config.experiments]
    wanted = set(names or known)
    for name in wanted - set(known):
        raise GhostError(f"no experiment {name!r}{did_you_mean(name, known)}")
    for name in reversed(known):
        if name in wanted:
            wanted |= set(config.experiment(name).needs)
    return [name for name in known if name in wanted]


def behind(config: Config, name: str) -> str:
    """The settings of an experiment and of all that it rests on: what was rehearsed with others says nothing."""
    said = {each: dict(config.experiment(each).settings) for each in with_needs(config, [name])}
    return sha256(canonical(said).encode()).hexdigest()[:16]


def keep(config: Config, rows: Iterable[Rehearsed]) -> None:
    """Keep what was rehearsed, beside what was rehearsed before."""
    path = KEPT / f"{config.scale}.json"
    old = {row.experiment: row for row in read_rows(path)} if path.is_file() else {}
    new = {row.experiment: row for row in rows}
    lines = [canonical(asdict(row)) for _, row in sorted((old | new).items())]
    write_text(path, "[\n" + ",\n".join(lines) + "\n]\n")


def read_rehearsals(config: Config, root: Path = Path()) -> dict[str, Rehearsed]:
    """What was rehearsed with the settings that the build has now, in this build or another one."""
    files = sorted((root / KEPT).glob("*.json"), key=lambda path: path.stem == config.scale)  # its own come last
    rows = [row for path in files for row in read_rows(path)]
    known = {experiment.name for experiment in config.experiments}
    rows = [row for row in rows if row.experiment in known and row.measured]
    return {row.experiment: row for row in rows if row.behind == behind(config, row.experiment)}


def read_rows(path: Path) -> list[Rehearsed]:
    """The rows of a file, which a pull may have brought. A field that is missing has its default."""
    found = []
    for given in read_json(path, [dict]):
        each = {**DEFAULTS, **given}
        require(each, FORM, path)
        numbers = [*each["each_s"], *(value for value in each.values() if type(value) in (int, float))]
        printable = all(value.isprintable() for value in each.values() if isinstance(value, str))
        if len(each["each_s"]) != 3 or min(numbers) < 0 or not printable:
            name = shortened(repr(each["experiment"]))
            raise GhostError(f"{path}: {name} needs three numbers in each_s, no number below 0, and text on one line")
        found.append(Rehearsed(**{**{key: each[key] for key in FORM}, "each_s": tuple(each["each_s"])}))
    return found


KINDS: dict[object, object] = {int: COUNT, tuple[float, float, float]: [float]}  # others are their own form
FORM = {field.name: KINDS.get(field.type, field.type) for field in fields(Rehearsed)}
DEFAULTS = {field.name: field.default for field in fields(Rehearsed) if field.default is not MISSING}
DEFAULTS |= {"each_s": [0.0, 0.0, 0.0]}


HEAD = ("experiment", "verdict", "one time", "in a unit", "of a unit", "memory", "files")


def table(rows: Iterable[Rehearsed]) -> str:
    rows = list(rows)
    counts = {state: sum(row.state == state for row in rows) for state in (FITS, DOES_NOT_FIT, NOT_TRIED)}
    said = ", ".join(f"{count} {state}" for state, count in counts.items())
    devices = sorted({row.device for row in rows if row.device})
    return "\n".join(["", _columns(HEAD), *map(line, rows), "", f"{said}; on {', '.join(devices) or 'nothing'}"])


def line(row: Rehearsed) -> str:
    if row.state == NOT_TRIED or not row.measured:
        return f"{row.experiment:34s}{row.state:14s}{row.why}"
    low, mean, high = row.each_s
    spread = f"{mean:.3g} s" + (f" ({low:.3g} to {high:.3g})" if row.measured > 1 else "")
    files = f"{row.unit_bytes / 1e6:,.1f} MB"
    shown = _columns(
        (
            row.experiment,
            row.state,
            spread,
            f"{row.repeats:,.4g}",
            f"{row.unit_s:,.0f} s",
            f"{row.host_mb:,.0f} MB",
            files,
        )
    )
    return f"{shown}  {row.why}".rstrip()


def size(count: float) -> str:
    """Of a file, as people say it."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _columns(texts: Sequence[str]) -> str:
    return "".join(f"{text:{width}s}" for text, width in zip(texts, (34, 14, 32, 11, 12, 12, 12), strict=True)).rstrip()
