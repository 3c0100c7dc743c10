"""A scale: the numbers in `config/<scale>.yaml`, with `--config` on top, checked against the schema and the table.

The table holds the paper's own sizes; a scale file holds only what is smaller there. So what was reduced is known
by comparison, and goes into the records and onto the PDF's stamp.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from ghost.errors import GhostError, did_you_mean
from ghost.study import EXPERIMENTS, groot
from ghost.study.declarations import Experiment

SCALES = ("smoke", "laptop", "closed_loop", "paper")
AT_HOME = ("laptop", "paper")  # scales whose figures and PDF are the project's own
SCHEMA = Path("workflow/schemas/config.schema.yaml")
GROOT_PYTHON = ".venv-groot/bin/python"  # of the environment that `make .venv-groot/ready` makes


@dataclass(frozen=True)
class Config:
    """One scale, ready to use: its experiments with the settings of that scale, and where its files go."""

    scale: str
    experiments: tuple[Experiment, ...]
    table: tuple[Experiment, ...] = EXPERIMENTS  # the same at the paper's own sizes
    backbone: str = "standin"
    groot_python: str = GROOT_PYTHON
    feature_jobs: int = 1  # that share the caching of features
    workers: int = 1  # processes that share the episodes of a job in LIBERO
    libero_assets: str = ""  # a folder, or hub; none: those that are there (ghost.libero.assets)
    camera_ready: bool = False  # refuse what a draft only marks

    @property
    def data(self) -> Path:
        return Path("data") / self.scale

    @property
    def home(self) -> Path:
        """Where figures and PDF go. A test, or a scale for one target, never overwrites a PDF that somebody reads."""
        return Path() if self.scale in AT_HOME else self.data

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
    def page(self) -> str:
        """The way from the PDF to the audit page, for its links."""
        return os.path.relpath(self.data / "audit.html", self.pdf.parent)

    @cached_property
    def _by_name(self) -> dict[str, tuple[Experiment, Experiment]]:
        """Each experiment here, and as the paper has it. Looked up for every job: thousands of rows must not matter."""
        paper = {row.name: row for row in self.table}
        return {row.name: (row, paper[row.name]) for row in self.experiments}

    def experiment(self, name: str) -> Experiment:
        return self._by_name[name][0]

    def in_groot(self, name: str) -> bool:
        """Whether an experiment runs in GR00T's environment, which is not ours."""
        return self.experiment(name).module == groot.MODULE

    def threads(self, name: str) -> int:
        """Cores that a job asks for. Episodes are independent: any number of workers gives the same rows."""
        return self.workers if self.in_libero(name) else 1

    def in_libero(self, name: str) -> bool:
        """Whether an experiment runs LIBERO's simulation."""
        row = self.experiment(name)
        return row.step == "rollout" or row.module == "ghost.libero.demos"

    def manifest(self, name: str) -> Path:
        return self.data / "runs" / name / "manifest.json"

    def declaration(self, name: str) -> dict[str, Any]:
        """What a step is told about its experiment, and Snakemake about its parameters."""
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
            "seeds": list(here.seeds),
            "needs": list(here.needs),
            "reduced": reduced,
        }


def load(overrides: Mapping[str, Any], root: Path = Path()) -> Config:
    """The configuration for `overrides` (`--config` of Snakemake) over the scale's file.

    `steps: {train: {epochs: 20}}` is for every experiment of a step that has the setting, `experiments: {name: {...}}`
    for one of them, and stronger; so is `--config` against the file.
    """
    scale = overrides.get("scale", "laptop")
    if scale not in SCALES:
        raise GhostError(f"config: no scale {scale!r}{did_you_mean(str(scale), SCALES)}")
    path = root / "config" / f"{scale}.yaml"
    sources = ((str(path), _read(path)), ("--config", dict(overrides)))
    for where, asked in sources:
        _check(asked, root / SCHEMA, where)
    chosen = {**sources[0][1], **sources[1][1]}
    model = dict(chosen.get("groot") or {})
    python = model.pop("python", GROOT_PYTHON)
    backbone = chosen.get("backbone", "standin")
    table = groot.replaced(EXPERIMENTS, backbone=backbone, checkpoint=model, demos=chosen.get("demos") or "")
    rows = list(table.rows)
    for where, asked in sources:
        for step, settings in (asked.get("steps") or {}).items():
            of_step = _known([row for row in rows if row.step == step], step, "step", [row.step for row in rows])
            have = {key for row in of_step for key in row.settings}
            for key in settings:
                if key not in have:
                    raise GhostError(f"config: no {step} has a setting {key!r}{did_you_mean(key, have)}")
            rows = [
                _resized(row, {key: value for key, value in settings.items() if key in row.settings})
                if row.step == step
                else row
                for row in rows
            ]
        for name, settings in (asked.get("experiments") or {}).items():
            found = _known([row for row in rows if row.name == name], name, "experiment", [row.name for row in rows])
            settings = dict(settings or {})
            if name in table.own and where != "--config":  # written for the row that stood there before
                kept = found[0].settings.keys() - table.own[name] | {"seeds"}
                settings = {key: value for key, value in settings.items() if key in kept}
            rows = [_resized(row, settings) if row.name == name else row for row in rows]
    jobs, workers = int(chosen.get("feature_jobs", 1)), int(chosen.get("workers", 1))
    assets = chosen.get("libero_assets", "")
    ready = str(overrides.get("camera_ready", False)).lower() == "true"
    return Config(scale, tuple(groot.agreed(rows)), table.rows, backbone, python, jobs, workers, assets, ready)


def find_groot_python(config: Config) -> str:
    """The interpreter of GR00T's environment, as commands name it."""
    if shutil.which(config.groot_python) is None:
        raise GhostError(
            f"no GR00T environment: {config.groot_python} is missing; `make .venv-groot/ready` makes it, `--sdm conda`"
            " takes conda's, --config groot='{python: ...}' names another"
        )
    return config.groot_python


def _known(found: list[Experiment], name: str, what: str, known: list[str]) -> list[Experiment]:
    if not found:
        raise GhostError(f"config: no {what} {name!r}{did_you_mean(name, known)}")
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise GhostError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(loaded, dict):
        raise GhostError(f"{path}: expected keys and values, got {type(loaded).__name__}")
    return loaded


def _check(value: dict[str, Any], schema: Path, where: str) -> None:
    for error in jsonschema.Draft202012Validator(_read(schema)).iter_errors(value):
        if error.validator == "additionalProperties":
            known = error.schema["properties"]
            wrong = next(key for key in error.instance if key not in known)
            raise GhostError(f"{where}: no key {wrong!r}{did_you_mean(wrong, known)}")
        key = ".".join(map(str, error.absolute_path))
        raise GhostError(f"{where}: {key}: {error.message}")


def _resized(row: Experiment, smaller: Mapping[str, Any]) -> Experiment:
    """The row with this scale's numbers in place of the paper's, each of the type the table has."""
    settings, seeds = dict(row.settings), row.seeds
    for key, value in smaller.items():
        if key == "seeds":
            count = _like(len(seeds), value, f"{row.name}.seeds (how many of {len(seeds)} to run)")
            if not 1 <= count <= len(seeds):
                raise GhostError(f"config: {row.name}.seeds must be 1 to {len(seeds)}, got {count}")
            seeds = seeds[:count]
        elif key in settings:
            settings[key] = _like(settings[key], value, f"{row.name}.{key}")
        else:
            raise GhostError(f"config: {row.name} has no setting {key!r}{did_you_mean(key, [*settings, 'seeds'])}")
    return dataclasses.replace(row, settings=settings, seeds=seeds)


def _like(model: Any, value: Any, where: str) -> Any:
    """`value` as the type of `model`; `--config` hands over nested values as text, so text is read as YAML."""
    if isinstance(value, str) and not isinstance(model, str):
        value = yaml.safe_load(value)
    if isinstance(model, list) and isinstance(value, list):
        return [_like(model[0], item, where) if model else item for item in value]
    if isinstance(model, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(model):
        raise GhostError(f"config: {where} must be {type(model).__name__}, like {model!r}; got {value!r}")
    return value
