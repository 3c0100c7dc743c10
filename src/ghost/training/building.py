"""Make a decoder or an agent. One that memory cannot hold is refused before any of it is made."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from ghost.errors import GhostError, one_line

DEEPEST = 1000  # layers
PARTS = ("Settings", "Sizes", "Decoder")  # of a module that is a decoder or an agent


class TooLargeError(GhostError):
    """Memory does not hold the weights, as often as they are needed."""


def build(module: ModuleType, settings: Any, sizes: Any, *, copies: int = 1) -> Any:
    """The module's decoder with initial weights. `copies`: how often its weights will be in memory; training: 4."""
    check_depth(module, settings)
    try:
        empty = without_memory(lambda: module.Decoder(settings, sizes))
        needed_bytes = copies * sum(each.nbytes for each in (*empty.parameters(), *empty.buffers()))
        if not fits(needed_bytes):
            raise TooLargeError(
                f"{module.__name__}: its weights take {needed_bytes / 2**30:,.0f} GB; so much is not free here"
            )
        return module.Decoder(settings, sizes)
    except ValueError as error:  # settings that do not fit the sizes
        raise GhostError(f"{module.__name__}: {error}") from None


def check_depth(module: ModuleType, settings: Any) -> None:
    """Refuse more layers than any model has: each costs time and memory, even without weights."""
    deep = [name for name, value in asdict(settings).items() if name.endswith("layers") and value > DEEPEST]
    if deep:
        raise GhostError(f"{module.__name__}: {deep[0]} must be at most {DEEPEST}, got {getattr(settings, deep[0])}")


def without_memory(make: Callable[[], nn.Module]) -> nn.Module:
    """A model on the device that holds shapes alone."""
    with torch.device("meta"):
        try:
            return make()
        except RuntimeError as error:  # more numbers than 64 bits can count
            raise GhostError(f"too large: {one_line(str(error))}") from None


def count(make: Callable[[], nn.Module]) -> int:
    """Parameters of a model, which is not made for it."""
    return sum(p.numel() for p in without_memory(make).parameters())


def fits(needed_bytes: int) -> bool:
    """Whether that much and half as much again is free; where the system does not say, we try."""
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return True
    lines = dict(line.split(":") for line in meminfo.read_text(encoding="ascii").splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024 > 1.5 * needed_bytes
