"""Parameters and latency of every decoder at the paper's own sizes: random weights, one sample at a time, no training.

Latency does not depend on the weights' values. The settings name the decoders, each with its module and that module's
settings. They take turns within each round, so that a machine that slows down slows all of them; shown are the median
and the quartiles over the rounds, after some that do not count. The job asks for the whole machine; how much of it
others used all the same is measured too, and marks the result when it is much (ghost.evaluations.quiet). On the GPU
where there is one, otherwise on `threads` cores: the run's record says which. The paper's 0.41 and 13 ms are those of
an RTX 5090.

With GR00T N1.5 the diffusion transformer is the fine-tuned head itself, in GR00T's environment: the step `time_head`
gives it as a `TimedHead`.

The diffusion transformer, `dit`, takes seconds on a CPU and empties its caches, so it takes part in every
`dit_every`-th round only. It also takes 4.3 GB, in single precision: `dit_every` = 0 switches it off, and where the
memory is missing it is left out by itself. Its latency is then nan, shown as "undefined".

`latency_leaves_ms` is what Ghost leaves of a control step.
"""

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ghost.data.features import FeatureCache, Sizes
from ghost.data.results import Measured, Outcome
from ghost.decoders.contract import Batch
from ghost.evaluations.quiet import METRIC as BUSY_SHARE
from ghost.evaluations.quiet import Watch
from ghost.forms import require
from ghost.runs.code import module_path
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one, not_negative, positive, read_settings
from ghost.training.building import count, fits

PAPER = Sizes(tokens=64, d_token=2048, d_state=64, horizon=17, d_action=32)
REPLACED = 10  # task-specific diffusion transformers that one Ghost replaces


@dataclass(frozen=True)
class Settings:
    rounds: int
    warm_up: int
    threads: int
    dit_every: int  # rounds; 0: never
    decoders: Mapping[str, Mapping[str, Any]]  # name: {module, settings}
    control_hz: float  # of the robot

    def __post_init__(self) -> None:
        at_least_one(self, "rounds", "threads")
        positive(self, "control_hz")
        for name, decoder in self.decoders.items():
            require(decoder, {"module": str, "settings": dict}, name)
            if not decoder["module"].startswith("ghost.decoders.") or module_path(decoder["module"]) is None:
                raise ValueError(f"{name} is not below ghost.decoders: {decoder['module']}")
        not_negative(self, "warm_up", "dit_every")

    def build(self, name: str) -> nn.Module:
        module = importlib.import_module(self.decoders[name]["module"])
        (settings,) = read_settings(name, self.decoders[name]["settings"], module.Settings)
        decoder: nn.Module = module.Decoder(settings, PAPER)
        return decoder


@dataclass(frozen=True)
class TimedHead:
    """A decoder that need not be built, since it is loaded already."""

    parameters: int
    act: Callable[[], Tensor]  # one action chunk


def evaluate(
    settings: Settings,
    cache: FeatureCache | None,
    decoders: Mapping[str, TimedHead],
    *,
    seed: int,
    progress: Progress,
) -> Outcome:
    parameters = {name: count(partial(settings.build, name)) for name in settings.decoders}
    parameters |= {name: head.parameters for name, head in decoders.items()}
    has_room = "dit" in decoders or fits(4 * parameters["dit"])
    timed_names = [name for name in parameters if name != "dit" or (settings.dit_every and has_room)]
    measured = [Measured(name, "parameters", number) for name, number in parameters.items()]
    with Watch(one_thread=settings.threads == 1 and not torch.cuda.is_available()) as watch:
        latency = measure(timed_names, settings, seed, progress, decoders)
    for name in parameters:
        found = latency.get(name, np.full(1, np.nan))
        measured.append(Measured(name, "latency_ms", float(np.median(found)), len(found)))
        for quartile in (25, 75):
            measured.append(Measured(name, f"latency_{quartile}_ms", float(np.percentile(found, quartile)), len(found)))
    medians = {m.condition: m.value for m in measured if m.metric == "latency_ms"}
    measured += [
        Measured("dit_over_ghost", "parameters", parameters["dit"] / parameters["ghost"]),
        Measured("dit_over_ghost", "aggregate_parameters", REPLACED * parameters["dit"] / parameters["ghost"]),
        Measured("dit_over_ghost", "latency", medians["dit"] / medians["ghost"]),
        Measured("ghost", "latency_leaves_ms", 1e3 / settings.control_hz - medians["ghost"]),
        Measured("dit", "aggregate_parameters", REPLACED * parameters["dit"]),
        Measured("dual_over_single", "parameters_percent", 100 * (parameters["ghost_dual"] / parameters["ghost"] - 1)),
    ]
    timed_metrics = dict.fromkeys(m.metric for m in measured if m.metric.startswith("latency"))
    measured += [Measured(metric, BUSY_SHARE, watch.busy_share) for metric in timed_metrics]
    return Outcome(measured, {f"{name}/latency_ms": found for name, found in latency.items()})


def measure(
    names: list[str], settings: Settings, seed: int, progress: Progress, loaded: Mapping[str, TimedHead]
) -> dict[str, np.ndarray]:
    """Milliseconds per action chunk, [rounds] for each decoder."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator(device).manual_seed(seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    try:
        with torch.random.fork_rng(devices=[]), device:
            torch.manual_seed(seed)
            models: dict[str, Any] = {name: settings.build(name).eval() for name in names if name not in loaded}
        batch = one_sample(device)
        built = {name: partial(model.act, batch, generator) for name, model in models.items()}
        acts: dict[str, Callable[[], Tensor]] = {
            name: loaded[name].act if name in loaded else built[name] for name in names
        }
        found: dict[str, list[float]] = {name: [] for name in names}
        for number in range(-settings.warm_up, settings.rounds):
            for name, act in acts.items():
                if name != "dit" or number in (-1, *range(0, settings.rounds, settings.dit_every)):
                    taken_ms = 1e3 * timed(act, device)
                    if number >= 0:
                        found[name].append(taken_ms)
            progress(settings.warm_up + number + 1, settings.warm_up + settings.rounds)
    finally:
        torch.set_num_threads(threads)
    return {name: np.array(taken) for name, taken in found.items()}


def one_sample(device: torch.device) -> Batch:
    with device:
        return Batch(
            tokens=torch.zeros(1, PAPER.tokens, PAPER.d_token),
            state=torch.zeros(1, PAPER.d_state),
            action=torch.zeros(1, PAPER.horizon, PAPER.d_action),
            action_mask=torch.ones(PAPER.d_action, dtype=torch.bool),
            task=torch.zeros(1, dtype=torch.int64),
        )


def timed(act: Callable[[], Tensor], device: torch.device) -> float:
    with torch.no_grad():
        start_s = time.perf_counter()
        act()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start_s
