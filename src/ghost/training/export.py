"""A trained decoder as one ONNX file, for robots: ONNX Runtime runs it without Python, torch or this project.

    ghost export data/laptop/runs/ghost/manifest.json --out ghost.onnx

Inputs are tokens [B, T, D] and state [B, d_s], the output is the action chunk [B, H, d_a], all float32, with B fixed. A
decoder that carries something from chunk to chunk has it as a further input `memory` [B, d_z], nan when an episode
begins, and output `next_memory`. The file's metadata name its run. It is written if its actions agree with ours.
"""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.files import atomic
from ghost.runs.records import open_runs
from ghost.training.checkpoint import load_decoder

TOLERANCE = 1e-4  # of the largest action: two libraries sum in different orders


class Chunk(nn.Module):
    """What a robot asks for, as a function of tensors."""

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: Tensor, state: Tensor, memory: Tensor | None = None) -> Any:
        d_action = self.decoder.sizes.d_action
        batch = Batch(
            tokens, state, state.new_zeros(0), state.new_ones(d_action, dtype=torch.bool), state.new_zeros(len(state))
        )
        if memory is None:
            return self.decoder.act(batch)
        plan = self.decoder.plan(batch, memory)
        return plan.action, plan.memory


def example(decoder: Any, samples: int) -> dict[str, Tensor]:
    """Inputs by name, as they are when an episode begins."""
    sizes, generator = decoder.sizes, torch.Generator().manual_seed(0)
    inputs = {
        "tokens": torch.randn(samples, sizes.tokens, sizes.d_token, generator=generator),
        "state": torch.randn(samples, sizes.d_state, generator=generator),
    }
    if getattr(decoder.settings, "persistent", False):
        inputs["memory"] = torch.full((samples, decoder.settings.d_latent), torch.nan)
    return inputs


def check(decoder: Any, where: Path) -> None:
    """Refuse what one function of tokens, state and memory cannot say."""
    name = type(decoder).__module__.rpartition(".")[2]
    can = "a decoder can be exported that decides without noise, and carries nothing or a latent (persistent)"
    if not isinstance(decoder.sizes, Sizes):
        raise GhostError(f"{where}: {name} is an agent; {can}")
    inputs, seeds = example(decoder, 1), (torch.Generator().manual_seed(seed) for seed in (0, 1))
    batch = Batch(inputs["tokens"], inputs["state"], torch.zeros(0), torch.ones(1, dtype=torch.bool), torch.zeros(1))
    with torch.no_grad():
        one, other = (decoder.act(batch, seed) for seed in seeds)
        plan = decoder.plan(batch, None) if hasattr(decoder, "plan") else None
    if not torch.equal(one, other):
        raise GhostError(f"{where}: {name} draws noise for every chunk; {can}")
    if plan is not None and plan.memory is not None and "memory" not in inputs:
        raise GhostError(f"{where}: {name} carries a memory of another kind; {can}")


def to_onnx(decoder: Any, samples: int) -> Any:
    """The decoder for so many samples at a time, as an `onnx.ModelProto`."""
    import onnx.helper  # noqa: F401  # named by its absence, rather than by torch's

    inputs = example(decoder, samples)
    outputs = ["action", "next_memory"][: 1 + ("memory" in inputs)]
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses torchvision, which we do not use
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            Chunk(decoder).eval(),
            tuple(inputs.values()),
            input_names=list(inputs),
            output_names=outputs,
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise GhostError("torch exported nothing")
    return program.model_proto


def session(model: bytes, threads: int = 1) -> Any:
    """ONNX Runtime's own: `session(model).run(None, {"tokens": ..., "state": ...})`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def disagreement(decoder: Any, model: bytes, samples: int) -> float:
    """The largest difference between the file's action and ours, relative to the largest action."""
    inputs = example(decoder, samples)
    (action, *_) = session(model).run(None, {name: value.numpy() for name, value in inputs.items()})
    with torch.no_grad():
        ours = Chunk(decoder)(**inputs)
    expected = (ours[0] if isinstance(ours, tuple) else ours).numpy()
    return float(np.abs(action - expected).max() / np.abs(expected).max())


def export(manifest: Path, out: Path, *, seed: int | None = None, samples: int = 1) -> str:
    """Write the file; returns a line about it."""
    if samples < 1:
        raise GhostError(f"samples must be at least 1, got {samples}")
    runs = [run for run in open_runs(manifest) if seed is None or run.seed == seed]
    if not runs:
        raise GhostError(f"{manifest}: no run with seed {seed}")
    decoder = load_decoder(runs[0])
    check(decoder, manifest)
    model = to_onnx(decoder, samples)
    field = model.metadata_props.add()
    field.key, field.value = "ghost_run", runs[0].run_id
    data = model.SerializeToString()
    off = disagreement(decoder, data, samples)
    if not off < TOLERANCE:
        raise GhostError(f"{manifest}: the exported actions differ from ours by {off:.1e} of the largest; not written")
    with atomic(out) as temporary:
        temporary.write_bytes(data)
    return f"{out}: run {runs[0].run_id}, {len(data) / 1e6:.1f} MB; its actions agree with ours to {off:.0e}"
