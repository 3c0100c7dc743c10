"""A build: the file `config/<name>.yaml`, with `--config` on top, checked against the schema and the study.

The study holds the paper's own sizes; a build's file holds only what is smaller there, or what is other data. So what
was reduced is known by comparison, and goes into the records and onto the PDF's stamp. A file may extend another one
(`extends: paper`). What `--config` said is kept in `data/<name>/build.json` when the build starts, and every command
reads the build as it was made (`opened`).
"""

import dataclasses
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.files import read_json, write_json
from ghost.forms import require
from ghost.runs.outside import HUB, Place
from ghost.study import ARTEFACTS, DECLARED, EXPERIMENTS, SHIPPED, closed_loop, groot, own_data
from ghost.study.candidates import candidates
from ghost.study.declarations import Artefact, Experiment, check
from ghost.study.offline import FEATURES
from ghost.study.resizing import dependents
from ghost.study.seeds import resolved
from ghost.study.sources import COMMAND_LINE, EXTENDS, SCHEMA, check_form, configured, extended, known, names

AT_ROOT = "laptop"  # the build whose figures and PDF lie at the root of the project
HOW = ("scale", "workers", "micro_batch", "camera_ready")  # keys that say how to build, not what
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
    workers: int = 1  # processes that share the episodes of a job in LIBERO, or decode for a fine-tuning
    libero_assets: str = ""  # a folder, or hub; none: those that are there (ghost.libero.assets)
    camera_ready: bool = False  # refuse what a draft only marks
    overrides: Mapping[str, Any] = field(default_factory=dict)  # what `--config` said
    files: tuple[Path, ...] = ()  # of the configuration, each extended by the next one
    artefacts: tuple[Artefact, ...] = ARTEFACTS  # figures and tables
    tasks: tuple[str, ...] = ()  # of a lab's own data set, whose study is ghost.study.own_data; none: the article's
    left_out: tuple[str, ...] = ()  # experiments of the study that this build does without
    micro_batch: int = 0  # samples that go through GR00T at once when it is fine-tuned; 0: a whole batch

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
    def pdfs(self) -> tuple[Path, ...]:
        """The report and its supplement. Their text needs every experiment: if some are left out, there are none."""
        return () if self.left_out else (self.pdf, self.supplement)

    def table_pdf(self, label: str) -> Path:
        """A table by itself."""
        return self.pdf.with_name(f"tab_{label}.pdf")

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
        known(name, self._by_name, "experiment")
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
        tuned = self.micro_batch and self.experiment(name).step == "finetune"
        cut = {"GHOST_MICRO_BATCH": str(self.micro_batch)} if tuned else {}
        return assets | cut | (groot.serving(self.groot_python) if self.served(name) else {})

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
        """Refuse folders that are missing, and data sets that cannot be used, before anything runs."""
        for experiment in self.experiments:
            for source in experiment.places:
                source.check(experiment.name, experiment.settings)
        own_data.check_data_set(self.experiments)
        if self.libero_assets not in ("", HUB) and not Path(self.libero_assets).is_dir():
            raise GhostError(f"libero_assets: there is no folder {self.libero_assets!r}")

    @cached_property
    def _content(self) -> Callable[[Place], str]:
        """Each folder is looked at once, also where many experiments read it."""
        return cache(Place.content)

    def threads(self, name: str) -> int:
        """Cores that a job asks for. Any number of workers, for episodes or for decoding, gives the same results."""
        return self.workers if self.in_libero(name) or self.experiment(name).step == "finetune" else 1

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
    files = extended(scale, root)
    sources = {**files, COMMAND_LINE: dict(overrides)}
    for where, asked in sources.items():
        check_form(asked, root / SCHEMA, where)
    if EXTENDS in overrides:
        raise GhostError(f"{COMMAND_LINE}: {EXTENDS} belongs into a file: config/<name>.yaml")
    chosen = {key: value for asked in sources.values() for key, value in asked.items()}
    model = {key: value for asked in sources.values() for key, value in (asked.get("groot") or {}).items()}
    python = model.pop("python", GROOT_PYTHON)
    tasks = own_data.tasks_of(chosen, known_tasks)
    backbone = chosen.get("backbone", "pixels" if tasks else "standin")  # the stand-in reads what no recording has
    drawn = own_data.shares(chosen) if tasks else None
    demos = own_data.demos_settings(chosen, tasks, drawn) if chosen.get("demos") else {}
    libero_demos = _recording(chosen)
    replaced = groot.replaced(
        DECLARED, backbone=backbone, checkpoint=model, demos=demos, drawn=drawn, libero_demos=libero_demos
    )
    workers, micro_batch = int(chosen.get("workers", 1)), int(chosen.get("micro_batch", 0))
    assets = chosen.get("libero_assets", "")
    ready = str(chosen.get("camera_ready", False)).lower() == "true"
    made = configured(replaced, sources)
    paper, paths, rates = resolved(replaced.experiments), tuple(map(Path, files)), chosen.get("candidates") or ()
    made, paper = (*made, *candidates(made, rates)), (*paper, *candidates(paper, [None] * len(rates)))
    artefacts = tuple(artefact.within([each.name for each in made]) for artefact in ARTEFACTS)
    if backbone == "standin":
        made, paper = (*made, *SHIPPED), (*paper, *map(closed_loop.at_full_size, SHIPPED))
    else:  # a study with the stand-in says nothing about another backbone
        artefacts = tuple(artefact for artefact in artefacts if artefact not in closed_loop.ARTEFACTS)
    if tasks:
        split = str(next(each for each in made if each.name == FEATURES).settings["split_by"])
        artefacts = own_data.artefacts(tasks, split)
        made, paper = (own_data.kept(each, artefacts, split) for each in (made, paper))
        check(made, artefacts)
    left_out = dependents(chosen.get("leave_out", ()), made)
    made = tuple(each for each in made if each.name not in left_out)
    artefacts = tuple(artefact.without(left_out) for artefact in artefacts)
    return Config(
        *(scale, made, paper, backbone, python, workers, assets, ready, dict(overrides), paths, artefacts, tasks),
        left_out,
        micro_batch,
    )


def _recording(chosen: Mapping[str, Any]) -> dict[str, str]:
    """The settings of recorded demonstrations of LIBERO-10; none where a configuration names no data set."""
    keys = {"path": "libero_demos", "revision": "libero_demos_revision", "convention": "libero_convention"}
    return {name: chosen.get(key) or "" for name, key in keys.items()} if chosen.get("libero_demos") else {}


def opened(scale: str, root: Path = Path()) -> Config:
    """A build as it was made: with what `--config` said then."""
    known(scale, names(root), "scale")
    path = root / "data" / scale / "build.json"
    if not path.is_file():
        return load({"scale": scale}, root)
    memory = read_json(path, {"overrides": dict})
    require(memory.get("tasks", []), [str], path)
    return load({**memory["overrides"], "scale": scale}, root, tuple(memory.get("tasks", ())))


def find_groot_python(config: Config) -> str:
    """The interpreter of GR00T's environment, as commands name it."""
    if shutil.which(config.groot_python) is None:
        raise GhostError(
            f"no GR00T environment: {config.groot_python} is missing; `make .venv-groot/ready` makes it, `--sdm conda`"
            " takes conda's, --config groot='{python: ...}' names another"
        )
    return config.groot_python
