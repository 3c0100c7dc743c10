"""Trained decoders as files: safetensors with what is needed to build the decoder again in its one metadata field."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ghost.errors import GhostError
from ghost.files import atomic, canonical
from ghost.runs.code import module_path
from ghost.runs.records import Run
from ghost.runs.settings import tuples

MODEL = "model.safetensors"
FIELD = "ghost"  # one field only: safetensors writes several in no fixed order, and the same weights are the same bytes


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Any) -> None:
    with atomic(path) as temporary:
        stored = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
        temporary.write_bytes(save(stored, metadata={FIELD: canonical(facts)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """What `write_tensors` wrote: the tensors and the facts."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()[FIELD])  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise GhostError(f"{path} is not a file of ours: {error}") from None


def save_decoder(path: Path, module: str, decoder: Any, weights: Mapping[str, Tensor]) -> None:
    facts = {"module": module, "settings": asdict(decoder.settings), "sizes": asdict(decoder.sizes)}
    write_tensors(path, weights, facts)


def load_decoder(run: Run, device: str = "cpu") -> Any:
    """The trained decoder of a run, ready to act: an nn.Module with the contract of `ghost.decoders.contract`."""
    tensors, facts = read_tensors(run.path(MODEL))
    if module_path(facts["module"]) is None or not facts["module"].startswith(("ghost.decoders.", "ghost.agents.")):
        raise GhostError(
            f"{run.name}: its checkpoint names the module {facts['module']!r}, which is no decoder or agent"
        )
    module = importlib.import_module(facts["module"])
    settings = module.Settings(**{key: tuples(value) for key, value in facts["settings"].items()})
    with torch.random.fork_rng(devices=[]):  # building draws initial weights: not at the caller's expense
        decoder = module.Decoder(settings, module.Sizes(**facts["sizes"]))
    decoder.load_state_dict(tensors)
    return decoder.to(device).eval().requires_grad_(False)
