"""The driver of all steps that make runs. A step module has its own work and nothing else.

    python -m ghost.steps.<step> --experiment '{...}' [--needs <manifest> ...] --out <folder>/manifest.json

Each step receives its experiment as JSON, the manifests of the experiments that it needs, and the manifest to write. A
step is a function that reads the job and returns a `Plan`; the driver finds or does the run of each seed (a unit of
work, see ghost.runs.units), records it and writes the manifest. What a run inherits from its inputs (stand-ins, reduced
settings) is inherited here. A run that consists of many independent units returns a `Split`.

With `--done` a job does a part of the work and writes no manifest, only the file that the option names. The part is
the runs of those seeds that the job receives, or with `--part 2 --parts 8` a share of the units of each of these runs.
The job without `--done` then finds what the parts have done (`ghost.study.parts` says which parts there are).
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import tyro

from ghost.data.results import MEASURED, Outcome, read_measured, write_outcome
from ghost.errors import GhostError, exit_on_error
from ghost.files import confined, hashes, link, read_json, sha256, tidy, write_json, write_text
from ghost.runs.circumstances import circumstances
from ghost.runs.code import ROOT, code_hash, file_hash, sources
from ghost.runs.environment import lock_sha256
from ghost.runs.job import Job as Job
from ghost.runs.marks import marks
from ghost.runs.progress import Progress
from ghost.runs.records import LOCK, RECORD, UNITS, Run, check_record, digest, identity
from ghost.runs.units import ENTRY, Kept, Made, Store, address_of, run_all, workers

UNIT = ("unit", "address", "start", "wall_s")  # when each unit of a run was done
DERIVED = ("run_id", "stand_ins", "reduced", "outputs", "sha256")  # fields of a record that follow from others


@dataclass(frozen=True)
class Unit:
    """The run of one seed, at work."""

    seed: int
    runs: Sequence[Run]  # its inputs, in the order of the needs
    folder: Path  # for its files, also unfinished ones, from which a killed run goes on
    number: int  # of the seed among all seeds of the job
    count: int


@dataclass(frozen=True)
class Split:
    """A run that consists of independent units. `items` are plain JSON by name; parallel `work` must be picklable."""

    items: Mapping[str, Any]
    work: Callable[[Path, Any], Made]
    join: Callable[[list[Kept]], Outcome]
    without: tuple[str, ...] = ()  # settings that say which items there are and change none of them
    parallel: bool = True  # False: all in this process, where the work holds a model or a GPU
    noun: str = "units"
    summary: Callable[[list[Any]], str] = lambda values: ""  # of the values so far, for the progress line
    beside: Callable[[], AbstractContextManager[None]] | None = None  # runs while units are done, such as a server


def paired(seed: int, needs: Sequence[list[Run]]) -> list[Run]:
    """The inputs of a run by default: of each need its only run, or the one with the same seed."""
    found = []
    for runs in needs:
        same = runs if len(runs) == 1 else [run for run in runs if run.seed == seed]
        if not same:
            there = ", ".join(str(run.seed) for run in runs)
            raise GhostError(f"{runs[0].folder.name} has no run with seed {seed}; its seeds are {there}")
        found += same
    return found


@dataclass(frozen=True)
class Plan:
    """What a step does for a job. `run` is called for those seeds only whose run is not there yet."""

    run: Callable[[Unit], Outcome | Split]
    inputs: Callable[[int, Sequence[list[Run]]], list[Run]] = paired
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else determines the runs: hashes of weights, assets
    lock: Path = LOCK  # pins the environment


Step = Callable[[Job], Plan]


def main(step: Step) -> None:
    """The command line of a step."""
    exit_on_error(lambda: tyro.cli(partial(execute, step), description=step.__doc__))


def execute(
    step: Step,
    experiment: str,
    out: Path,
    needs: Sequence[Path] = (),
    reads: Sequence[Path] = (),
    part: int = 1,
    parts: int = 1,
    done: Path | None = None,
) -> None:
    """Find or do the run of every seed, and write the manifest; or do one part of the units.

    Args:
        experiment: the experiment as the study declares it at some scale, as JSON.
        out: the manifest to write; the runs go beside it.
        needs: the manifests of the experiments that it needs.
        reads: the files of the repository that it reads.
        part: with --done, which share of the units of each run to do, 1 to `parts`.
        parts: how many jobs share the units of a run.
        done: the file to write instead of the manifest, when this part of the work is done.
    """
    if not 1 <= part <= parts:
        raise GhostError(f"part must be 1 to {parts}, got {part}")
    job = Job.open(experiment, out, needs, reads)
    for folder in (job.folder, job.store.folder / job.step):
        tidy(folder)
    driver = Driver(job, step(job))
    if done is not None:
        write_json(done, driver.do_part(part, parts))
        return
    listed = [driver.record(seed) for seed in job.seeds]
    write_json(out, {"experiment": job.name, "scale": job.scale, "runs": listed})


@dataclass(frozen=True)
class Driver:
    job: Job
    plan: Plan

    def declared(self, seed: int) -> dict[str, Any]:
        """The fields of a record that are known before the run."""
        job, chosen = self.job, self.plan.inputs(seed, self.job.needs)
        inputs: dict[str, Mapping[str, str]] = {
            run.name: {"run_id": run.run_id, "sha256": run.content} for run in chosen
        }
        outside = {name: place.content() for name, place in job.places.items()}
        return {
            "experiment": job.name,
            "step": job.step,
            "module": job.module.__name__,
            "scale": job.scale,
            "settings": {name: outside.get(name, value) for name, value in job.settings.items()},
            "outside": outside,
            "seed": seed,
            "inputs": inputs | {str(path): hashes(path) for path in job.reads},
            "code": {
                "sha256": code_hash(*job.modules, science=True),
                "files": {
                    str(path.relative_to(ROOT.parent)): {"sha256": file_hash(path)}
                    for path in sources(*job.modules, science=True)
                },
            },
            "lock_sha256": lock_sha256(self.plan.lock),
            "facts": dict(self.plan.facts),
        }

    def record(self, seed: int) -> dict[str, Any]:
        """Find or do a run, show it in the experiment's folder, and return its entry of the manifest."""
        record, folder = self.declared(seed), confined(self.job.folder, f"seed{seed}")
        kept = self.find_or_do(seed, record)
        records = [run.record() for run in self.plan.inputs(seed, self.job.needs)]
        measured = read_measured((kept.folder / MEASURED).read_bytes(), MEASURED)
        values = {f"{m.condition}/{m.metric}": m.value for m in measured}
        record |= {
            "run_id": kept.address,
            **marks(self.job.stand_ins, self.job.reduced, self.plan.facts, values, records),
            "outputs": kept.files,
            "start": kept.start,
            "wall_s": kept.wall_s,
            "cpu_s": kept.cpu_s,
            **kept.value["circumstances"],
        }
        record["sha256"] = digest(record)
        check_record(record, folder / RECORD)
        _show(kept, folder)
        write_json(folder / RECORD, record)
        if kept.value["units"]:
            write_text(folder / UNITS, _units_text(kept.value["units"]))
        files = {f"{folder.name}/{name}": entry["sha256"] for name, entry in kept.files.items()}
        return {"run_id": kept.address, "seed": seed, "files": files}

    def find_or_do(self, seed: int, record: Mapping[str, Any]) -> Kept:
        work = partial(self.work, seed, record)
        return self.find(record) or self.job.store.do(self.job.step, identity(record), work)

    def find(self, record: Mapping[str, Any]) -> Kept | None:
        """A finished run: among the units, or in its folder, as after `dvc pull`; then it becomes a unit again."""
        found, folder = self.job.store.find(self.job.step, identity(record)), self.job.folder / f"seed{record['seed']}"
        if found is not None or not (folder / RECORD).is_file():
            return found
        try:
            return self.adopt(record, folder)
        except GhostError:  # it is damaged: do it again
            return None

    def adopt(self, record: Mapping[str, Any], folder: Path) -> Kept | None:
        """The run in a folder as a unit, if it is the one that is wanted and whole."""
        store, known, there = self.job.store, identity(record), read_json(folder / RECORD, dict)
        check_record(there, folder / RECORD)
        files = {confined(folder, name): entry["sha256"] for name, entry in there["outputs"].items()}
        right = all(path.is_file() and sha256(path) == expected for path, expected in files.items())
        if there["run_id"] != address_of(known) or not files or not right:
            return None
        for path in files:
            link(path, store.folder / self.job.step / there["run_id"] / path.relative_to(folder))
        lines = _read_units(confined(folder, UNITS)) if (folder / UNITS).is_file() else []
        around = {key: there[key] for key in there.keys() - record.keys() - {*DERIVED, *ENTRY}}
        value = {"circumstances": around, "units": lines}
        times = {key: there[key] for key in ("start", "wall_s", "cpu_s")}
        return store.keep(self.job.step, known, {"value": value, "files": there["outputs"], **times})

    def work(self, seed: int, record: Mapping[str, Any], folder: Path) -> Made:
        """Do a run: the work of its unit."""
        folder.mkdir(parents=True, exist_ok=True)
        outcome, units = self.plan.run(self.unit(seed, folder)), []
        if isinstance(outcome, Split):
            split, made = outcome, self.do_items(outcome, record, outcome.items)
            outcome = split.join(made)
            units = [
                (name, kept.address, kept.start, str(kept.wall_s)) for name, kept in zip(split.items, made, strict=True)
            ]
        around = circumstances(self.job.modules, self.plan.lock)
        around |= {"places": {name: place.folder for name, place in self.job.places.items()}}
        value = {"circumstances": around, "units": units}
        return Made(value, write_outcome(folder, outcome), outcome.hashes)

    def do_items(self, split: Split, record: Mapping[str, Any], items: Mapping[str, Any]) -> list[Kept]:
        """Find or do units of a run, on the cores of this job where they are parallel."""
        alike = identity(record)
        del alike["experiment"]
        alike["settings"] = {key: value for key, value in alike["settings"].items() if key not in split.without}
        do = partial(_do_item, self.job.store, self.job.step, alike, split.work)
        progress, made = Progress(split.noun), []
        with self.beside(split, alike, items):
            for kept in run_all(do, list(items.values()), workers() if split.parallel else 1):
                made.append(kept)
                progress(len(made), len(items), split.summary([unit.value for unit in made]))
        return made

    def beside(self, split: Split, alike: Mapping[str, Any], items: Mapping[str, Any]) -> AbstractContextManager[None]:
        """What the units of a run need beside them, unless all are there."""
        find = partial(self.job.store.find, self.job.step)
        if split.beside is None or all(find({**alike, "item": item}) for item in items.values()):
            return nullcontext()
        return split.beside()

    def do_part(self, part: int, parts: int) -> list[str]:
        """This job's part of the work: whole runs, or its share of the units of each run; returns their addresses."""
        addresses: list[str] = []
        for seed in self.job.seeds:
            record = self.declared(seed)
            if parts == 1:
                addresses.append(self.find_or_do(seed, record).address)
            elif self.find(record) is None:
                split = self.plan.run(self.unit(seed, self.job.store.folder / self.job.step))
                if not isinstance(split, Split):
                    raise GhostError(f"{self.job.name}: a run of {self.job.step} has no parts")
                first, last = (len(split.items) * k // parts for k in (part - 1, part))
                share = dict(list(split.items.items())[first:last])
                addresses += [kept.address for kept in self.do_items(split, record, share)]
        return addresses

    def unit(self, seed: int, folder: Path) -> Unit:
        seeds = self.job.seeds
        return Unit(seed, self.plan.inputs(seed, self.job.needs), folder, seeds.index(seed), len(seeds))


def _do_item(store: Store, kind: str, alike: Mapping[str, Any], work: Callable[[Path, Any], Made], item: Any) -> Kept:
    return store.find_or_do(kind, {**alike, "item": item}, lambda folder: work(folder, item))


def _units_text(units: Sequence[Sequence[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows((UNIT, *units))
    return text.getvalue()


def _read_units(path: Path) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            head, *units = csv.reader(lines, strict=True)
    except (ValueError, csv.Error) as error:
        raise GhostError(f"{path} is no list of units: {error}") from None
    if any(len(line) != len(UNIT) for line in (head, *units)):
        raise GhostError(f"{path} is no list of units: every line has {', '.join(UNIT)}")
    return units


def _show(kept: Kept, folder: Path) -> None:
    """The files of a unit as files of a run: hard links where the file system has them."""
    for name in kept.files:
        link(kept.folder / name, folder / name)
    for path in list(folder.rglob("*")):
        if path.is_file() and str(path.relative_to(folder)) not in kept.files:
            path.unlink()
