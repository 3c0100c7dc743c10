"""What changes with `--config backbone=groot` and `--config demos=<folder>`: rows in place of the stand-ins' rows.

With GR00T N1.5 the features need one more experiment, the checkpoint, fine-tuned as the paper's was. Everything behind
the features stays as it is, and does not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ghost.study.declarations import Experiment
from ghost.study.offline import DATA, FEATURES

DEMOS = DATA[0].name
MODULE = "ghost.backbones.groot"
STANDIN_OWN = ("tokens", "d_token", "text_tokens", "hidden", "weights_seed")  # of the features' row: the backbone's
GROOT_OWN: Mapping[str, Any] = {
    "tokens": 64,
    "d_token": 2048,
    "token_seed": 0,
    "noise_seed": 0,
    "cameras": [],
    "embodiment": "new_embodiment",
    "batch_size": 16,
}
CHECKPOINT = Experiment(
    "groot",
    "finetune",
    MODULE,
    {
        "checkpoint": "nvidia/GR00T-N1.5-3B",
        "revision": "",
        "processor": "",
        "processor_revision": "",
        "embodiment": "new_embodiment",
        "cameras": [],
        "horizon": 17,
        "train_episodes": 1800,
        "steps": 15000,  # appendix A
        "batch_size": 4,
        "accumulation": 2,
        "learning_rate": 5e-5,
        "warmup_share": 0.05,  # lerobot's
    },
    needs=(DEMOS,),
)
SHARED = ("horizon", "train_episodes")  # the checkpoint takes the features' values: it may not have seen what they test


@dataclass(frozen=True)
class Table:
    """The experiments, and for those that a configuration replaced the settings that a scale's file says nothing of."""

    rows: tuple[Experiment, ...]
    own: Mapping[str, frozenset[str]]


def replaced(rows: Sequence[Experiment], *, backbone: str, checkpoint: Mapping[str, str], demos: str) -> Table:
    """The table with another backbone, and with recorded demonstrations, where asked for."""
    made: list[Experiment] = []
    own: dict[str, frozenset[str]] = {}
    for row in rows:
        if row.name == DEMOS and demos:
            own[DEMOS] = frozenset({"path"})
            row = dataclasses.replace(row, module="ghost.data.recorded", settings={"path": demos})
        if row.name == FEATURES and backbone == "groot":
            made.append(dataclasses.replace(CHECKPOINT, settings={**CHECKPOINT.settings, **checkpoint}))
            own[FEATURES] = frozenset(GROOT_OWN)
            drawing = {key: value for key, value in row.settings.items() if key not in STANDIN_OWN}
            needs = (*row.needs, CHECKPOINT.name)
            row = dataclasses.replace(row, module=MODULE, settings={**GROOT_OWN, **drawing}, needs=needs)
        made.append(row)
    return Table(tuple(made), own)


def agreed(rows: Sequence[Experiment]) -> list[Experiment]:
    """The checkpoint's row with what it shares with the features' row."""
    features = next(row for row in rows if row.name == FEATURES)
    shared = {key: features.settings[key] for key in SHARED}
    return [
        dataclasses.replace(row, settings={**row.settings, **shared}) if row.name == CHECKPOINT.name else row
        for row in rows
    ]
