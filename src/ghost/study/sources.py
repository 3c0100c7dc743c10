"""What a configuration says: the files of config/, each extending another one, and `--config` on top.

A source is one file or the command line, as plain values. `configured` gives the experiments of the study the settings
and seeds that the sources ask for.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema

from ghost.errors import GhostError, did_you_mean
from ghost.files import read_yaml
from ghost.forms import shortened
from ghost.study import groot, libero
from ghost.study.declarations import Experiment
from ghost.study.resizing import resized, wanted_seeds
from ghost.study.seeds import Wanted, resolved

COMMAND_LINE = "--config"
EXTENDS = "extends"
NAME = re.compile(r"[a-z0-9_]+")  # of a build
SCHEMA = Path("workflow/schemas/config.schema.yaml")


def names(root: Path = Path()) -> list[str]:
    """The builds that there are: the files of config/."""
    return sorted(path.stem for path in (root / "config").glob("*.yaml") if NAME.fullmatch(path.stem))


def extended(scale: str, root: Path) -> dict[str, dict[str, Any]]:
    """The file of a build and those that it extends, the most general first."""
    found: dict[str, dict[str, Any]] = {}
    name: Any = scale
    while name is not None:
        known(name, names(root), "scale")
        path = str(root / "config" / f"{name}.yaml")
        if path in found:
            raise GhostError(f"{path} extends itself: {' -> '.join(Path(each).stem for each in (*found, path))}")
        found[path] = read_yaml(Path(path), {str: object})
        name = found[path].get(EXTENDS)
    return dict(reversed(found.items()))


def configured(replaced: groot.Replaced, sources: Mapping[str, Mapping[str, Any]]) -> tuple[Experiment, ...]:
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
            known(step, [experiment.step for experiment in experiments.values()], "step")
            of_step = [experiment for experiment in experiments.values() if experiment.step == step]
            for key in settings:
                known(key, {key for experiment in of_step for key in experiment.settings}, f"{step} has a setting")
            for experiment in of_step:
                own = {key: value for key, value in settings.items() if key in experiment.settings}
                experiments[experiment.name] = resized(experiment, own)
        for name, given in (asked.get("experiments") or {}).items():
            known(name, experiments, "experiment")
            settings = dict(given or {})
            if "seeds" in settings:
                seeds[name] = wanted_seeds(settings.pop("seeds"), name)
            if name in replaced.own and name not in so_far and where != COMMAND_LINE:
                kept = experiments[name].settings.keys() - replaced.own[name]
                settings = {key: value for key, value in settings.items() if key in kept}
            experiments[name] = resized(experiments[name], settings)
    return resolved(groot.agreed(experiments), seeds, at_most)


def known(name: str, among: Iterable[str], what: str) -> None:
    """Refuse a name that is none of these."""
    if name not in among:
        raise GhostError(f"config: no {what} {name!r}{did_you_mean(str(name), among)}")


def check_form(value: dict[str, Any], schema: Path, where: str) -> None:
    """Refuse what the schema does not know, with the place and what may have been meant."""
    for error in jsonschema.Draft202012Validator(read_yaml(schema)).iter_errors(value):
        if error.validator == "additionalProperties":
            keys = error.schema["properties"]
            wrong = next(key for key in error.instance if key not in keys)
            raise GhostError(f"{where}: no key {wrong!r}{did_you_mean(str(wrong), keys)}")
        raise GhostError(f"{where}: {'.'.join(map(str, error.absolute_path))}: {shortened(error.message)}")
