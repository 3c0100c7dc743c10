"""Inference: one action chunk at the paper's sizes, random weights, one core.

    ghost_over_mlp/<form>/batch<n>    Ghost and our MLP, both as torch runs them (eager) or both exported
    exported_over_eager/batch<n>      Ghost in ONNX Runtime and in torch
    ghost_over_neural_ode/batch<n>    Ghost and the same Neural ODE integrated by torchdiffeq, both eager
    dit_over_ghost/batch1             the diffusion transformer with its four steps, and Ghost, both eager
    memory                            resident memory after 10,000 control steps with a persistent latent, and after 100

Where there is a GPU, the eager decoders run on it.
"""

import gc
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torchdiffeq import odeint

from ghost.benches import Pair, Place, interleaved, resident_mb
from ghost.decoders import dit, ghost, ghost_phase, mlp, neural_ode
from ghost.decoders.contract import Batch
from ghost.evaluations.latency import PAPER
from ghost.training.building import fits
from ghost.training.export import example, session, to_onnx

REPEATS = {1: 60, 64: 8}  # by batch
DIT_REPEATS = 5
SMALL = {"ghost": ghost, "mlp": mlp, "neural_ode": neural_ode}
FEW, MANY = 100, 10_000  # control steps


def measure(place: Place) -> list[Pair]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.no_grad():
        pairs = [pair for samples in REPEATS for pair in small(samples, device)]
        pairs += large(device)
        return pairs + memory()


def build(module: ModuleType) -> Any:
    return module.Decoder(module.Settings(), PAPER).eval()


def small(samples: int, device: torch.device) -> list[Pair]:
    models: dict[str, Any] = {name: build(module) for name, module in SMALL.items()}
    exported = {name: acts_exported(model, samples) for name, model in models.items() if name != "neural_ode"}
    batch = inputs(models["ghost"], samples, device)
    eager = {name: acts(model.to(device), batch) for name, model in models.items()}
    repeats = REPEATS[samples]
    ode = partial(by_torchdiffeq, models["neural_ode"], batch)
    return [
        *interleaved(f"ghost_over_mlp/eager/batch{samples}", eager["ghost"], eager["mlp"], repeats),
        *interleaved(f"ghost_over_mlp/exported/batch{samples}", exported["ghost"], exported["mlp"], repeats),
        *interleaved(f"exported_over_eager/batch{samples}", exported["ghost"], eager["ghost"], repeats),
        *interleaved(f"ghost_over_neural_ode/batch{samples}", eager["ghost"], ode, repeats),
    ]


def large(device: torch.device) -> list[Pair]:
    """The diffusion transformer, if 4.3 GB of memory are free."""
    parameters = 1_068_806_144
    if not fits(4 * parameters):
        return []
    small_one, large_one = build(ghost).to(device), build(dit).to(device)
    batch, generator = inputs(small_one, 1, device), torch.Generator(device).manual_seed(0)
    act = partial(large_one.act, batch, generator)
    pairs = interleaved("dit_over_ghost/batch1", act, acts(small_one, batch), DIT_REPEATS)
    del act, large_one
    gc.collect()
    return pairs


def memory() -> list[Pair]:
    decoder = ghost_phase.Decoder(ghost_phase.Settings(persistent=True), PAPER).eval()
    batch, latent, taken_mb = inputs(decoder, 1, torch.device("cpu")), None, {}
    for step in range(1, MANY + 1):
        latent = decoder.plan(batch, latent).memory
        if step in (FEW, MANY):
            taken_mb[step] = resident_mb()
    return [Pair("memory", 0, taken_mb[MANY], taken_mb[FEW], "MB")]


def inputs(decoder: Any, samples: int, device: torch.device) -> Batch:
    given = {name: value.to(device) for name, value in example(decoder, samples).items()}
    mask = torch.ones(PAPER.d_action, dtype=torch.bool, device=device)
    nothing = torch.zeros(samples, PAPER.horizon, PAPER.d_action, device=device)
    return Batch(given["tokens"], given["state"], nothing, mask, torch.zeros(samples, dtype=torch.int64, device=device))


def acts(model: Any, batch: Batch) -> Callable[[], object]:
    def act() -> None:
        model.act(batch)
        if batch.state.is_cuda:
            torch.cuda.synchronize()

    return act


def acts_exported(model: Any, samples: int) -> Callable[[], object]:
    exported = session(to_onnx(model, samples).SerializeToString())
    given = {name: value.numpy() for name, value in example(model, samples).items()}
    return lambda: exported.run(None, given)


def by_torchdiffeq(model: Any, batch: Batch) -> Any:
    """The Neural ODE's chunk, integrated by the library's Euler method instead of ours."""
    e, s = model.compressor(batch.tokens), model.settings
    times = torch.linspace(0, s.dt * s.steps, s.steps + 1, device=e.device)
    z = odeint(lambda _, z: model.field(z, e), model.encoder(batch.state), times, method="euler")[-1]
    return model.decode(model.horizon(z).view(len(z), model.sizes.horizon, -1))
