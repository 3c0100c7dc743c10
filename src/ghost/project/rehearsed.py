"""What rehearsals found: kept in data/bench/rehearsals/<build>.json, shown as a table, read by `ghost plan`."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from ghost.errors import GhostError, did_you_mean
from ghost.files import canonical, read_json, write_text
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
    one_s: float = 0.0  # of a training: an update with one sample
    flops: float = 0.0  # of a training: of the device in a product of matrices
    host_mb: float = 0.0  # that the full job needs
    device_mb: float = 0.0
    unit_bytes: int = 0  # that a unit writes
    behind: str = ""  # a hash of its settings in the build, and of those of all that it rests on

    @property
    def unit_s(self) -> float:
        return self.repeats * self.each_s[1]

    def on_a_gpu_s(self, tflops: float) -> float:
        """A unit on a GPU of so many TFLOP/s, from a training that was rehearsed on a CPU.

        What takes time for its arithmetic is faster by as much as products of matrices are. What it costs to call the
        operations stays: at most what an update with a single sample takes.
        """
        return self.repeats * (self.one_s + self.each_s[1] * self.flops / (tflops * TERA))


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
    old = {entry["experiment"]: entry for entry in read_json(path, [dict])} if path.is_file() else {}
    new = {row.experiment: asdict(row) for row in rows}
    lines = [canonical(entry) for _, entry in sorted((old | new).items())]
    write_text(path, "[\n" + ",\n".join(lines) + "\n]\n")


def read_rehearsals(config: Config, root: Path = Path()) -> dict[str, Rehearsed]:
    """What was rehearsed with the settings that the build has now, in this build or another one."""
    files = sorted((root / KEPT).glob("*.json"), key=lambda path: path.stem == config.scale)  # its own come last
    listed = [each for path in files for each in read_json(path, [{"experiment": str, "behind": str}])]
    rows = [Rehearsed(**{**each, "each_s": tuple(each["each_s"])}) for each in listed]
    known = {experiment.name for experiment in config.experiments}
    rows = [row for row in rows if row.experiment in known and row.measured]
    return {row.experiment: row for row in rows if row.behind == behind(config, row.experiment)}


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


def _columns(texts: Sequence[str]) -> str:
    return "".join(f"{text:{width}s}" for text, width in zip(texts, (34, 14, 28, 11, 12, 12, 12), strict=True)).rstrip()
