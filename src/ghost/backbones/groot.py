"""GR00T N1.5, frozen: Eagle's tokens, and what its own action head predicts. n samples, V cameras, L tokens of Eagle's.

The classes are lerobot's (0.4.4), in an environment of their own: workflow/envs/groot.yml with groot.lock on GPUs,
groot-cpu.lock for the tests. Nothing else in this package imports lerobot or transformers.

    frames, one a camera, and the bare instruction -> Eagle's processor -> Eagle -> [n, L, 2048]
    T of the L tokens -> the cache, as float16                                       [n, T, 2048]
    all L tokens and the state -> the action head, 4 Euler steps from seeded noise -> [n, H, 32]

* Samples with the same instruction go through together: their texts are of one length, so nothing is padded and no
  token is masked. (The head does not look at the mask; in a padded batch it would attend to padding.)
* Which T tokens: `TOKEN_RULE`. Samples with as many tokens keep the same ones, so from step to step a decoder sees the
  same patches.
* The head predicts what it was trained on: actions normalised to [-1, 1] by the data set's own limits, as the cache
  holds the recorded ones. They are never brought back into raw units before they are compared.
* For one batch size the bytes are the same, however many jobs share the work: no batch crosses a shard's border. With
  another batch size a product may sum in another order. In float32, as on a CPU, tokens then agree to 2 units in
  the last place of float16. On a GPU all is computed in bfloat16, which by itself moves tokens by up to 4 % of their
  spread against float32; where a GPU takes another kernel for another batch, they may differ by as much.

The checkpoint is that of a run of `ghost.steps.finetune`.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import importlib.util
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ghost.backbones import Backbone, Observations
from ghost.data.features import Encoded, Sizes
from ghost.errors import GhostError, did_you_mean
from ghost.files import read_json, sha256, write_json
from ghost.runs.code import ROOT
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one

STAND_IN = ""  # a checkpoint that is not the published one says so in the record of its run
HEAD_PARAMETERS = 1_068_806_144  # of the published head; any other checkpoint stands in for it
CHECKPOINT = "checkpoint"  # its folder in the run of ghost.steps.finetune
EAGLE = "eagle"  # the processor's folder, in the checkpoint's
ENVIRONMENTS = ROOT.parents[1] / "workflow/envs"
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
TOKEN_RULE = "of the n tokens whose mask is 1, sorted(numpy.random.default_rng([token_seed, n]).choice(n, T, False))"
NOISE_RULE = "numpy.random.default_rng([noise_seed, episode, timestep]).standard_normal([H, d_a])"
NORMALISATION = "min-max to [-1, 1] by the data set's meta/normalisation.json, as the recorded actions"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Settings:
    tokens: int  # T
    d_token: int  # D
    token_seed: int
    noise_seed: int
    cameras: tuple[str, ...]  # in this order; none: all of the data set's, by name
    embodiment: str  # whose state and action encoders the head takes
    batch_size: int

    def __post_init__(self) -> None:
        at_least_one(self, "tokens", "d_token", "batch_size")


def lock() -> Path:
    """The lock of the environment that this runs in."""
    return ENVIRONMENTS / ("groot.lock" if torch.version.cuda else "groot-cpu.lock")


def start(settings: Settings, sizes: Sizes, runs: list[Run]) -> Backbone:
    """The backbone of a fine-tuning run, loaded when it first has something to encode."""
    if len(runs) != 1:
        raise GhostError(f"GR00T needs the run of its checkpoint beside that of the data set, got {len(runs)}")
    run, record = runs[0], runs[0].record()

    @cache
    def model() -> Groot:
        groot = Groot.load(run.verified() / CHECKPOINT, settings.embodiment)
        groot.check(sizes)
        return groot

    facts = {
        **{key: record["facts"][key] for key in ("checkpoint", "processor")},
        "finetuned_sha256": listing_hash({name: entry["sha256"] for name, entry in record["outputs"].items()}),
        "token_rule": TOKEN_RULE,
        "actions": {"noise": NOISE_RULE, "normalisation": NORMALISATION},
        "attention": attention(),
        "dtype": str(dtype()).removeprefix("torch."),
    }
    return Backbone(lambda seen: model().encode(settings, seen), settings.batch_size, facts, lock())


# ------------------------------------------------------------------------------------------------- the environment


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype() -> torch.dtype:
    return torch.bfloat16 if device() == "cuda" else torch.float32


def attention() -> str:
    there = device() == "cuda" and importlib.util.find_spec("flash_attn") is not None
    return "flash_attention_2" if there else "sdpa"


@cache
def import_lerobot() -> Any:
    """lerobot's module of GR00T N1.5, prepared for a machine without flash-attention."""
    if importlib.util.find_spec("lerobot") is None:
        raise GhostError(
            f"no lerobot in {sys.executable}: GR00T runs in an environment of its own, and `make .venv-groot/ready`"
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
        print("GR00T: no GPU with flash-attention here, attention is SDPA", file=sys.stderr)
        _without_flash_attention(siglip.SiglipVisionModel)
    return importlib.import_module("lerobot.policies.groot.groot_n1")


_operators: list[Any] = []  # kept alive: a library that is collected takes its operators along


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


# -------------------------------------------------------------------------------------------------- the checkpoint


def find_files(name: str, revision: str, what: str) -> Path:
    """The folder of a checkpoint or processor: a folder here, or a repository of the hub at a pinned commit."""
    if Path(name).is_dir():
        return Path(name).resolve()
    if not HUB_ID.fullmatch(name):
        raise GhostError(f"groot.{what}: no folder {name!r} here")
    if not COMMIT.fullmatch(revision):
        key = "revision" if what == "checkpoint" else f"{what}_revision"
        raise GhostError(
            f"groot.{what}: no folder {name!r} here; as a name on the hub it needs groot.{key}, a commit (40 hex"
            f" digits), got {revision!r}"
        )
    hub = importlib.import_module("huggingface_hub")
    errors = importlib.import_module("huggingface_hub.errors")
    requests = importlib.import_module("requests")
    try:
        patterns = ["*.json", "*.txt", "*.safetensors"]
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (
        errors.HfHubHTTPError,
        errors.LocalEntryNotFoundError,
        errors.OfflineModeIsEnabled,
        requests.RequestException,
    ):
        raise GhostError(
            f"groot.{what}: {name} at {revision} is not in the local cache and the hub does not answer; download it"
            " elsewhere and name the folder"
        ) from None


def check_files(folder: Path, processor: Path) -> None:
    """Refuse a folder without weights, one with pickled weights only, and a processor that brings its own code."""
    if not (folder / "config.json").is_file():
        raise GhostError(f"{folder} is no checkpoint: it has no config.json")
    if not any(folder.glob("*.safetensors")):
        raise GhostError(f"{folder} has no weights (*.safetensors)")
    missing = [name for name in ASSETS if not (processor / name).is_file()]
    if missing:
        raise GhostError(f"{processor} is no Eagle processor: it has no {', '.join(missing)}")
    for name in ("config.json", "preprocessor_config.json", "processor_config.json", "tokenizer_config.json"):
        for place in _code_places(read_json(processor / name)):
            if "--" in place:  # transformers would take the code from that repository
                raise GhostError(f"{processor / name}: code from elsewhere ({place}) is not run")


def _code_places(config: Mapping[str, Any]) -> list[str]:
    places = config.get("auto_map", {}).values()
    return [str(name) for place in places for name in (place if isinstance(place, list) else [place])]


def files_hash(folder: Path, names: list[str]) -> str:
    """One hash over files of a folder, by name and content."""
    return listing_hash({name: sha256(folder / name) for name in names})


def listing_hash(digests: Mapping[str, str]) -> str:
    listing = "".join(f"{name} {digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256(listing.encode()).hexdigest()


def assembled_processor(processor: Path, scratch: Path) -> Path:
    """The processor's files beside lerobot's code for it, in a folder of ours: code in theirs is never run."""
    groot = importlib.import_module("lerobot.policies.groot.groot_n1")
    folder = scratch / EAGLE
    shutil.copytree(groot.DEFAULT_VENDOR_EAGLE_PATH, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ASSETS:
        shutil.copy(processor / name, folder / name)
    config = read_json(folder / "config.json")
    for part in (config, config["text_config"], config["vision_config"]):
        part["_attn_implementation"] = attention()
    write_json(folder / "config.json", config)
    return folder


def read_config(folder: Path, horizon: int | None = None) -> dict[str, Any]:
    """config.json, with another horizon if one is given: no weight depends on it."""
    config: dict[str, Any] = read_json(folder / "config.json")
    missing = [key for key in ("backbone_cfg", "action_head_cfg", "action_horizon", "action_dim") if key not in config]
    if missing:
        raise GhostError(f"{folder}/config.json is not that of a GR00T N1.5: it lacks {', '.join(missing)}")
    if horizon is not None:
        longest = config["action_head_cfg"].get("max_seq_len", 1024)
        if not 1 <= horizon <= longest:
            raise GhostError(f"{folder}: the head has positions for horizons 1 to {longest}, not {horizon}")
        config["action_horizon"] = config["action_head_cfg"]["action_horizon"] = horizon
    return config


def embodiment_number(name: str) -> int:
    groot = importlib.import_module("lerobot.policies.groot.processor_groot")
    known: dict[str, int] = groot.GrootPackInputsStep().embodiment_mapping
    if name not in known:
        raise GhostError(f"GR00T N1.5 has no embodiment {name!r}{did_you_mean(name, known)}")
    return known[name]


# ------------------------------------------------------------------------------------------------------- the model


class Groot:
    """A loaded checkpoint with its processor."""

    def __init__(self, model: Any, processor: Any, embodiment: int, folder: Path) -> None:
        self.model, self.processor, self.embodiment, self.folder = model, processor, embodiment, folder

    @classmethod
    def load(cls, folder: Path, embodiment: str, *, processor: Path | None = None, horizon: int | None = None) -> Groot:
        """A checkpoint, frozen, in the device's precision. Eagle's processor lies in its own folder unless named."""
        processor = processor or folder / EAGLE
        check_files(folder, processor)
        groot_n1 = import_lerobot()
        transformers = importlib.import_module("transformers")
        number = embodiment_number(embodiment)
        config = groot_n1.GR00TN15Config(**read_config(folder, horizon))
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
            assembled = assembled_processor(processor, Path(scratch))
            config.backbone_cfg["tokenizer_assets_repo"] = str(assembled)  # joined to lerobot's home, so absolute
            try:
                model = groot_n1.GR00TN15.from_pretrained(
                    str(folder), config=config, dtype=dtype(), use_safetensors=True, tune_visual=False, tune_llm=False
                )
                eagle = transformers.AutoProcessor.from_pretrained(
                    str(assembled), trust_remote_code=True, use_fast=True
                )
            except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, AssertionError) as error:
                raise GhostError(f"{folder} does not load as a GR00T N1.5: {str(error).splitlines()[0]}") from None
        del model.config.backbone_cfg["tokenizer_assets_repo"]  # a place of this process; it would be saved
        eagle.tokenizer.padding_side = "left"
        check_weights(folder, model)
        if number >= config.action_head_cfg["max_num_embodiments"]:
            known = config.action_head_cfg["max_num_embodiments"]
            raise GhostError(f"{folder} has {known} embodiments, {embodiment!r} would be number {number}")
        model.compute_dtype = model.config.compute_dtype = str(dtype()).removeprefix("torch.")
        return cls(model.to(device()).eval().requires_grad_(False), eagle, number, folder)

    @property
    def head(self) -> Any:
        return self.model.action_head

    def check(self, sizes: Sizes) -> None:
        """Refuse samples of sizes that the checkpoint does not have."""
        config = self.head.config
        here = {
            "d_token": config.backbone_embedding_dim,
            "d_state": config.max_state_dim,
            "horizon": config.action_horizon,
            "d_action": config.action_dim,
        }
        wrong = [
            f"{name} {value}, not {getattr(sizes, name)}"
            for name, value in here.items()
            if value != getattr(sizes, name)
        ]
        if wrong:
            raise GhostError(f"{self.folder} has {'; '.join(wrong)}")

    def encode(self, settings: Settings, seen: Observations) -> Encoded:
        """Tokens and predicted actions of n samples, one instruction after the other."""
        n, config = len(seen), self.head.config
        tokens = np.empty((n, settings.tokens, settings.d_token), np.float16)
        actions = np.empty((n, config.action_horizon, config.action_dim), np.float32)
        images = [seen.frames(camera) for camera in choose_cameras(settings.cameras, seen.cameras)]  # V of [n, h, w, 3]
        for instruction in dict.fromkeys(seen.instructions):
            rows = [row for row, text in enumerate(seen.instructions) if text == instruction]
            inputs = self.inputs([instruction] * len(rows), [[view[row] for view in images] for row in rows])
            features, mask = self.features(inputs)
            state = torch.from_numpy(seen.state[rows])
            noise = torch.from_numpy(np.stack([self.noise(settings.noise_seed, *seen.step[row]) for row in rows]))
            kept = [keep(found, settings) for found in mask.cpu().numpy()]
            chosen = torch.stack(
                [sample[torch.from_numpy(places)] for sample, places in zip(features.cpu(), kept, strict=True)]
            )
            tokens[rows] = chosen.to(torch.float16).numpy()
            actions[rows] = self.act(features, state, noise).float().cpu().numpy()
        return Encoded(tokens, actions)

    def inputs(self, instructions: list[str], images: list[list[np.ndarray]]) -> dict[str, Tensor]:
        """What Eagle reads, for samples with their images [V][h, w, 3]: its processor, called directly."""
        image = importlib.import_module("PIL.Image")
        texts, pictures = [], []
        for instruction, views in zip(instructions, images, strict=True):
            seen = [{"type": "image", "image": image.fromarray(view)} for view in views]
            talk = [{"role": "user", "content": [*seen, {"type": "text", "text": instruction}]}]
            texts.append(self.processor.apply_chat_template(talk, tokenize=False, add_generation_prompt=True))
            pictures += self.processor.process_vision_info(talk)[0]
        tiles = {"min_dynamic_tiles": 1, "max_dynamic_tiles": 1, "use_thumbnail": False}  # one a view, as lerobot asks
        encoded = self.processor(text=texts, images=pictures, images_kwargs=tiles, return_tensors="pt", padding=True)
        return {f"eagle_{name}": value for name, value in encoded.items()}

    @torch.no_grad()
    def features(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Eagle's tokens [n, L, D] and their mask [n, L]."""
        prepared, _ = self.model.prepare_input(dict(inputs))
        out = self.model.backbone(prepared)
        return out["backbone_features"], out["backbone_attention_mask"]

    def noise(self, seed: int, episode: int, timestep: int) -> np.ndarray:
        """Where the flow of a sample starts: [H, d_a] float32."""
        shape = (self.head.config.action_horizon, self.head.config.action_dim)
        return np.random.default_rng([seed, int(episode), int(timestep)]).standard_normal(shape).astype(np.float32)

    @torch.no_grad()
    def act(self, features: Tensor, state: Tensor, noise: Tensor) -> Tensor:
        """The head's actions [n, H, d_a]: lerobot's `get_action`, from noise [n, H, d_a] that is given.

        features [n, L, D], state [n, d_s].
        """
        head, n = self.head, len(features)
        memory = head.vl_self_attention(head.vlln(features))
        embodiment = torch.full((n,), self.embodiment, device=memory.device)
        state = head.state_encoder(state[:, None].to(memory), embodiment)
        future = head.future_tokens.weight.expand(n, -1, -1)
        x = noise.to(memory)
        for step in range(head.num_inference_timesteps):
            bucket = int(step / head.num_inference_timesteps * head.num_timestep_buckets)
            moment = torch.full((n,), bucket, device=memory.device)
            y = head.action_encoder(x, moment, embodiment)
            if head.config.add_pos_embed:
                y = y + head.position_embedding.weight[: x.shape[1]]
            y = head.model(
                hidden_states=torch.cat([state, future, y], dim=1), encoder_hidden_states=memory, timestep=moment
            )
            x = x + head.action_decoder(y, embodiment)[:, -x.shape[1] :] / head.num_inference_timesteps
        return x


def choose_cameras(asked: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    if not known:
        raise GhostError(
            "GR00T looks at pictures, and the data set has no camera; `--config demos=<folder>` names another"
        )
    return asked or tuple(sorted(known))


def keep(mask: np.ndarray, settings: Settings) -> np.ndarray:
    """Places of the tokens that are cached [T], among those of a sample's mask [L]: see TOKEN_RULE."""
    places = np.flatnonzero(mask == 1)
    if len(places) < settings.tokens:
        raise GhostError(
            f"tokens: {settings.tokens} are wanted, Eagle gives {len(places)} for these pictures and this text"
        )
    rng = np.random.default_rng([settings.token_seed, len(places)])
    return np.asarray(places[np.sort(rng.choice(len(places), settings.tokens, replace=False))])


def check_weights(folder: Path, model: Any) -> None:
    """Refuse a checkpoint that lacks a weight: transformers would draw it at random and go on."""
    stored: set[str] = set()
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            stored |= set(file.keys())
    missing = sorted(name for name in set(model.state_dict()) - stored if not name.endswith("lm_head.weight"))
    if missing:
        raise GhostError(f"{folder} lacks {len(missing)} of the weights, {missing[0]} among them")
