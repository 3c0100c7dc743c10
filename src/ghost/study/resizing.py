"""The settings and seeds of an experiment as a build gives them, each checked against the study's."""

import dataclasses
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.files import parse_yaml
from ghost.forms import has_form, shortened
from ghost.study.declarations import Experiment
from ghost.study.seeds import Wanted

SEED = range(2**32)
MOST_SEEDS = 1000
LARGER, AT_LEAST = 1000, 100_000  # a setting may be this many times the study's, and this large; more is a slip


def resized(experiment: Experiment, smaller: Mapping[str, Any]) -> Experiment:
    """The experiment with this build's numbers in place of the paper's, each of the type that the study has."""
    settings = dict(experiment.settings)
    for key, value in smaller.items():
        if key not in settings:
            hint = did_you_mean(str(key), [*settings, "seeds"])
            raise GhostError(f"config: {experiment.name} has no setting {key!r}{hint}")
        settings[key] = _like(settings[key], value, f"{experiment.name}.{key}")
    return dataclasses.replace(experiment, settings=settings)


def dependents(asked: Sequence[str], experiments: Sequence[Experiment]) -> tuple[str, ...]:
    """The experiments with these names, or names of this form (libero_*_misdirected), and all that need one of them."""
    found: list[str] = []
    names = [experiment.name for experiment in experiments]
    for form in asked:
        if not any(fnmatchcase(name, form) for name in names):
            raise GhostError(f"leave_out: no experiment {form!r}{did_you_mean(form, names)}")
    for experiment in experiments:  # each stands below those that it needs
        if any(fnmatchcase(experiment.name, form) for form in asked) or set(experiment.needs) & set(found):
            found.append(experiment.name)
    return tuple(found)


def wanted_seeds(value: Any, name: str) -> Wanted:
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
