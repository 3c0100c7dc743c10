"""What a unit of work takes, from measurements: of this build, of its rehearsal, or of other builds.

The build's own runs come first, then `ghost rehearse`, then other builds and data/bench/units.json.

A measurement of another build counts if its settings, and those of everything that it rests on, differ in amounts
only: epochs, rounds, episodes, samples. Time is proportional to these, and the price is scaled. If only what it rests
on is of another size, as an episode with a smaller policy, it is the second choice, and the price says so. A unit of
other widths says nothing about this build. Without a measurement, the price is the time limit of the profile: an upper
bound.

The time of a unit is that of its processor, where it ran without a GPU: a busy machine stretches the clock's time.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from ghost.errors import GhostError
from ghost.files import canonical, read_json, write_text
from ghost.forms import COUNT, has_form
from ghost.project.rehearsed import Rehearsed, read_rehearsals
from ghost.runs.records import UNITS, open_runs
from ghost.runs.units import KEPT
from ghost.study.builds import Config
from ghost.study.parts import NOUNS, SEEDS, units_of

BENCH = Path("data/bench/units.json")
# Settings that say how much of the same work a unit is, by step: its own, then those of what it rests on.
OWN: Mapping[str, tuple[str, ...]] = {
    "train": ("epochs",),
    "train_agent": ("epochs",),
    "evaluate": ("rounds", "episodes", "samples", "tasks"),
    "make_demos": ("episodes", "episodes_per_task", "learners", "tasks", "max_steps"),
    "rollout": ("max_steps",),
    "finetune": ("steps",),
    "cache_features": ("samples_per_shard",),
}
BEHIND: Mapping[str, tuple[str, ...]] = {
    "train": ("libero_demos.attempts", "libero_demos.tasks"),
    "train_agent": ("ml10_demos.episodes_per_task", "ml45_demos.episodes_per_task"),
}
# Settings that change no unit: how many there are, and how long the models were trained that it looks at.
COUNTS: Mapping[str, tuple[str, ...]] = {
    "rollout": ("tasks", "trials", "misdirect", "switch_at"),
    "make_demos": ("attempts",),
    "cache_features": ("stride", "test_episodes", "train_per_task", "test_per_task"),
    "evaluate": ("warm_up",),
}
LIGHT_MODELS = ("rollout", "evaluate")  # steps in which the size of a model is a small part of the work
OTHER_INPUTS = ", with inputs of another size"
FREE = ("epochs", "attempts", "tasks", "trials", "episodes_per_task", "patience")  # of what it rests on


@dataclass(frozen=True)
class Measurement:
    """The mean time of an experiment's units in one build, and the settings that they had."""

    experiment: str
    step: str
    build: str
    unit: str  # a run, or the units that a run consists of
    unit_s: float
    units: int  # measured
    peak_memory_mb: float
    device: str
    on_gpu: bool
    settings: Mapping[str, Any]
    reduced: Mapping[str, Any]  # what is smaller than in the paper, inherited


FORM = {
    **dict.fromkeys(("experiment", "step", "build", "unit", "device"), str),
    **{"unit_s": float, "units": COUNT, "peak_memory_mb": float, "on_gpu": bool},
    **{"settings": dict, "reduced": {str: dict}},
}


@dataclass(frozen=True)
class Price:
    unit_s: float
    source: str  # where the number comes from, in words
    on_gpu: bool = False  # it was measured on one
    low: float = 1.0  # the lowest and the highest measurement, as shares of the mean
    high: float = 1.0
    rehearsed: Rehearsed | None = None
    start_s: float = 0.0  # of a process, before its first unit


@dataclass(frozen=True)
class Prices:
    """The prices of a build's experiments."""

    config: Config
    root: Path = Path()

    @cached_property
    def known(self) -> dict[str, list[Measurement]]:
        """By experiment: this build's own first, then those of other builds here, then those that are kept."""
        found: dict[str, list[Measurement]] = {}
        builds = sorted((path.parent for path in self.root.glob("data/*/runs")), key=lambda b: b != self.config.data)
        listed = [each for build in builds for each in measurements(build)]
        for measured in (*listed, *self.kept):
            found.setdefault(measured.experiment, []).append(measured)
        return found

    @cached_property
    def kept(self) -> list[Measurement]:
        """Those of data/bench/units.json, the longest first."""
        kept = read_json(self.root / BENCH, [FORM]) if (self.root / BENCH).is_file() else []
        return sorted((Measurement(**{key: each[key] for key in FORM}) for each in kept), key=lambda each: -each.unit_s)

    @cached_property
    def rehearsed(self) -> dict[str, Rehearsed]:
        return read_rehearsals(self.config, self.root)

    def price(self, name: str) -> Price | None:
        """What a unit of an experiment takes; None where nothing comparable was measured."""
        noun, _ = units_of(self.config, name)
        own = [each for each in self.known.get(name, ()) if each.build == self.config.scale and each not in self.kept]
        if not any(self.ratio(name, each) for each in own) and (row := self.rehearsed.get(name)) is not None:
            return _of_rehearsal(row)
        known = [measured for measured in self.known.get(name, ()) if measured.unit == noun]
        for strict, warning in ((True, ""), (False, OTHER_INPUTS)):
            ratios = [(measured, self.ratio(name, measured, strict=strict)) for measured in known]
            found = [(measured, ratio) for measured, ratio in ratios if ratio is not None]
            if found:
                seconds, how = _scaled(found)
                first = found[0][0]
                return Price(seconds, f"{first.build} on {first.device}{how}{warning}", first.on_gpu)
        return None

    def ratio(self, name: str, measured: Measurement, *, strict: bool = True) -> float | None:
        """How much more work a unit is here than it was there; None where they are not comparable."""
        here, step = self.config.experiment(name), measured.step
        if here.step != step or here.settings.keys() != measured.settings.keys():
            return None
        amounts, counts, ratio = OWN.get(step, ()), COUNTS.get(step, ()), 1.0
        for key, value in here.settings.items():
            if value != measured.settings[key] and key not in counts:
                if key not in amounts or (more := _ratio(value, measured.settings[key])) is None:
                    return None
                ratio *= more
        for key in {key for key in measured.reduced if "." in key} | self.reduced_behind(name):
            value, there = self.behind(key), measured.reduced.get(key, {}).get("here", self.paper(key))
            if value == there:
                continue
            if key in BEHIND.get(step, ()) and (more := _ratio(value, there)) is not None:
                ratio *= more
            elif key.partition(".")[2] not in FREE and (strict or step not in LIGHT_MODELS):
                return None
        return ratio

    def reduced_behind(self, name: str) -> set[str]:
        """Settings of what an experiment rests on that are smaller here than in the paper, as <experiment>.<key>."""
        found: set[str] = set()
        for need in self.config.experiment(name).needs:
            found |= {f"{need}.{key}" for key in self.config.declaration(need)["reduced"]} | self.reduced_behind(need)
        return found

    def behind(self, key: str) -> Any:
        name, _, setting = key.partition(".")
        return self.config.experiment(name).settings.get(setting)

    def paper(self, key: str) -> Any:
        name, _, setting = key.partition(".")
        return next(each for each in self.config.paper if each.name == name).settings.get(setting)


def measurements(build: Path) -> Iterator[Measurement]:
    """What the records of a build's runs say."""
    for manifest in sorted(build.glob("runs/*/manifest.json")):
        try:
            records = [(run, run.record()) for run in open_runs(manifest)]
        except GhostError:  # damaged: `ghost audit --verify` says so
            continue
        record = records[0][1]
        times = [time for run, _ in records for time in unit_times(build, record["step"], manifest.parent, run.seed)]
        yield Measurement(
            record["experiment"],
            record["step"],
            build.name,
            NOUNS[record["step"]] if times else SEEDS,
            round(fmean(times or [_time(record) for _, record in records]), 3),
            len(times or records),
            max(record["peak_memory_mb"] for _, record in records),
            record["gpus"][0]["model"] if record["gpus"] else record["cpu"],
            bool(record["gpus"]),
            record["settings"],
            record["reduced"],
        )


def keep(build: Path, bench: Path = BENCH) -> str:
    """Put the measurements of a build into data/bench/units.json, in place of those of the same settings."""
    new = {_key(entry): entry for entry in map(asdict, measurements(build))}
    old = {_key(entry): entry for entry in read_json(bench, [FORM])} if bench.is_file() else {}
    lines = [canonical(entry) for _, entry in sorted((old | new).items())]
    write_text(bench, "[\n" + ",\n".join(lines) + "\n]\n")
    return f"{bench}: {len(new)} experiments of {build}, {len(lines)} in all"


def _scaled(found: Sequence[tuple[Measurement, float]]) -> tuple[float, str]:
    """Seconds of a unit here, and how they come about.

    Two measurements of different amounts give the time that each begins with, and the rest is proportional. From one
    alone, all of it is scaled, the beginning too: an upper bound where little was measured.
    """
    measured, ratio = found[0]
    if ratio == 1:
        return measured.unit_s, ""
    for other, other_ratio in found[1:]:
        slope = (measured.unit_s - other.unit_s) / (1 / ratio - 1 / other_ratio) if ratio != other_ratio else 0.0
        if slope > 0 and measured.device == other.device:
            return measured.unit_s + slope * (1 - 1 / ratio), f", from two sizes, the larger times {ratio:.3g}"
    return measured.unit_s * ratio, f", times {ratio:.3g} for its size"


def _of_rehearsal(row: Rehearsed) -> Price:
    low, mean, high = row.each_s
    shares = (low / mean, high / mean) if mean else (1.0, 1.0)
    return Price(row.unit_s, f"rehearsed on {row.device}", row.on_gpu, *shares, row, row.start_s)


def _key(entry: Mapping[str, Any]) -> tuple[str, str]:
    return entry["experiment"], canonical([entry["build"], entry["settings"], entry["reduced"]])


def _time(entry: Mapping[str, Any]) -> float:
    """Of a run or a unit, in seconds."""
    return float(entry["wall_s"] if entry.get("gpus") else min(entry["wall_s"], entry["cpu_s"]))


def unit_times(build: Path, step: str, folder: Path, seed: int) -> list[float]:
    """Of the units of a run: a kept unit knows the processor's time, the list in the run's folder the clock's."""
    return [
        _time(read_json(unit, KEPT)) if unit.is_file() else wall_s
        for unit, wall_s in _kept_units(build, step, folder, seed)
    ]


def unit_samples(build: Path, step: str, folder: Path, seed: int) -> list[int]:
    """Of the shards of a feature cache: how many samples each has."""
    units = [unit for unit, _ in _kept_units(build, step, folder, seed)]
    return [int(read_json(unit, {"value": {"samples": range(1, 10**9)}})["value"]["samples"]) for unit in units]


def _kept_units(build: Path, step: str, folder: Path, seed: int) -> list[tuple[Path, float]]:
    """The files of a run's units, and the seconds that the list in the run's folder has for each."""
    path = folder / f"seed{seed}" / UNITS
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as lines:
        listed = list(csv.DictReader(lines))
    return [(build / "units" / step / f"{line['address']}.json", float(line["wall_s"])) for line in listed]


def _ratio(here: Any, there: Any) -> float | None:
    """How much more one amount is than another; None where one of them is no amount."""
    amounts = [float(len(each)) if isinstance(each, list) else each for each in (here, there)]
    if not all(has_form(each, float) and each > 0 for each in amounts):
        return None
    return float(amounts[0]) / float(amounts[1])
