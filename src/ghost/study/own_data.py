"""The study of a lab's own data set: which small decoder is best on it, with the backbone of the build.

A build whose `demos` do not have the article's tasks is such a study. Of the article's experiments it has those that
need nothing but demonstrations: the features, nine trainings, their tests. Its tables have the data set's own tasks as
rows. What the article says of its own data, of LIBERO or of the theory is left out, and so are the article's numbers:
the labels below are in no ledger. The text of the report is in paper/own_data.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.runs.outside import Source
from ghost.study.cells import compared, comparison, mean, runs, settings, spread
from ghost.study.declarations import Artefact, Cell, Experiment, figure
from ghost.study.offline import (
    BASIN,
    BESIDE,
    DATA,
    FEATURES,
    IMITATING,
    MEASURED,
    PLAIN,
    PROPOSED,
    SHAPES,
    SHOWN,
    TASKS,
    WITH_BASIN,
    Decoder,
    row_of,
)
from ghost.study.tables import Column, Row, math, tabulated

DEMOS = DATA[0].name
MODULE = "ghost.data.recorded"
# At most as many samples as the article has; of each task a fifth of the episodes is for testing.
SHARES = {"split_by": "episode", "test_share": 0.2, "samples": 7030, **SHAPES, "samples_per_shard": 256}
RECORDED = ("tasks", "cameras", "action_groups", "normalisation")  # keys of a configuration that the data set takes
OF_DEMOS = (*RECORDED, "demos_revision", "columns", "split", "horizon")  # keys that need `demos`
SCENE = "observation.scene.object"  # what the stand-in reads in place of pictures
LONGEST = 44  # characters of an instruction in a table


def tasks_of(chosen: Mapping[str, Any], known: tuple[str, ...]) -> tuple[str, ...]:
    """The tasks of a data set that is not the article's: those named, else those of its meta data."""
    stray = [key for key in OF_DEMOS if key in chosen]
    if stray and not chosen.get("demos"):
        raise GhostError(f"config: {stray[0]} is about a recorded data set, but `demos` names none")
    demos = chosen.get("demos") or ""
    named = tuple(chosen.get("tasks") or known)
    if demos and not named and Path(demos, "meta/info.json").is_file():
        from ghost.data.lerobot_meta import read_info, read_meta

        named = tuple(dict.fromkeys(read_meta(Path(demos), read_info(Path(demos)))[0].values()))
    if not demos or set(named) == set(TASKS):
        return ()
    if not named and chosen.get("demos_revision") and not Path(demos).is_dir():
        raise GhostError(f"config: tasks must name those of {demos}, which is on the hub: `ghost inspect` shows them")
    if len(set(named)) != len(named):
        raise GhostError("config: tasks names one twice")
    return named


def demos_settings(chosen: Mapping[str, Any], tasks: Sequence[str], drawn: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings of `ghost.data.recorded` that a configuration asks for."""
    given = {key: chosen[key] for key in RECORDED if chosen.get(key)}
    columns = chosen.get("columns") or {}
    return {
        "path": chosen["demos"],
        "revision": chosen.get("demos_revision", ""),
        **given,
        **columns,
        **({"tasks": list(tasks), "normalisation": chosen.get("normalisation", "limits")} if tasks else {}),
        **({"test_share": measured_without(drawn)} if drawn is not None else {}),
    }


def check_data_set(experiments: Iterable[Experiment]) -> None:
    """Refuse, before anything runs, a folder whose meta data show nothing to see, or no episode of a chunk's length."""
    from ghost.data.lerobot_meta import read_info, read_meta

    made = {experiment.name: experiment for experiment in experiments}
    demos, features = made.get(DEMOS), made.get(FEATURES)
    if demos is None or features is None or demos.module != MODULE:
        return
    folder, kind = Path(demos.settings["path"]), features.module.rpartition(".")[2]
    if not Path(folder, "meta/info.json").is_file():  # on the hub; the first job looks at it
        return
    info = read_info(folder)
    if kind == "standin" and SCENE not in info["features"]:
        raise GhostError(
            f"{folder}/meta/info.json: `backbone: standin` reads columns such as {SCENE!r}, which the data set does not"
            " have; `backbone: pixels` and `backbone: groot` see its cameras"
        )
    if kind != "standin" and not any(feature["dtype"] in ("video", "image") for feature in info["features"].values()):
        raise GhostError(
            f"{folder}/meta/info.json: `backbone: {kind}` needs pictures, and no feature is a camera, which has the"
            " dtype video or image"
        )
    kept = set(demos.settings.get("tasks", ()))
    lengths = [
        line["length"]
        for line in read_meta(folder, info)[1]
        if not kept or "tasks" not in line or kept.issuperset(line["tasks"])
    ]
    horizon, longest = features.settings["horizon"], max(lengths, default=0)
    if horizon > longest > 0:
        raise GhostError(
            f"{folder}/meta: horizon {horizon} is longer than every episode; the longest has {longest} steps, so"
            f" horizon must be at most {longest}"
        )


def measured_without(drawn: Mapping[str, Any]) -> float:
    """The share of the episodes that the normalisation may not know: none where a split by sample trains on all."""
    return float(drawn["test_share"]) if drawn["split_by"] == "episode" else 0.0


def recorded(demos: Experiment, settings: Mapping[str, Any]) -> Experiment:
    """The demonstrations of a recorded data set in place of made ones."""
    places = (Source("path", revision="revision", key="demos"),)
    return dataclasses.replace(demos, module=MODULE, settings=settings, places=places, stand_ins=())


def shares(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the sampling (`ghost.data.sampling.Shares`)."""
    asked = chosen.get("split") or {}
    named = {"split_by": "by", "test_share": "test_share", "samples": "samples"}
    given = {ours: asked[key] for ours, key in named.items() if key in asked}
    return {**SHARES, **given, **({"horizon": chosen["horizon"]} if "horizon" in chosen else {})}


def kept(experiments: Iterable[Experiment], artefacts: Sequence[Artefact], split: str) -> tuple[Experiment, ...]:
    """The experiments that the artefacts rest on, trained and tested on the one split that the features have."""
    every = {experiment.name: experiment for experiment in experiments}
    wanted, waiting = set(), [name for artefact in artefacts for name in artefact.experiments]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += every[name].needs
    return tuple(_on(split, each) for name, each in every.items() if name in wanted)


def _on(split: str, experiment: Experiment) -> Experiment:
    if "split" not in experiment.settings:
        return experiment
    return dataclasses.replace(experiment, settings={**experiment.settings, "split": split})


def row_names(tasks: Sequence[str]) -> dict[str, str]:
    """A name for each instruction that the id of a cell can have: its words, with a number where two are alike."""
    names: dict[str, str] = {}
    for task in tasks:
        words = re.sub(r"[^A-Za-z0-9]+", "_", task)[:LONGEST].strip("_") or "task"
        name, number = words, 2
        while name in names.values():
            name, number = f"{words}_{number}", number + 1
        names[task] = name
    return names


def artefacts(tasks: Sequence[str], split: str) -> tuple[Artefact, ...]:
    """The tables and the figure of a data set with these tasks."""
    rows = row_names(tasks)
    return (_data_set(split), _decoders(), _losses(), _per_task(rows), _figure(rows))


def _count(experiment: str, metric: str, condition: str, digits: str = ".0f") -> Cell:
    return Cell("", experiment, metric, condition, "mean", digits)


def _data_set(split: str) -> Artefact:
    lines = (
        ("episodes", "Episodes", _count(DEMOS, "episodes", "all")),
        ("steps", "Time steps", _count(DEMOS, "steps", "all")),
        ("tasks", "Tasks", _count(DEMOS, "tasks", "all")),
        ("shortest", "Shortest episode (steps)", _count(DEMOS, "steps", "shortest")),
        ("longest", "Longest episode (steps)", _count(DEMOS, "steps", "longest")),
        ("d_state", "State dimensions", _count(DEMOS, "dimensions", "state")),
        ("constant_state", "State dimensions that never change", _count(DEMOS, "constant_dimensions", "state")),
        ("d_action", "Action dimensions", _count(DEMOS, "dimensions", "action")),
        ("constant_action", "Action dimensions that never change", _count(DEMOS, "constant_dimensions", "action")),
        ("train", "Samples to train on", _count(FEATURES, "train", f"{split}_split")),
        ("test", "Samples to test on", _count(FEATURES, "test", f"{split}_split")),
    )
    return tabulated(
        "data_set",
        ("Quantity", Column("number", "Number", align="r")),
        [Row(name, (text, cell)) for name, text, cell in lines],
        more=(
            *settings(FEATURES, ("horizon", "split_by", "tokens", "d_token")),
            *settings(DEMOS, ("path", "normalisation")),
        ),
    )


def _decoders() -> Artefact:
    return tabulated(
        "decoders",
        MEASURED,
        map(row_of, SHOWN),
        BESIDE,
        more=(
            runs(PROPOSED.tested),
            *settings(PROPOSED.experiment, ("epochs", "batch_size", "learning_rate", "steps")),
        ),
    )


def _losses() -> Artefact:
    lines = (
        ("contrastive", "Ghost, contrastive term", PLAIN),
        ("basin", "and basin term", WITH_BASIN),
        ("curriculum", "and curriculum (proposed)", PROPOSED),
        ("bc", "Ghost, imitation only", IMITATING),
    )
    return tabulated(
        "losses",
        (
            "Configuration",
            Column("test_mse", "Test MSE", lambda d: spread(d.tested, "mse", ".4f")),
            *compared(
                lambda d: {} if d is PLAIN else comparison(d.tested, PLAIN.tested, d_digits="+z.2f"),
                {"p": math("p"), "holm_p": "Holm", "d": math("d")},
            ),
        ),
        [Row(name, (text,), decoder) for name, text, decoder in lines],
        more=settings(WITH_BASIN.experiment, BASIN),
    )


def _per_task(rows: Mapping[str, str]) -> Artefact:
    def error(decoder: Decoder) -> Column:
        return Column(decoder.name, decoder.text.removesuffix(" (proposed)"), lambda task: _error(decoder, task))

    return tabulated(
        "per_task",
        (
            "Task",
            *map(error, SHOWN),
            Column("mean", "Task's mean", lambda task: mean(PROPOSED.tested, "predict_the_mean_mse", task, ".4f")),
        ),
        [Row(name, (shortened(task),), task) for task, name in rows.items()],
    )


def _error(decoder: Decoder, task: str) -> Cell:
    return mean(decoder.tested, "mse", task, ".4f")


def _figure(rows: Mapping[str, str]) -> Artefact:
    """One panel a task. The figure is drawn from the runs; its cells are those of the table."""
    return figure(
        "per_task",
        *(
            Cell(f"{name}/{decoder.name}", decoder.tested, "mse", task, "mean", ".4f")
            for task, name in rows.items()
            for decoder in SHOWN
        ),
    )


def shortened(task: str) -> str:
    return task if len(task) <= LONGEST else f"{task[: LONGEST - 3]}..."
