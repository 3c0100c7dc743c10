"""Runs: their files, records, inputs, code and environment, and the marks that follow from them.

files      every file of a run is the one that its manifest lists
records    the record is whole, unedited, and of the experiment and the seed of its folder
seeds      every seed of the study is there
inputs     the run was made from the runs, files and folders from outside that are there now, by the step, code,
           settings, environment and commit that it names
marks      its stand-ins and its reduced settings are those that follow from study, build and inputs
"""

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from ghost.audit.checks import Problem, attempt
from ghost.files import canonical, confined, sha256
from ghost.runs.code import code_hash
from ghost.runs.environment import differences, packages_of, shortened
from ghost.runs.marks import marks
from ghost.runs.outside import Place
from ghost.runs.progress import Progress
from ghost.runs.records import Run, open_runs
from ghost.study.builds import GROOT_LOCKS, LOCK, Config
from ghost.study.declarations import Experiment

Record = Mapping[str, Any]
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass
class Runs:
    """The runs of a build as far as they can be read."""

    config: Config
    listed: dict[str, dict[int, Run]] = field(default_factory=dict)  # by experiment and seed
    marks: dict[str, dict[str, Any]] = field(default_factory=dict)  # derived, by run id
    contents: dict[Place, str] = field(default_factory=dict)  # of folders from outside, every file read

    def of(self, experiment: str) -> list[Run]:
        return list(self.listed.get(experiment, {}).values())

    def check(self) -> Iterator[Problem]:
        """All problems of the runs. It fills `listed` and `marks` on its way."""
        files: list[Listed] = []
        progress, total = Progress("experiments"), len(self.config.experiments)
        for number, experiment in enumerate(self.config.experiments, 1):  # needs stand above what needs them
            manifest = self.config.manifest(experiment.name)
            yield from attempt("records", manifest, partial(self._experiment, experiment), manifest)
            for run in self.of(experiment.name):
                files += [
                    Listed(confined(run.folder, name), sha, manifest, manifest) for name, sha in run.files.items()
                ]
            progress(number, total)
        yield from changed(files)
        yield from check_environment(self.config)

    def _experiment(self, experiment: Experiment) -> Iterator[Problem]:
        manifest = self.config.manifest(experiment.name)
        if not manifest.exists():
            yield Problem("seeds", str(manifest), f"no runs of {experiment.name}")
            return
        self.listed[experiment.name] = {run.seed: run for run in open_runs(manifest)}
        there = self.listed[experiment.name]
        missing = sorted(set(experiment.seeds) - there.keys())
        if missing:
            says = f"seeds {missing} of {experiment.name} are missing: {len(there)} of {len(experiment.seeds)}"
            yield Problem("seeds", str(manifest), says, manifest)
        for run in there.values():
            path = run.folder / f"seed{run.seed}" / "run.json"
            yield from attempt("records", path, partial(self._run, experiment, run, path), manifest)

    def _run(self, experiment: Experiment, run: Run, path: Path) -> Iterator[Problem]:
        record, manifest = run.record(), self.config.manifest(experiment.name)
        wrong = misplaced(self.config, experiment, run, record)
        yield from (Problem("records", str(path), says, manifest) for says in wrong)
        yield from (Problem("inputs", str(path), says, manifest) for says in self._stale(experiment, record))
        yield from self._outside(experiment, record, path)
        derived = self._derived(experiment, run, record)
        self.marks[run.run_id] = derived
        for key, expected in derived.items():
            if canonical(record[key]) != canonical(expected):
                says = f"{key} is {canonical(record[key])}; study, build and inputs give {canonical(expected)}"
                yield Problem("marks", str(path), says, manifest)

    def _derived(self, experiment: Experiment, run: Run, record: Record) -> dict[str, Any]:
        """The marks that the run must have."""
        declared = self.config.declaration(experiment.name)["reduced"]
        used = [
            {"experiment": name.rpartition("/seed")[0], **self.marks[entry["run_id"]]}
            for name, entry in record["inputs"].items()
            if entry.get("run_id") in self.marks
        ]
        measured = {f"{m.condition}/{m.metric}": m.value for m in run.measured()} if experiment.stand_ins else {}
        return marks(experiment.stand_ins, declared, record["facts"], measured, used)

    def _stale(self, experiment: Experiment, record: Record) -> Iterator[str]:
        """What has changed since the run, or is not so: the runs and files that it used, its step, settings, code."""
        used = {name.rpartition("/seed")[0] for name, entry in record["inputs"].items() if "run_id" in entry}
        if used != set(experiment.needs):
            yield f"used runs of {', '.join(sorted(used)) or 'nothing'}; the study has {', '.join(experiment.needs)}"
        for name, entry in record["inputs"].items():
            if "run_id" in entry:
                yield from self._stale_run(name, entry)
            elif name not in experiment.reads:
                yield f"used {name}, which the study does not name"
            elif not Path(name).exists():
                yield f"its input {name} is gone"
            elif sha256(Path(name)) != entry["sha256"]:
                yield f"is stale: {name} has changed since (was {entry['sha256'][:8]})"
        made, declared = (record["step"], record["module"]), (experiment.step, experiment.module)
        if made != declared:
            yield f"is stale: made by {' with '.join(made)}, the study has {' with '.join(declared)}"
        settings, made_with = dict(experiment.settings), record["settings"]
        keys = (settings.keys() | made_with.keys()) - record["outside"].keys()  # of a folder the content counts
        differing = sorted(key for key in keys if canonical(made_with.get(key)) != canonical(settings.get(key)))
        if differing:
            yield f"is stale: {', '.join(differing)} changed in the study or the configuration"
        if record["code"]["sha256"] != code_hash(*experiment.modules, science=True):
            yield "is stale: its code has changed since"
        locks = self.config.locks(experiment.name)
        if record["lock_sha256"] not in [_sha256(lock.resolve()) for lock in locks]:
            yield f"is stale: {_other_environment(record, locks)}"
        if record["commit"] and not _has_commit(record["commit"], Path.cwd()):
            yield f"names the commit {record['commit'][:12]}, which this repository does not have"

    def _outside(self, experiment: Experiment, record: Record, path: Path) -> Iterator[Problem]:
        """Folders from outside that are not as they were. Where one is not here, nothing is to be made anew."""
        places = self.config.places(experiment.name)
        for setting in sorted(places.keys() | record["outside"].keys()):
            place, name = places.get(setting), f"{experiment.name}.{setting}"
            if place is None or not place.there:
                where = place.folder if place else experiment.settings.get(setting, "")
                yield Problem("inputs", str(path), f"{name}: there is no folder {where!r} here to compare with")
                continue
            if place not in self.contents:
                self.contents[place] = place.content(afresh=True)
            if self.contents[place] != record["outside"].get(setting):
                says = f"is stale: the content of {name}, {place.folder}, has changed since"
                yield Problem("inputs", str(path), says, self.config.manifest(experiment.name))

    def _stale_run(self, name: str, entry: Mapping[str, str]) -> Iterator[str]:
        """Whether a run that was used, such as cvae/seed42, is still the one that its manifest lists."""
        experiment, _, seed = name.rpartition("/seed")
        run = self.listed.get(experiment, {}).get(int(seed)) if seed.isdecimal() else None
        if run is None:
            yield f"its input {name} is gone"
        elif run.run_id != entry["run_id"]:
            yield f"is stale: it used run {entry['run_id']} of {name}, which is {run.run_id} now"
        elif run.content != entry["sha256"]:
            yield f"is stale: the files of {name} have changed since"


def check_environment(config: Config) -> Iterator[Problem]:
    """The environments of this machine, ours and GR00T's, where they differ from their locks."""
    here: list[tuple[tuple[Path, ...], tuple[str, ...] | None]] = [((LOCK,), None)]
    if config.backbone == "groot" and (theirs := packages_of(config.groot_python)):
        here.append((GROOT_LOCKS, theirs))
    for locks, folders in here:
        found = {lock: differences(lock.resolve(), folders) for lock in locks if lock.is_file()}
        if found and all(found.values()):
            lock = min(found, key=lambda each: len(found[each]))
            yield Problem("environment", str(lock), f"is not what is installed: {shortened(found[lock])}")


def _other_environment(record: Record, locks: Sequence[Path]) -> str:
    """Why the environment of a run is not that of the lock."""
    there = record.get("environment") or {"differs": []}
    if there["differs"]:
        return f"its environment differed from {there['lock']}: {shortened(there['differs'])}"
    return f"its environment was another one; {' or '.join(map(str, locks))} has changed since"


def misplaced(config: Config, experiment: Experiment, run: Run, record: Record) -> Iterator[str]:
    if (record["experiment"], record["seed"]) != (experiment.name, run.seed):
        yield f"was swapped: this is the run of {record['experiment']}, seed {record['seed']}"
    if record["scale"] != config.scale:
        yield f"is of the build {record['scale']}"
    recorded = {f"seed{run.seed}/{name}": entry["sha256"] for name, entry in record["outputs"].items()}
    if recorded != dict(run.files):
        yield "does not list the files that the manifest lists: swapped, or edited"


@dataclass(frozen=True)
class Listed:
    """A file whose sha256 a list has."""

    path: Path
    sha256: str
    by: Path  # the list
    remake: Path  # what Snakemake must make anew when the file is wrong


def changed(files: list[Listed]) -> Iterator[Problem]:
    """Files that are missing, or are not those that were listed."""
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter
        found = pool.map(lambda file: sha256(file.path) if file.path.is_file() else "", files)
        for file, digest in zip(files, found, strict=True):
            if not digest:
                yield Problem("files", str(file.path), f"is missing, though {file.by.name} lists it", file.remake)
            elif digest != file.sha256:
                says = f"was changed: it is not the file that {file.by.name} lists (sha256 differs)"
                yield Problem("files", str(file.path), says, file.remake)


@cache
def _sha256(path: Path) -> str:
    return sha256(path) if path.is_file() else ""


@cache
def _has_commit(commit: str, folder: Path) -> bool:
    """Whether the repository of a folder has a commit; True outside of a repository, where nobody can say."""
    if not COMMIT.fullmatch(commit):  # it comes from a file, and git would read some texts as options
        return False
    for question in (["rev-parse", "--git-dir"], ["cat-file", "-e", f"{commit}^{{commit}}"]):
        command = ["git", "-C", str(folder), *question]
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # git with a checked commit
        if done.returncode:
            return question[0] == "rev-parse"
    return True
