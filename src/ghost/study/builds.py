"""A build: the file `config/<name>.yaml`, with `--config` on top, checked against the schema and the study.

The study holds the paper's own sizes; a build's file holds only what is smaller there, or what is other data. So what
was reduced is known by comparison, and goes into the records and onto the PDF's stamp. A file may extend another one
(`extends: paper`). What `--config` said is kept in `data/<name>/build.json` when the build starts, and every command
reads the build as it was made (`opened`).
"""

import dataclasses
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jsonschema

from ghost.errors import GhostError, did_you_mean
from ghost.files import read_json, read_yaml, write_json
from ghost.forms import require, shortened
from ghost.runs.outside import HUB, Place
from ghost.study import ARTEFACTS, DECLARED, EXPERIMENTS, groot, libero, own_data
from ghost.study.declarations import Artefact, Experiment, check
from ghost.study.offline import FEATURES
from ghost.study.resizing import resized, wanted_seeds
from ghost.study.seeds import Wanted, resolved

AT_ROOT = "laptop"  # the build whose figures and PDF lie at the root of the project
COMMAND_LINE = "--config"
EXTENDS = "extends"
HOW = ("scale", "workers", "camera_ready")  # keys that say how to build, not what
NAME = re.compile(r"[a-z0-9_]+")
SCHEMA = Path("workflow/schemas/config.schema.yaml")
LOCK = Path("requirements.lock")
GROOT_LOCKS = (Path("workflow/envs/groot.lock"), Path("workflow/envs/groot-cpu.lock"))
GROOT_PYTHON = ".venv-groot/bin/python"  # of the environment that `make .venv-groot/ready` makes


@dataclass(frozen=True)
class Config:
    """One build, ready to use: its experiments with their settings and seeds there, and where its files go."""

    scale: str
    experiments: tuple[Experiment, ...]
    paper: tuple[Experiment, ...] = EXPERIMENTS  # the same at the paper's own sizes
    backbone: str = "standin"
    groot_python: str = GROOT_PYTHON
    workers: int = 1  # processes that share the episodes of a job in LIBERO
    libero_assets: str = ""  # a folder, or hub; none: those that are there (ghost.libero.assets)
    camera_ready: bool = False  # refuse what a draft only marks
    overrides: Mapping[str, Any] = field(default_factory=dict)  # what `--config` said
    files: tuple[Path, ...] = ()  # of the configuration, each extended by the next one
    artefacts: tuple[Artefact, ...] = ARTEFACTS  # figures and tables
    tasks: tuple[str, ...] = ()  # of a lab's own data set, whose study is ghost.study.own_data; none: the article's

    @property
    def text(self) -> Path:
        """The folder of the report's text: main.tex, supplement.tex, sections."""
        return Path("paper/own_data" if self.tasks else "paper")

    def artefact(self, identity: str) -> Artefact:
        for artefact in self.artefacts:
            if artefact.id == identity:
                return artefact
        raise GhostError(f"no figure or table {identity!r}{did_you_mean(identity, [a.id for a in self.artefacts])}")

    def buildable(self, *, tex: bool) -> list[Artefact]:
        """The figures and tables that are made here: without TeX, not the drawings."""
        return [artefact for artefact in self.artefacts if artefact.step and (tex or artefact.step != "draw")]

    @property
    def data(self) -> Path:
        return Path("data") / self.scale

    @property
    def home(self) -> Path:
        """Where figures and PDF go. No build overwrites the PDF of another one."""
        return Path() if self.scale == AT_ROOT else self.data

    @property
    def figures(self) -> Path:
        return self.home / "figures"

    @property
    def generated(self) -> Path:
        return self.home / "paper" / "generated"

    @property
    def pdf(self) -> Path:
        return self.home / "paper" / "ghost.pdf"

    @property
    def supplement(self) -> Path:
        """What the links of the report lead to. Its name stands in paper/ghost.sty too, as the report links to it."""
        return self.pdf.with_name("ghost_supplement.pdf")

    @property
    def pdfs(self) -> tuple[Path, Path]:
        return self.pdf, self.supplement

    @property
    def memory(self) -> Path:
        """What `--config` said when the build was made."""
        return self.data / "build.json"

    def remember(self) -> None:
        said: dict[str, Any] = {"overrides": {key: value for key, value in self.overrides.items() if key not in HOW}}
        if self.tasks:
            said["tasks"] = list(self.tasks)  # so that a build can be read where its data set is not
        if not self.memory.is_file() or read_json(self.memory) != said:
            write_json(self.memory, said)

    @property
    def inventory(self) -> Path:
        """The sha256 of every file of the build."""
        return self.data / "inventory.json"

    @property
    def page(self) -> str:
        """The way from the PDFs to the audit page, for their links."""
        return os.path.relpath(self.data / "audit.html", self.pdf.parent)

    @cached_property
    def _by_name(self) -> dict[str, tuple[Experiment, Experiment]]:
        """Each experiment here, and as the paper has it. Every job looks up one: thousands of them must not matter."""
        paper = {experiment.name: experiment for experiment in self.paper}
        return {experiment.name: (experiment, paper[experiment.name]) for experiment in self.experiments}

    def experiment(self, name: str) -> Experiment:
        _known(name, self._by_name, "experiment")
        return self._by_name[name][0]

    def in_groot(self, name: str) -> bool:
        """Whether an experiment runs in GR00T's environment, which is not ours."""
        return groot.in_groot(self.experiment(name))

    def served(self, name: str) -> bool:
        """Whether its policies act in a server in GR00T's environment, beside the simulators in ours."""
        return groot.served(self.experiment(name))

    def locks(self, name: str) -> tuple[Path, ...]:
        """The files that pin the packages of an experiment's environment: GR00T's has one for GPUs, one for CPUs."""
        return GROOT_LOCKS if self.in_groot(name) else (LOCK, *(GROOT_LOCKS if self.served(name) else ()))

    def python(self, name: str) -> list[str]:
        """The interpreter of an experiment."""
        return [find_groot_python(self) if self.in_groot(name) else sys.executable]

    def environment(self, name: str) -> dict[str, str]:
        """The variables that an experiment needs."""
        assets = {"GHOST_LIBERO_ASSETS": self.libero_assets} if self.libero_assets and self.in_libero(name) else {}
        return assets | (groot.serving(self.groot_python) if self.served(name) else {})

    def places(self, name: str) -> dict[str, Place]:
        """The folders from outside that an experiment reads, by the setting that names each."""
        experiment = self.experiment(name)
        found = {source.setting: source.place(experiment.settings) for source in experiment.places}
        if self.libero_assets not in ("", HUB) and self.in_libero(name):
            found["libero_assets"] = Place(self.libero_assets)
        return {setting: place for setting, place in found.items() if place}

    def outside(self, name: str) -> dict[str, str]:
        """The content of these folders."""
        return {setting: self._content(place) for setting, place in self.places(name).items()}

    def check_places(self) -> None:
        """Refuse folders that are missing, before anything runs."""
        for experiment in self.experiments:
            for source in experiment.places:
                source.check(experiment.name, experiment.settings)
        if self.libero_assets not in ("", HUB) and not Path(self.libero_assets).is_dir():
            raise GhostError(f"libero_assets: there is no folder {self.libero_assets!r}")

    @cached_property
    def _content(self) -> Callable[[Place], str]:
        """Each folder is looked at once, also where many experiments read it."""
        return cache(Place.content)

    def threads(self, name: str) -> int:
        """Cores that a job asks for. Episodes are independent: any number of workers gives the same results."""
        return self.workers if self.in_libero(name) else 1

    def in_libero(self, name: str) -> bool:
        """Whether an experiment runs LIBERO's simulation."""
        experiment = self.experiment(name)
        return experiment.step == "rollout" or experiment.module == "ghost.libero.demos"

    def manifest(self, name: str) -> Path:
        return self.data / "runs" / name / "manifest.json"

    def part(self, name: str, part: str) -> Path:
        """What a job leaves that did a part of an experiment (`ghost.study.parts`)."""
        return self.data / "parts" / name / f"{part}.json"

    def declaration(self, name: str) -> dict[str, Any]:
        """An experiment as plain values: a step receives it as JSON, and Snakemake as a parameter."""
        here, paper = self._by_name[name]
        reduced = {
            key: {"here": value, "paper": paper.settings[key]}
            for key, value in here.settings.items()
            if value != paper.settings[key]
        }
        return {
            "name": name,
            "step": here.step,
            "module": here.module,
            "modules": list(here.modules),
            "scale": self.scale,
            "settings": dict(here.settings),
            "places": {setting: dataclasses.asdict(place) for setting, place in self.places(name).items()},
            "seeds": list(here.seeds),
            "needs": list(here.needs),
            "reduced": reduced,
            "stand_ins": [dataclasses.asdict(stand_in) for stand_in in here.stand_ins],
        }


def load(overrides: Mapping[str, Any], root: Path = Path(), known_tasks: tuple[str, ...] = ()) -> Config:
    """The configuration for `overrides` (`--config` of Snakemake) over the build's file and those that it extends.

    `known_tasks` are those of the data set, where they are known; else its meta data are read.
    """
    scale = str(overrides.get("scale", AT_ROOT))
    files = _extended(scale, root)
    sources = {**files, COMMAND_LINE: dict(overrides)}
    for where, asked in sources.items():
        _check(asked, root / SCHEMA, where)
    if EXTENDS in overrides:
        raise GhostError(f"{COMMAND_LINE}: {EXTENDS} belongs into a file: config/<name>.yaml")
    chosen = {key: value for asked in sources.values() for key, value in asked.items()}
    model = {key: value for asked in sources.values() for key, value in (asked.get("groot") or {}).items()}
    python = model.pop("python", GROOT_PYTHON)
    backbone = chosen.get("backbone", "standin")
    tasks = own_data.tasks_of(chosen, known_tasks)
    drawn = own_data.shares(chosen) if tasks else None
    demos = own_data.demos_settings(chosen, tasks) if chosen.get("demos") else {}
    libero_demos = _recording(chosen)
    replaced = groot.replaced(
        DECLARED, backbone=backbone, checkpoint=model, demos=demos, drawn=drawn, libero_demos=libero_demos
    )
    workers = int(chosen.get("workers", 1))
    assets = chosen.get("libero_assets", "")
    ready = str(chosen.get("camera_ready", False)).lower() == "true"
    made = _configured(replaced, sources)
    paper, paths = resolved(replaced.experiments), tuple(map(Path, files))
    artefacts = tuple(artefact.within([each.name for each in made]) for artefact in ARTEFACTS)
    if tasks:
        split = str(next(each for each in made if each.name == FEATURES).settings["split_by"])
        artefacts = own_data.artefacts(tasks, split)
        made, paper = (own_data.kept(each, artefacts, split) for each in (made, paper))
        check(made, artefacts)
    return Config(
        scale, made, paper, backbone, python, workers, assets, ready, dict(overrides), paths, artefacts, tasks
    )


def _recording(chosen: Mapping[str, Any]) -> dict[str, str]:
    """The settings of recorded demonstrations of LIBERO-10; none where a configuration names no data set."""
    keys = {"path": "libero_demos", "revision": "libero_demos_revision", "convention": "libero_convention"}
    return {name: chosen.get(key) or "" for name, key in keys.items()} if chosen.get("libero_demos") else {}


def opened(scale: str, root: Path = Path()) -> Config:
    """A build as it was made: with what `--config` said then."""
    _known(scale, names(root), "scale")
    path = root / "data" / scale / "build.json"
    if not path.is_file():
        return load({"scale": scale}, root)
    memory = read_json(path, {"overrides": dict})
    require(memory.get("tasks", []), [str], path)
    return load({**memory["overrides"], "scale": scale}, root, tuple(memory.get("tasks", ())))


def names(root: Path = Path()) -> list[str]:
    """The builds that there are: the files of config/."""
    return sorted(path.stem for path in (root / "config").glob("*.yaml") if NAME.fullmatch(path.stem))


def _extended(scale: str, root: Path) -> dict[str, dict[str, Any]]:
    """The file of a build and those that it extends, the most general first."""
    found: dict[str, dict[str, Any]] = {}
    name: Any = scale
    while name is not None:
        _known(name, names(root), "scale")
        path = str(root / "config" / f"{name}.yaml")
        if path in found:
            raise GhostError(f"{path} extends itself: {' -> '.join(Path(each).stem for each in (*found, path))}")
        found[path] = read_yaml(Path(path), {str: object})
        name = found[path].get(EXTENDS)
    return dict(reversed(found.items()))


def _configured(replaced: groot.Replaced, sources: Mapping[str, Mapping[str, Any]]) -> tuple[Experiment, ...]:
    """The experiments with what the sources say of settings and seeds, each source stronger than those before it.

    `libero_protocol` is for all rollouts, `steps: {train: {epochs: 20}}` for every experiment of a step that has the
    setting, `experiments: {name: {...}}` for one of them; each is stronger than the one before. There, `seeds` are how
    many, or which. `max_seeds` is how many an experiment may have whose seeds neither this source names nor a later
    one. Settings of an experiment that a later source replaces by another one (other data, another backbone) are taken
    only as far as both have them.
    """
    experiments = {experiment.name: experiment for experiment in replaced.experiments}
    seeds: dict[str, Wanted] = {}
    at_most = None
    so_far: set[str] = set()
    for where, asked in sources.items():
        so_far |= {name for key in asked for name in replaced.by.get(key, ())}
        if "max_seeds" in asked:
            at_most, seeds = asked["max_seeds"], {}
        steps = [*(asked.get("steps") or {}).items()]
        if "libero_protocol" in asked:
            steps.insert(0, ("rollout", libero.PROTOCOLS[asked["libero_protocol"]]))
        for step, settings in steps:
            _known(step, [experiment.step for experiment in experiments.values()], "step")
            of_step = [experiment for experiment in experiments.values() if experiment.step == step]
            for key in settings:
                _known(key, {key for experiment in of_step for key in experiment.settings}, f"{step} has a setting")
            for experiment in of_step:
                own = {key: value for key, value in settings.items() if key in experiment.settings}
                experiments[experiment.name] = resized(experiment, own)
        for name, given in (asked.get("experiments") or {}).items():
            _known(name, experiments, "experiment")
            settings = dict(given or {})
            if "seeds" in settings:
                seeds[name] = wanted_seeds(settings.pop("seeds"), name)
            if name in replaced.own and name not in so_far and where != COMMAND_LINE:
                kept = experiments[name].settings.keys() - replaced.own[name]
                settings = {key: value for key, value in settings.items() if key in kept}
            experiments[name] = resized(experiments[name], settings)
    return resolved(groot.agreed(experiments), seeds, at_most)


def find_groot_python(config: Config) -> str:
    """The interpreter of GR00T's environment, as commands name it."""
    if shutil.which(config.groot_python) is None:
        raise GhostError(
            f"no GR00T environment: {config.groot_python} is missing; `make .venv-groot/ready` makes it, `--sdm conda`"
            " takes conda's, --config groot='{python: ...}' names another"
        )
    return config.groot_python


def _known(name: str, known: Iterable[str], what: str) -> None:
    if name not in known:
        raise GhostError(f"config: no {what} {name!r}{did_you_mean(str(name), known)}")


def _check(value: dict[str, Any], schema: Path, where: str) -> None:
    for error in jsonschema.Draft202012Validator(read_yaml(schema)).iter_errors(value):
        if error.validator == "additionalProperties":
            known = error.schema["properties"]
            wrong = next(key for key in error.instance if key not in known)
            raise GhostError(f"{where}: no key {wrong!r}{did_you_mean(str(wrong), known)}")
        raise GhostError(f"{where}: {'.'.join(map(str, error.absolute_path))}: {shortened(error.message)}")
