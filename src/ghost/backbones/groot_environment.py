"""The environment of GR00T N1.5: its lock, device and precision, and the import of lerobot (0.4.4).

lerobot does not agree with our packages, so it has an environment of its own: workflow/envs/groot.yml with groot.lock
on GPUs, groot-cpu.lock for the tests. Our modules import lerobot and transformers inside functions, so they can be
imported in our environment as well.
"""

import atexit
import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ghost.errors import GhostError
from ghost.runs.code import ROOT

ENVIRONMENTS = ROOT.parents[1] / "workflow/envs"


def lock() -> Path:
    """The lock file of the environment that runs this code."""
    return ENVIRONMENTS / ("groot.lock" if torch.version.cuda else "groot-cpu.lock")


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype() -> torch.dtype:
    return torch.bfloat16 if device() == "cuda" else torch.float32


def attention() -> str:
    there = device() == "cuda" and importlib.util.find_spec("flash_attn") is not None
    return "flash_attention_2" if there else "sdpa"


@cache
def import_lerobot() -> Any:
    """lerobot's module of GR00T N1.5. Where there is no flash-attention, it is replaced first."""
    if importlib.util.find_spec("lerobot") is None:
        raise GhostError(
            f"{sys.executable} has no lerobot: GR00T runs in an environment of its own, and `make .venv-groot/ready`"
            " makes it"
        )
    modules = tempfile.mkdtemp(prefix="ghost-eagle-")  # transformers copies Eagle's code there before it imports it
    atexit.register(shutil.rmtree, modules, ignore_errors=True)
    os.environ["HF_MODULES_CACHE"] = modules
    if device() == "cpu":
        _declare_vision_operators()
    importlib.import_module("transformers").logging.set_verbosity_error()
    siglip = importlib.import_module("transformers.models.siglip.modeling_siglip")
    if attention() == "sdpa":
        print("GR00T: this machine has no GPU with flash-attention, attention is SDPA", file=sys.stderr)
        _without_flash_attention(siglip.SiglipVisionModel)
    return importlib.import_module("lerobot.policies.groot.groot_n1")


_operators: list[Any] = []  # a library that is garbage-collected takes its operators along


def _declare_vision_operators() -> None:
    """torchvision's package for GPUs registers kernels of operators that a CPU build of torch does not have."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for name in ("nms", "qnms"):
            operator = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            library.define(operator)  # type: ignore[no-untyped-call]
        _operators.append(library)
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]


def _without_flash_attention(vision_model: Any) -> None:
    """Eagle asks for flash-attention in its vision tower, whatever its configuration says."""
    initialise = vision_model.__init__

    def with_sdpa(self: Any, config: Any, *rest: Any, **more: Any) -> None:
        config._attn_implementation = "sdpa"
        initialise(self, config, *rest, **more)

    vision_model.__init__ = with_sdpa
