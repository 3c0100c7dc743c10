"""What changes with `--config backbone=...` and `--config demos=<folder>`: experiments in place of the stand-ins'.

With GR00T N1.5 the diffusion transformer, the experiment `dit`, is GR00T's own head, fine-tuned as the paper's was:

    dit                 the fine-tuning, which the features need
    dual_arm_features   Eagle's tokens, and what the head predicts
    ghost_distilled     learns from these predictions
    dit_offline         tests them
    latency             the head itself is timed, in GR00T's environment

Everything else behind the features stays as it is, and does not know.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ghost.runs.marks import StandIn
from ghost.runs.outside import Source
from ghost.study.declarations import Experiment
from ghost.study.distillation import DIT, FLOW, LATENCY
from ghost.study.offline import BACKBONE, DATA, DATA_SET, DRAWN, FEATURES, RECORDED, STANDIN, TASKS
from ghost.study.own_data import recorded

DEMOS = DATA[0].name
MODULE = "ghost.backbones.groot"
TOKENS = {"tokens": 64, "d_token": 2048, "token_seed": 0, "noise_seed": 0}
# The features' settings in place of the stand-in's own.
GROOT: Mapping[str, Any] = {**TOKENS, "cameras": [], "embodiment": "new_embodiment", "batch_size": 16}
SOURCE = {"checkpoint": "nvidia/GR00T-N1.5-3B", "revision": "", "processor": "", "processor_revision": ""}
SAMPLES = {"embodiment": "new_embodiment", "cameras": [], "horizon": 17, **FLOW, "train_episodes": 1800}
# Appendix A has all but the share of the warm-up, which is lerobot's.
UPDATES = {"steps": 15000, "batch_size": 4, "accumulation": 2, "learning_rate": 5e-5, "warmup_share": 0.05}
WEIGHTS = StandIn("GR00T N1.5 weights", "head/parameters", real=1_068_806_144)  # of the published head
# The files that are read: the weights, and the processor's beside them or in a folder of its own.
PROCESSOR = ("*.json", "*.txt")
FILES = ("config.json", "*.safetensors", *(f"eagle/{pattern}" for pattern in PROCESSOR))
PLACES = (
    Source("checkpoint", FILES, "revision", key="groot.checkpoint"),
    Source("processor", PROCESSOR, "processor_revision", key="groot.processor"),
)
CHECKPOINT = Experiment(
    *(DIT.name, "finetune", MODULE),
    settings={**SOURCE, **SAMPLES, **UPDATES},
    seeds=DIT.seeds,
    needs=(DEMOS,),
    places=PLACES,
    stand_ins=(WEIGHTS,),
)
# A recorded data set is the article's if it has as many episodes, and all of its tasks.
RECORDINGS = (
    StandIn(DATA_SET, "all/episodes", real=RECORDED["episodes"]),
    StandIn(DATA_SET, "all/published_tasks", real=len(TASKS)),
)
# The checkpoint takes the features' values: it may not have seen what they test, and must see what it was trained on.
SHARED = ("horizon", "train_episodes", "embodiment", "cameras")


@dataclass(frozen=True)
class Replaced:
    """The experiments of a configuration, and for those that it replaced the settings that no build's file knows."""

    experiments: tuple[Experiment, ...]
    own: Mapping[str, frozenset[str]]
    by: Mapping[str, tuple[str, ...]]  # keys of a configuration, and the experiments that they replace


def replaced(
    experiments: Iterable[Experiment],
    *,
    backbone: str,
    checkpoint: Mapping[str, str],
    demos: Mapping[str, Any],
    drawn: Mapping[str, Any] | None = None,
) -> Replaced:
    """The study with another backbone, and with recorded demonstrations, where a configuration asks for them.

    `demos` are the settings of `ghost.data.recorded`. `drawn` are those of the sampling of a lab's own data; without
    them, the data set is to be the article's.
    """
    made, own = list(experiments), {}
    at = {experiment.name: number for number, experiment in enumerate(made)}
    features = made[at[FEATURES]]
    if demos:
        own[DEMOS] = frozenset(demos)
        made[at[DEMOS]] = recorded(made[at[DEMOS]], demos)
        if drawn is None:
            made[at[DEMOS]] = dataclasses.replace(made[at[DEMOS]], stand_ins=RECORDINGS)
    if drawn is not None:
        own[FEATURES] = frozenset({*drawn} - {"samples_per_shard"})
    samples = DRAWN if drawn is None else drawn
    if backbone == "groot":
        own |= {FEATURES: frozenset({*GROOT, *own.get(FEATURES, ())}), DIT.name: frozenset(CHECKPOINT.settings)}
        model = dataclasses.replace(CHECKPOINT, settings={**CHECKPOINT.settings, **checkpoint})
        needs = (*features.needs, model.name)
        settings = {**GROOT, **samples}
        made[at[FEATURES]] = dataclasses.replace(features, module=MODULE, settings=settings, needs=needs, stand_ins=())
        made = [_with_head(experiment) for experiment in made if experiment.name != model.name]
        made.insert(at[FEATURES] if at[FEATURES] < at[DIT.name] else at[FEATURES] - 1, model)
    elif backbone == "pixels" or drawn is not None:
        module = "ghost.backbones.pixels" if backbone == "pixels" else features.module
        settings, marks = {**STANDIN, **samples}, (StandIn(BACKBONE),)
        made[at[FEATURES]] = dataclasses.replace(features, module=module, settings=settings, stand_ins=marks)
    by = {"demos": (DEMOS,) if drawn is None else (DEMOS, FEATURES), "backbone": (FEATURES, DIT.name)}
    return Replaced(tuple(made), own, by)


def _with_head(experiment: Experiment) -> Experiment:
    """An experiment with GR00T's head where it builds or loads our diffusion transformer."""
    uses = tuple(module for module in experiment.uses if module != DIT.module)
    if experiment.name != LATENCY.name:
        return dataclasses.replace(experiment, uses=uses)
    ours = {name: decoder for name, decoder in experiment.settings["decoders"].items() if name != DIT.name}
    settings, needs = {**experiment.settings, "decoders": ours}, (DEMOS, DIT.name)
    return dataclasses.replace(experiment, step="time_head", settings=settings, needs=needs, uses=(MODULE, *uses))


def in_groot(experiment: Experiment) -> bool:
    """Whether an experiment runs in GR00T's environment, which is not ours."""
    return MODULE in experiment.modules


def agreed(experiments: Mapping[str, Experiment]) -> Iterable[Experiment]:
    """The experiments, the checkpoint with the settings that it shares with the features."""
    model, features = experiments[CHECKPOINT.name], experiments[FEATURES]
    if model.step != CHECKPOINT.step:
        return experiments.values()
    settings = {**model.settings, **{key: features.settings[key] for key in SHARED if key in features.settings}}
    return {**experiments, model.name: dataclasses.replace(model, settings=settings)}.values()
