"""What changes with `--config backbone=groot` and `--config demos=<folder>`: experiments in place of the stand-ins'.

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
from ghost.study.offline import DATA, DATA_SET, DRAWN, FEATURES, RECORDED, TASKS

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
REPLACES = {"demos": (DEMOS,), "backbone": (FEATURES, DIT.name)}  # keys of a configuration, and what they replace
# The checkpoint takes the features' values: it may not have seen what they test, and must see what it was trained on.
SHARED = ("horizon", "train_episodes", "embodiment", "cameras")


@dataclass(frozen=True)
class Replaced:
    """The experiments of a configuration, and for those that it replaced the settings that no build's file knows."""

    experiments: tuple[Experiment, ...]
    own: Mapping[str, frozenset[str]]


def replaced(
    experiments: Iterable[Experiment], *, backbone: str, checkpoint: Mapping[str, str], demos: str
) -> Replaced:
    """The study with another backbone, and with recorded demonstrations, where a configuration asks for them."""
    made, own = list(experiments), {}
    at = {experiment.name: number for number, experiment in enumerate(made)}
    if demos:
        own[DEMOS] = frozenset({"path"})
        settings: dict[str, Any] = {"path": demos}
        made[at[DEMOS]] = dataclasses.replace(
            made[at[DEMOS]],
            module="ghost.data.recorded",
            settings=settings,
            places=(Source("path", key="demos"),),
            stand_ins=RECORDINGS,
        )
    if backbone == "groot":
        own |= {FEATURES: frozenset(GROOT), DIT.name: frozenset(CHECKPOINT.settings)}
        features = made[at[FEATURES]]
        model = dataclasses.replace(CHECKPOINT, settings={**CHECKPOINT.settings, **checkpoint})
        needs = (*features.needs, model.name)
        settings = {**GROOT, **DRAWN}
        features = dataclasses.replace(features, module=MODULE, settings=settings, needs=needs, stand_ins=())
        made[at[FEATURES]] = features
        made = [_with_head(experiment) for experiment in made if experiment.name != model.name]
        made.insert(made.index(features), model)
    return Replaced(tuple(made), own)


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
    settings = {**model.settings, **{key: features.settings[key] for key in SHARED}}
    return {**experiments, model.name: dataclasses.replace(model, settings=settings)}.values()
