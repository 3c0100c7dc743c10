"""What `backbone: groot`, `demos: <folder>` and `libero_demos: <folder>` put in the place of the stand-ins.

With GR00T N1.5 the diffusion transformer, the experiment `dit`, is GR00T's own head, fine-tuned as the paper's was:

    dit                 the fine-tuning, which the features need
    dual_arm_features   Eagle's tokens, and what the head predicts
    ghost_distilled     learns from these predictions
    dit_offline         tests them
    latency             the head itself is timed, in GR00T's environment

Everything else behind the features stays as it is, and does not know.

In LIBERO-10 GR00T needs recorded demonstrations: those of our scripted experts are not filmed. With both keys

    libero_demos        the recorded episodes of the ten tasks, with inferred phases
    libero_dit          the fine-tuning on them by NVIDIA's recipe, with 8 Euler steps of the flow
    libero_dit4         the same weights with 4 steps
    libero_features     Eagle's tokens, and what the head predicts
    libero_*_rollout    the policies act beside a server in GR00T's environment; the head itself is two of them

With `libero_demos` alone the dual-arm part keeps its stand-ins. With the backbone `pixels` instead of GR00T, the
demonstrations and the features are replaced likewise, the policies act in the process of the rollout, and there is no
head.
"""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ghost.errors import GhostError
from ghost.runs.marks import StandIn
from ghost.runs.outside import Source
from ghost.study import libero
from ghost.study.declarations import Experiment
from ghost.study.distillation import DIT, FLOW, LATENCY
from ghost.study.offline import BACKBONE, DATA, DATA_SET, DRAWN, FEATURES, RECORDED, STANDIN, TASKS
from ghost.study.own_data import measured_without, recorded

DEMOS = DATA[0].name
MODULE = "ghost.backbones.groot"
PIXELS = "ghost.backbones.pixels"
BOTH = "they go together with `backbone: groot` or `backbone: pixels`"
TOKENS = {"tokens": 64, "d_token": 2048, "token_seed": 0, "noise_seed": 0}
# The features' settings in place of the stand-in's own.
GROOT: Mapping[str, Any] = {**TOKENS, "cameras": [], "embodiment": "new_embodiment", "batch_size": 16}
SOURCE = {"checkpoint": "nvidia/GR00T-N1.5-3B", "revision": "", "processor": "", "processor_revision": ""}
SAMPLES = {"embodiment": "new_embodiment", "cameras": [], "horizon": 17, **FLOW, "train_episodes": 1800}
# Appendix A has all but the share of the warm-up, which is NVIDIA's (scripts/gr00t_finetune.py).
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
# NVIDIA's recipe for LIBERO-10: LiberoDataConfig, and the line "Long" of examples/Libero/README.md, at the tag
# n1.5-release of github.com/NVIDIA/Isaac-GR00T. Of each task the episodes that test decoders are left out of the
# fine-tuning, too.
VIEW = {"crop": 0.95, "pixels": 224}
LIBERO_GROOT: Mapping[str, Any] = {**GROOT, **VIEW}
LIBERO_SAMPLES = {"embodiment": "new_embodiment", "cameras": [], "horizon": 16, "euler_steps": 8, "train_episodes": 0}
LIBERO_UPDATES = {"steps": 60000, "batch_size": 128, "accumulation": 1, "learning_rate": 1e-4, "warmup_share": 0.05}
LIBERO_VIEW = {"test_episodes": libero.DRAWN["test_episodes"], **VIEW, "jitter": True}
LIBERO_CHECKPOINT = Experiment(
    *(libero.HEAD, "finetune", MODULE),
    settings={**SOURCE, **LIBERO_SAMPLES, **LIBERO_UPDATES, **LIBERO_VIEW},
    needs=(libero.DEMOS_NAME,),
    places=PLACES,
    stand_ins=(WEIGHTS,),
)
# The same weights with other steps of the flow.
LIBERO_FEWER = Experiment(libero.HEAD4, "finetune", MODULE, {"euler_steps": 4}, needs=(libero.HEAD,))
LIBERO_PIXELS: Mapping[str, Any] = {**STANDIN, "cameras": []}
RECORDING = {"path": "", "revision": "", "convention": "", "normalisation": "limits"}
SERVED = {"backbone": "groot", "rows": 8}  # simulators that the policy server plans for in one pass
# A recorded data set is the article's if it has as many episodes, and all of its tasks.
RECORDINGS = (
    StandIn(DATA_SET, "all/episodes", real=RECORDED["episodes"]),
    StandIn(DATA_SET, "all/published_tasks", real=len(TASKS)),
)
# Keys of a configuration, and what they replace.
REPLACES = {
    "demos": (DEMOS,),
    "backbone": (FEATURES, DIT.name),
    "libero_demos": (libero.DEMOS_NAME, libero.FEATURES, libero.HEAD, libero.HEAD4),
}
# The checkpoint takes the features' values: it may not have seen what they test, and must see what it was trained on.
SHARED = ("horizon", "train_episodes", "test_share", "embodiment", "cameras")
LIBERO_SHARED = ("horizon", "test_episodes", "embodiment", "cameras", *VIEW)


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
    libero_demos: Mapping[str, str] | None = None,
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
    if libero_demos and backbone == "standin":
        raise GhostError(
            f"libero_demos: the stand-in backbone reads poses, which recorded demonstrations do not have; {BOTH}"
        )
    if backbone == "groot" and (demos or not libero_demos):
        own |= {FEATURES: frozenset({*GROOT, *own.get(FEATURES, ())}), DIT.name: frozenset(CHECKPOINT.settings)}
        tuned = {**CHECKPOINT.settings, **checkpoint}
        if drawn is not None:
            tuned |= {"train_episodes": 0, "test_share": drawn["test_share"]}
        model = dataclasses.replace(CHECKPOINT, settings=tuned)
        needs = (*features.needs, model.name)
        settings = {**GROOT, **samples}
        made[at[FEATURES]] = dataclasses.replace(features, module=MODULE, settings=settings, needs=needs, stand_ins=())
        made = [_with_head(experiment) for experiment in made if experiment.name != model.name]
        made.insert(at[FEATURES] if at[FEATURES] < at[DIT.name] else at[FEATURES] - 1, model)
    elif (backbone == "pixels" and (demos or not libero_demos)) or drawn is not None:
        module = PIXELS if backbone == "pixels" else features.module
        seeing: dict[str, Any] = {"cameras": []} if backbone == "pixels" else {}
        settings, marks = {**STANDIN, **samples, **seeing}, (StandIn(BACKBONE),)
        made[at[FEATURES]] = dataclasses.replace(features, module=module, settings=settings, stand_ins=marks)
    if libero_demos and backbone == "pixels":
        made = list(_seen_in_libero(made, libero_demos))
        own |= {libero.DEMOS_NAME: frozenset(RECORDING), libero.FEATURES: frozenset(LIBERO_PIXELS)}
    elif libero_demos:
        made = list(_in_libero(made, checkpoint, libero_demos))
        own[libero.DEMOS_NAME] = frozenset(RECORDING)
        own |= {libero.FEATURES: frozenset(LIBERO_GROOT), libero.HEAD: frozenset(LIBERO_CHECKPOINT.settings)}
    by = {**REPLACES, "demos": (DEMOS,) if drawn is None else (DEMOS, FEATURES)}
    return Replaced(tuple(made), own, by)


def _in_libero(
    experiments: Iterable[Experiment], checkpoint: Mapping[str, str], recording: Mapping[str, str]
) -> Iterator[Experiment]:
    """The study with GR00T in LIBERO-10, on recorded demonstrations."""
    for each in experiments:
        if each.name == libero.DEMOS_NAME:
            yield _recorded(each, recording)
        elif each.name == libero.FEATURES:
            yield dataclasses.replace(LIBERO_CHECKPOINT, settings={**LIBERO_CHECKPOINT.settings, **checkpoint})
            yield LIBERO_FEWER
            settings, needs = {**LIBERO_GROOT, **libero.DRAWN}, (*each.needs, libero.HEAD)
            yield dataclasses.replace(each, module=MODULE, settings=settings, needs=needs, stand_ins=())
        elif each.step == "rollout":
            uses = tuple(MODULE if module == libero.BACKBONE else module for module in each.uses)
            yield dataclasses.replace(each, settings={**each.settings, **SERVED}, uses=uses)
        else:
            yield each
    for head in (libero.HEAD, libero.HEAD4):
        yield libero.rollout_of(head, {**libero.PLAIN, **SERVED}, MODULE)


def _seen_in_libero(experiments: Iterable[Experiment], recording: Mapping[str, str]) -> Iterator[Experiment]:
    """The study with the backbone of pixels in LIBERO-10, on recorded demonstrations."""
    for each in experiments:
        if each.name == libero.DEMOS_NAME:
            yield _recorded(each, recording)
        elif each.name == libero.FEATURES:
            settings = {**LIBERO_PIXELS, **libero.DRAWN}
            yield dataclasses.replace(each, module=PIXELS, settings=settings)
        elif each.step == "rollout":
            uses = tuple(PIXELS if module == libero.BACKBONE else module for module in each.uses)
            yield dataclasses.replace(each, settings={**each.settings, "backbone": "pixels"}, uses=uses)
        else:
            yield each


def _recorded(demos: Experiment, recording: Mapping[str, str]) -> Experiment:
    """The demonstrations of LIBERO-10 from a recorded data set."""
    settings = {**RECORDING, "tasks": demos.settings["tasks"], **recording}
    places = (Source("path", revision="revision", key="libero_demos"),)
    return dataclasses.replace(demos, module="ghost.libero.recorded", settings=settings, places=places, stand_ins=())


def _with_head(experiment: Experiment) -> Experiment:
    """An experiment with GR00T's head where it builds or loads our diffusion transformer."""
    uses = tuple(module for module in experiment.uses if module != DIT.module)
    if experiment.name != LATENCY.name:
        return dataclasses.replace(experiment, uses=uses)
    ours = {name: decoder for name, decoder in experiment.settings["decoders"].items() if name != DIT.name}
    settings, needs = {**experiment.settings, "decoders": ours}, (DEMOS, DIT.name)
    return dataclasses.replace(experiment, step="time_head", settings=settings, needs=needs, uses=(MODULE, *uses))


def in_groot(experiment: Experiment) -> bool:
    """Whether an experiment runs in GR00T's environment, which is not ours. Simulators never do."""
    return MODULE in experiment.modules and experiment.step != "rollout"


def served(experiment: Experiment) -> bool:
    """Whether the policies of a rollout act in a server in GR00T's environment."""
    return MODULE in experiment.modules and experiment.step == "rollout"


def serving(python: str) -> dict[str, str]:
    """The interpreter of the policy server, and the OpenGL by which its simulators make pictures."""
    return {"GHOST_SERVE": python, "MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl")}


def agreed(experiments: Mapping[str, Experiment]) -> Iterable[Experiment]:
    """The experiments; each checkpoint and recorded demonstrations have the settings that they share with features."""
    made = dict(experiments)
    if "test_share" in made[DEMOS].settings:
        share = measured_without(made[FEATURES].settings)
        made[DEMOS] = dataclasses.replace(made[DEMOS], settings={**made[DEMOS].settings, "test_share": share})
    for name, of, shared in ((DIT.name, FEATURES, SHARED), (libero.HEAD, libero.FEATURES, LIBERO_SHARED)):
        model = made.get(name)
        if model is not None and model.step == CHECKPOINT.step:
            settings = {**model.settings, **{key: made[of].settings[key] for key in shared if key in made[of].settings}}
            made[name] = dataclasses.replace(model, settings=settings)
    return made.values()
