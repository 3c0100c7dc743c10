"""Trained decoders as files: safetensors with what is needed to build the decoder again in its one metadata field."""

import importlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ghost.errors import GhostError
from ghost.files import atomic, canonical, parse_json
from ghost.forms import require
from ghost.runs.code import module_path
from ghost.runs.records import Run
from ghost.runs.settings import read_settings
from ghost.training.building import PARTS, build, check_depth, without_memory

MODEL = "model.safetensors"
FACTS = {"module": str, "settings": dict, "sizes": {str: range(1, 10**6)}}
FIELD = "ghost"  # one field only: safetensors writes several in no fixed order, and the same weights are the same bytes


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Any) -> None:
    with atomic(path) as temporary:
        stored = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
        temporary.write_bytes(save(stored, metadata={FIELD: canonical(facts)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """What `write_tensors` wrote: the tensors and the facts."""
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, parse_json(file.metadata()[FIELD], path)
    except (SafetensorError, KeyError, TypeError) as error:
        raise GhostError(f"{path} is not a file of ours: {error}") from None


def save_decoder(path: Path, module: str, decoder: Any, weights: Mapping[str, Tensor]) -> None:
    facts = {"module": module, "settings": asdict(decoder.settings), "sizes": asdict(decoder.sizes)}
    write_tensors(path, weights, facts)


def load_decoder(run: Run, device: str = "cpu") -> Any:
    """The trained decoder of a run, ready to act: an nn.Module with the contract of `ghost.decoders.contract`."""
    return load_file(run.path(MODEL), run.name, device)


def load_file(path: Path, name: str = "", device: str = "cpu") -> Any:
    """The same from a file alone, such as one that `ghost publish` prepared; `name` is for complaints."""
    tensors, facts = read_tensors(path)
    name = name or str(path.parent)
    where = f"{name}/{MODEL}"
    require(facts, FACTS, where)
    if module_path(facts["module"]) is None or not facts["module"].startswith(("ghost.decoders.", "ghost.agents.")):
        raise GhostError(f"{name}: its checkpoint names the module {facts['module']!r}, which is no decoder or agent")
    module = importlib.import_module(facts["module"])
    if not all(hasattr(module, part) for part in PARTS):
        raise GhostError(f"{name}: its checkpoint names {facts['module']!r}, which is no decoder or agent")
    (settings,) = read_settings(where, facts["settings"], module.Settings)
    (sizes,) = read_settings(where, facts["sizes"], module.Sizes)
    check_depth(module, settings)
    check_tensors(tensors, without_memory(lambda: module.Decoder(settings, sizes)).state_dict(), where)
    with torch.random.fork_rng(devices=[]):  # building draws initial weights: not at the caller's expense
        decoder = build(module, settings, sizes)
    decoder.load_state_dict(tensors)
    return decoder.to(device).eval().requires_grad_(False)


def check_tensors(stored: Mapping[str, Tensor], model: Mapping[str, Tensor], where: str) -> None:
    """Refuse weights that are not the model's: others in name, shape or type (which torch converts), or not finite."""
    found, expected = ({k: (tuple(v.shape), v.dtype) for k, v in tensors.items()} for tensors in (stored, model))
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            raise GhostError(
                f"{where}: {name!r} is {found.get(name, 'missing')}, its model has {expected.get(name, 'none')}"
            )
    broken = [name for name, tensor in stored.items() if tensor.is_floating_point() and not tensor.isfinite().all()]
    if broken:
        raise GhostError(f"{where}: {broken[0]!r} is not finite")
