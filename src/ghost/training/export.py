"""A trained decoder as one ONNX file, for robots: ONNX Runtime runs it without Python, torch or this project.

    ghost export data/laptop/runs/ghost/manifest.json --out ghost.onnx

Inputs are tokens [B, T, D] and state [B, d_s], the output is the action chunk [B, H, d_a], all float32, with B fixed. A
decoder that carries something from chunk to chunk has it as a further input `memory` [B, d_z], nan when an episode
begins, and output `next_memory`. It is written if its actions agree with ours.

State and action are in the units of the data set's normalisation, with padding after the real dimensions. The file's
metadata name its run (`ghost_run`) and, as JSON, hold what a robot needs (`ghost_data`): the normalisation with names,
groups and ranges of the dimensions, the horizon and the instructions.
`Exported` reads them: raw states in, raw actions out.
"""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ghost.data.features import FeatureCache, Sizes
from ghost.data.normalisation import Normalisation
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.files import atomic, canonical, parse_json
from ghost.forms import require
from ghost.runs.records import Run, open_runs
from ghost.training.checkpoint import load_decoder

DATA = "ghost_data"  # the key of what the file says about its data
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


def data_of(run: Run) -> dict[str, Any]:
    """What the features of a training say of its data; nothing where they are not beside it."""
    features = run.inputs("cache_features")
    if not features:
        return {}
    cache = FeatureCache.of(features[0])
    known = cache.normalisation.plain() if cache.normalisation else None
    return {"normalisation": known, "horizon": cache.sizes.horizon, "tasks": list(cache.task_names)}


class Exported:
    """An exported file on a robot: raw states in, raw action chunks out."""

    def __init__(self, path: Path) -> None:
        import onnx

        content = path.read_bytes()
        known = {field.key: field.value for field in onnx.load_from_string(content).metadata_props}
        self.run, self.session = known.get("ghost_run", ""), session(content)
        self.data = parse_json(known.get(DATA, "{}"), f"{path}: {DATA}")
        require(self.data, {str: object}, f"{path}: {DATA}")
        scales = self.data.get("normalisation")
        self.normalisation = Normalisation.of(scales, f"{path}: normalisation") if scales is not None else None

    def act(self, tokens: np.ndarray, state: np.ndarray) -> np.ndarray:
        """tokens [B, T, D], raw state [B, d] -> raw actions [B, H, d_a]; normalised ones where nothing is known."""
        (_, wanted), (_, (samples, d_state)), *more = ((given.name, given.shape) for given in self.session.get_inputs())
        if more:
            raise GhostError("the decoder carries a latent from chunk to chunk: call `session` with its `memory`")
        if list(tokens.shape) != wanted or len(state) != samples:
            given = f"tokens {list(tokens.shape)} and {len(state)} states (ghost export --samples)"
            raise GhostError(f"the file takes tokens {wanted} and {samples} states, not {given}")
        scale = self.normalisation.state if self.normalisation else None
        padded = np.zeros((samples, d_state), np.float32)
        padded[:, : state.shape[1]] = scale.apply(state) if scale else state
        (action, *_) = self.session.run(None, {"tokens": tokens.astype(np.float32), "state": padded})
        return self.normalisation.action.undo(action) if self.normalisation else np.asarray(action)


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
    if about := data_of(runs[0]):
        field = model.metadata_props.add()
        field.key, field.value = DATA, canonical(about)
    data = model.SerializeToString()
    off = disagreement(decoder, data, samples)
    if not off < TOLERANCE:
        raise GhostError(f"{manifest}: the exported actions differ from ours by {off:.1e} of the largest; not written")
    with atomic(out) as temporary:
        temporary.write_bytes(data)
    known = "" if about else "; the features are not beside it, so it does not say how actions were normalised"
    return f"{out}: run {runs[0].run_id}, {len(data) / 1e6:.1f} MB; its actions agree with ours to {off:.0e}{known}"
