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
from ghost.files import parse_yaml, read_json, read_yaml, write_json
from ghost.forms import has_form, shortened
from ghost.runs.outside import HUB, Place
from ghost.study import DECLARED, EXPERIMENTS, groot
from ghost.study.declarations import Experiment
from ghost.study.seeds import Wanted, resolved

AT_ROOT = "laptop"  # the build whose figures and PDF lie at the root of the project
COMMAND_LINE = "--config"
EXTENDS = "extends"
HOW = ("scale", "workers", "camera_ready")  # keys that say how to build, not what
NAME = re.compile(r"[a-z0-9_]+")
SCHEMA = Path("workflow/schemas/config.schema.yaml")
LOCK = Path("requirements.lock")
GROOT_LOCKS = (Path("workflow/envs/groot.lock"), Path("workflow/envs/groot-cpu.lock"))
SEED = range(2**32)
MOST_SEEDS = 1000
LARGER, AT_LEAST = 1000, 100_000  # a setting may be this many times the study's, and this large; more is a slip
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
        said = {"overrides": {key: value for key, value in self.overrides.items() if key not in HOW}}
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
        return assets | ({"GHOST_SERVE": self.groot_python} if self.served(name) else {})

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


def load(overrides: Mapping[str, Any], root: Path = Path()) -> Config:
    """The configuration for `overrides` (`--config` of Snakemake) over the build's file and those that it extends."""
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
    demos, libero_demos = chosen.get("demos") or "", _recording(chosen)
    replaced = groot.replaced(DECLARED, backbone=backbone, checkpoint=model, demos=demos, libero_demos=libero_demos)
    workers = int(chosen.get("workers", 1))
    assets = chosen.get("libero_assets", "")
    ready = str(chosen.get("camera_ready", False)).lower() == "true"
    made = _configured(replaced, sources)
    paper, paths = resolved(replaced.experiments), tuple(map(Path, files))
    return Config(scale, made, paper, backbone, python, workers, assets, ready, dict(overrides), paths)


def _recording(chosen: Mapping[str, Any]) -> dict[str, str]:
    """The settings of recorded demonstrations of LIBERO-10; none where a configuration names no data set."""
    keys = {"path": "libero_demos", "revision": "libero_demos_revision", "convention": "libero_convention"}
    return {name: chosen.get(key) or "" for name, key in keys.items()} if chosen.get("libero_demos") else {}


def opened(scale: str, root: Path = Path()) -> Config:
    """A build as it was made: with what `--config` said then."""
    config = load({"scale": scale}, root)
    if not (root / config.memory).is_file():
        return config
    return load({**read_json(root / config.memory, {"overrides": dict})["overrides"], "scale": scale}, root)


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

    `steps: {train: {epochs: 20}}` is for every experiment of a step that has the setting, `experiments: {name: {...}}`
    for one of them, and stronger. There, `seeds` are how many, or which. `max_seeds` is how many an experiment may have
    whose seeds neither this source names nor a later one. Settings of an experiment that a later source replaces by
    another one (other data, another backbone) are taken only as far as both have them.
    """
    experiments = {experiment.name: experiment for experiment in replaced.experiments}
    seeds: dict[str, Wanted] = {}
    at_most = None
    so_far: set[str] = set()
    for where, asked in sources.items():
        so_far |= {name for key in asked if key in groot.REPLACES for name in groot.REPLACES[key]}
        if "max_seeds" in asked:
            at_most, seeds = asked["max_seeds"], {}
        for step, settings in (asked.get("steps") or {}).items():
            _known(step, [experiment.step for experiment in experiments.values()], "step")
            of_step = [experiment for experiment in experiments.values() if experiment.step == step]
            for key in settings:
                _known(key, {key for experiment in of_step for key in experiment.settings}, f"{step} has a setting")
            for experiment in of_step:
                own = {key: value for key, value in settings.items() if key in experiment.settings}
                experiments[experiment.name] = _resized(experiment, own)
        for name, given in (asked.get("experiments") or {}).items():
            _known(name, experiments, "experiment")
            settings = dict(given or {})
            if "seeds" in settings:
                seeds[name] = _seeds(settings.pop("seeds"), name)
            if name in replaced.own and name not in so_far and where != COMMAND_LINE:
                kept = experiments[name].settings.keys() - replaced.own[name]
                settings = {key: value for key, value in settings.items() if key in kept}
            experiments[name] = _resized(experiments[name], settings)
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


def _resized(experiment: Experiment, smaller: Mapping[str, Any]) -> Experiment:
    """The experiment with this build's numbers in place of the paper's, each of the type that the study has."""
    settings = dict(experiment.settings)
    for key, value in smaller.items():
        if key not in settings:
            hint = did_you_mean(str(key), [*settings, "seeds"])
            raise GhostError(f"config: {experiment.name} has no setting {key!r}{hint}")
        settings[key] = _like(settings[key], value, f"{experiment.name}.{key}")
    return dataclasses.replace(experiment, settings=settings)


def _seeds(value: Any, name: str) -> Wanted:
    """How many seeds, or which."""
    asked = parse_yaml(value, f"config: {name}.seeds") if isinstance(value, str) else value
    if has_form(asked, [SEED]) and 0 < len(asked) <= MOST_SEEDS and len(set(asked)) == len(asked):
        return tuple(asked)
    if has_form(asked, range(1, MOST_SEEDS + 1)):
        return int(asked)
    raise GhostError(
        f"config: {name}.seeds must be how many, 1 to {MOST_SEEDS}, or a list of different seeds, none negative; got"
        f" {shortened(repr(value))}"
    )


def _like(model: Any, value: Any, where: str) -> Any:
    """`value` as the type of `model`; `--config` hands over nested values as text, so text is read as YAML."""
    if isinstance(value, str) and not isinstance(model, str):
        value = parse_yaml(value, f"config: {where}")
    if isinstance(model, list) and isinstance(value, list):
        return [_like(model[0], item, where) if model else item for item in value]
    if isinstance(model, dict) and isinstance(value, dict) and model.keys() == value.keys():
        return {key: _like(model[key], item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(model, float) and isinstance(value, int) and has_form(value, float):
        value = float(value)
    if type(value) is not type(model) or isinstance(model, dict) or not has_form(value, type(model)):
        what = f"{type(model).__name__}, like {shortened(repr(model))}"
        raise GhostError(f"config: {where} must be {what}; got {shortened(repr(value))}")
    if type(value) is int and not where.endswith("seed") and value > (most := max(AT_LEAST, LARGER * model)):
        raise GhostError(f"config: {where} must be at most {most}, as the study has {model}; got {value}")
    return value
