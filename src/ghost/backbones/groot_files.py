"""The files of a GR00T N1.5 checkpoint and of Eagle's processor: finding, checking, reading and hashing them."""

import importlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ghost.backbones.groot_environment import attention
from ghost.errors import GhostError
from ghost.files import read_json, write_json
from ghost.forms import require
from ghost.runs.outside import fetched

CHECKPOINT = "checkpoint"  # its folder in a run of ghost.steps.finetune
EAGLE = "eagle"  # the processor's folder in the checkpoint's folder
WEIGHTS = ("config.json", "*.safetensors")  # and the configuration
ASSETS = (  # the processor's files; its code is lerobot's own
    "added_tokens.json",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "preprocessor_config.json",
    "processor_config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.json",
)
SIZE = range(1, 10**6)
CONFIG = {"backbone_cfg": dict, "action_head_cfg": dict, "action_horizon": SIZE, "action_dim": SIZE}


def find_files(name: str, revision: str, what: str) -> Path:
    """The folder of a checkpoint or processor: a local folder, or a repository of the hub at a pinned commit."""
    key = "revision" if what == "checkpoint" else f"{what}_revision"
    patterns = ("*.json", "*.txt", "*.safetensors")
    return fetched(name, revision, f"groot.{what}", f"groot.{key}", kind="model", patterns=patterns)


def check_files(folder: Path, processor: Path) -> None:
    """Refuse a folder without weights, one with pickled weights only, and a processor that brings its own code."""
    if not (folder / "config.json").is_file():
        raise GhostError(f"{folder} is not a checkpoint: it has no config.json")
    if not any(folder.glob("*.safetensors")):
        raise GhostError(f"{folder} has no weights (*.safetensors)")
    missing = [name for name in ASSETS if not (processor / name).is_file()]
    if missing:
        raise GhostError(f"{processor} is not an Eagle processor: it has no {', '.join(missing)}")
    for name in ("config.json", "preprocessor_config.json", "processor_config.json", "tokenizer_config.json"):
        for place in _code_places(read_json(processor / name, dict), processor / name):
            if "--" in place:  # transformers would take the code from that repository
                raise GhostError(f"{processor / name} names code from elsewhere ({place}), which is not run")


def _code_places(config: Mapping[str, Any], where: Path) -> list[str]:
    require(config.get("auto_map", {}), {str: (str, None, [(str, None)])}, f"{where}: auto_map")
    places = config.get("auto_map", {}).values()
    return [str(name) for place in places for name in (place if isinstance(place, list) else [place])]


def check_weights(folder: Path, model: Any) -> None:
    """Refuse a checkpoint that lacks a weight. transformers would draw the weight at random."""
    stored: set[str] = set()
    for path in folder.glob("*.safetensors"):
        try:
            with safe_open(path, framework="pt") as file:
                stored |= set(file.keys())
        except SafetensorError as error:
            raise GhostError(f"{path} has no weights: {error}") from None
    missing = sorted(name for name in set(model.state_dict()) - stored if not name.endswith("lm_head.weight"))
    if missing:
        raise GhostError(f"{folder} lacks {len(missing)} of the weights, {missing[0]} among them")


def read_config(folder: Path, horizon: int | None = None, euler_steps: int | None = None) -> dict[str, Any]:
    """config.json, with another horizon and other steps of the flow if they are given. No weight depends on them."""
    config: dict[str, Any] = read_json(folder / "config.json", dict)
    missing = [key for key in ("backbone_cfg", "action_head_cfg", "action_horizon", "action_dim") if key not in config]
    if missing:
        raise GhostError(f"{folder}/config.json does not belong to a GR00T N1.5: it lacks {', '.join(missing)}")
    require(config, CONFIG, folder / "config.json")
    if horizon is not None:
        longest = config["action_head_cfg"].get("max_seq_len", 1024)
        require(longest, SIZE, f"{folder}/config.json: action_head_cfg.max_seq_len")
        if not 1 <= horizon <= longest:
            raise GhostError(f"{folder}: the head has positions for horizons 1 to {longest}, not {horizon}")
        config["action_horizon"] = config["action_head_cfg"]["action_horizon"] = horizon
    if euler_steps is not None:
        config["action_head_cfg"]["num_inference_timesteps"] = euler_steps
    return config


def assembled_processor(processor: Path, scratch: Path) -> Path:
    """A new folder with the processor's files and lerobot's code for it. Code in the processor's folder never runs."""
    groot_n1 = importlib.import_module("lerobot.policies.groot.groot_n1")
    folder = scratch / EAGLE
    shutil.copytree(groot_n1.DEFAULT_VENDOR_EAGLE_PATH, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ASSETS:
        shutil.copy(processor / name, folder / name)
    config = read_json(folder / "config.json", {"text_config": dict, "vision_config": dict})
    for part in (config, config["text_config"], config["vision_config"]):
        part["_attn_implementation"] = attention()
    write_json(folder / "config.json", config)
    return folder
