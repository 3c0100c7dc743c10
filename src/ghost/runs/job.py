"""What a step receives: its experiment as the study declares it at some scale, with the runs that it needs."""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from ghost.errors import GhostError
from ghost.runs.code import module_path
from ghost.runs.marks import StandIn
from ghost.runs.outside import Place
from ghost.runs.records import Run, open_runs
from ghost.runs.settings import read_settings
from ghost.runs.units import Store

DECLARED = (
    *("name", "step", "module", "modules", "scale", "settings", "places", "seeds", "needs", "reduced", "stand_ins"),
)


@dataclass(frozen=True)
class Job:
    """An experiment at some scale, ready to run."""

    name: str
    step: str
    module: ModuleType
    modules: list[str]  # entry modules of its code
    scale: str
    settings: Mapping[str, Any]
    places: Mapping[str, Place]  # folders from outside that it reads, by the setting that names each
    seeds: list[int]
    reduced: Mapping[str, Any]  # settings that are smaller than the paper's
    stand_ins: list[StandIn]
    needs: Sequence[list[Run]]  # the runs of each experiment that it needs, in the order of the study
    reads: tuple[Path, ...]  # files of the repository that it reads
    folder: Path  # of its runs

    @classmethod
    def open(cls, experiment: str, out: Path, needs: Sequence[Path], reads: Sequence[Path]) -> Self:
        try:
            given = json.loads(experiment)
        except json.JSONDecodeError as error:
            raise GhostError(f"--experiment is not JSON: {error}") from None
        missing = [key for key in DECLARED if key not in given] if isinstance(given, dict) else list(DECLARED)
        if missing:
            raise GhostError(f"--experiment lacks {', '.join(missing)}; `snakemake -n -p` shows a whole one")
        if module_path(given["module"]) is None:
            raise GhostError(f"--experiment: {given['module']!r} is not a module of this project")
        if len(given["needs"]) != len(needs):
            raise GhostError(f"{given['name']} needs {len(given['needs'])} manifests, --needs names {len(needs)}")
        given |= {
            "module": importlib.import_module(given["module"]),
            "needs": [open_runs(path) for path in needs],
            "stand_ins": [StandIn(**each) for each in given["stand_ins"]],
            "places": {name: Place(each["folder"], tuple(each["files"])) for name, each in given["places"].items()},
        }
        return cls(**{key: given[key] for key in DECLARED}, reads=tuple(reads), folder=out.parent)

    @property
    def store(self) -> Store:
        """The units of the build; a run outside of a build has units of its own."""
        build = self.folder.parent.parent if self.folder.parent.name == "runs" else self.folder
        return Store(build / "units")

    def read(self, *kinds: Callable[..., Any]) -> list[Any]:
        """The settings as dataclasses, which check them; several share one flat list."""
        return read_settings(self.name, self.settings, *kinds)

    def only_run(self, number: int) -> Run:
        """The run of a needed experiment that has one run, such as a data set or a feature cache."""
        if number >= len(self.needs) or len(self.needs[number]) != 1:
            there = len(self.needs[number]) if number < len(self.needs) else 0
            raise GhostError(f"{self.name}: need number {number + 1} must have one run, it has {there}")
        return self.needs[number][0]
