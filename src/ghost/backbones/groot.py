"""GR00T N1.5, frozen: the tokens of Eagle and the actions that GR00T's own head predicts.

    frames, one per camera, and the bare instruction -> Eagle's processor -> Eagle -> [n, L, 2048]
    T of the L tokens -> the cache, as float16                                       [n, T, 2048]
    all L tokens and the state -> the action head, Euler steps from seeded noise   -> [n, H, 32], of which d_a are kept

Letters: n samples, V cameras, L tokens of Eagle, T cached tokens, H horizon.

* Samples with the same instruction form a batch. Their texts have the same length, so nothing is padded and no token is
  masked. (The head ignores the mask; in a padded batch it would attend to padding.)
* `TOKEN_RULE` says which T tokens are cached. Samples with the same number of tokens keep the same places, so from step
  to step a decoder sees the same patches.
* The head predicts what it was trained on: actions normalised as the data set's meta/normalisation.json says. The cache
  holds the recorded actions in the same units, and the two are compared in these units.
* For one batch size the bytes are the same, however many jobs share the work: no batch crosses the border of a shard.
  With another batch size, tokens in float32, as on a CPU, agree to 2 units in the last place of float16. A GPU computes
  in bfloat16, which moves tokens by up to 4 % of their spread; with another batch size they may differ by as much.

The checkpoint comes from a run of `ghost.steps.finetune`. The model's classes are lerobot's.
"""

import contextlib
import importlib
import io
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from ghost.backbones import Backbone, Observations
from ghost.backbones.groot_environment import attention, device, dtype, import_lerobot, lock
from ghost.backbones.groot_files import CHECKPOINT, EAGLE, assembled_processor, check_files, check_weights, read_config
from ghost.backbones.views import middle
from ghost.data.features import Encoded, Sizes
from ghost.errors import GhostError, did_you_mean
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one, not_negative

TOKEN_RULE = "of the n tokens whose mask is 1, sorted(numpy.random.default_rng([token_seed, n]).choice(n, T, False))"  # noqa: S105  # no password
NOISE_RULE = "numpy.random.default_rng([noise_seed, episode, timestep]).standard_normal([H, d_a])"
NORMALISATION = "that of the recorded actions: the data set's meta/normalisation.json"


@dataclass(frozen=True)
class Settings:
    tokens: int  # T
    d_token: int  # D
    token_seed: int
    noise_seed: int
    cameras: tuple[str, ...]  # in this order; empty: all cameras of the data set, by name
    embodiment: str  # whose state and action encoders the head takes
    batch_size: int
    crop: float = 1.0  # the share of a picture's sides that is seen: its middle
    pixels: int = 0  # the side to which pictures are resized; 0: as they are
    euler_steps: int = 0  # of the head's flow; 0: as the checkpoint says

    def __post_init__(self) -> None:
        at_least_one(self, "tokens", "d_token", "batch_size")
        not_negative(self, "pixels", "euler_steps")
        if not 0 < self.crop <= 1:
            raise ValueError(f"crop must lie above 0 and at most at 1, got {self.crop}")


def start(settings: Settings, sizes: Sizes, runs: list[Run]) -> Backbone:
    """The checkpoint of a fine-tuning run. It is loaded when the first observations are encoded."""
    if len(runs) != 1:
        raise GhostError(f"GR00T needs one checkpoint beside the data set, got {len(runs)}")
    run = runs[0]

    @cache
    def model() -> Groot:
        folder, steps = run.verified() / CHECKPOINT, settings.euler_steps or None
        groot = Groot.load(folder, settings.embodiment, euler_steps=steps)
        groot.check(sizes)
        return groot

    source = run.record()["facts"]
    facts = {
        "checkpoint": source["checkpoint"],
        "processor": source["processor"],
        "token_rule": TOKEN_RULE,
        "actions": {"noise": NOISE_RULE, "normalisation": NORMALISATION},
        "attention": attention(),
        "dtype": str(dtype()).removeprefix("torch."),
    }
    return Backbone(lambda seen: model().encode(settings, seen, sizes.d_action), settings.batch_size, facts, lock())


def embodiment_number(name: str) -> int:
    groot = importlib.import_module("lerobot.policies.groot.processor_groot")
    known: dict[str, int] = groot.GrootPackInputsStep().embodiment_mapping
    if name not in known:
        raise GhostError(f"GR00T N1.5 has no embodiment {name!r}{did_you_mean(name, known)}")
    return known[name]


class Groot:
    """A loaded checkpoint with its processor."""

    def __init__(self, model: Any, processor: Any, embodiment: int, folder: Path) -> None:
        self.model, self.processor, self.embodiment, self.folder = model, processor, embodiment, folder

    @classmethod
    def load(
        cls,
        folder: Path,
        embodiment: str,
        *,
        processor: Path | None = None,
        horizon: int | None = None,
        euler_steps: int | None = None,
    ) -> Self:
        """A frozen checkpoint in the precision of the device. By default it has Eagle's processor in its own folder."""
        processor = processor or folder / EAGLE
        check_files(folder, processor)
        groot_n1 = import_lerobot()
        transformers = importlib.import_module("transformers")
        number = embodiment_number(embodiment)
        config = groot_n1.GR00TN15Config(**read_config(folder, horizon, euler_steps))
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()):
            assembled = assembled_processor(processor, Path(scratch))
            config.backbone_cfg["tokenizer_assets_repo"] = str(assembled)  # lerobot's home / this: absolute
            try:
                model = groot_n1.GR00TN15.from_pretrained(
                    str(folder), config=config, dtype=dtype(), use_safetensors=True, tune_visual=False, tune_llm=False
                )
                eagle = transformers.AutoProcessor.from_pretrained(
                    str(assembled), trust_remote_code=True, use_fast=True
                )
            except (OSError, SafetensorError, RuntimeError, KeyError, TypeError, AssertionError) as error:
                raise GhostError(f"{folder} does not load as a GR00T N1.5: {str(error).splitlines()[0]}") from None
        del model.config.backbone_cfg["tokenizer_assets_repo"]  # a temporary folder; it would be saved
        eagle.tokenizer.padding_side = "left"
        check_weights(folder, model)
        known = config.action_head_cfg["max_num_embodiments"]
        if number >= known:
            raise GhostError(f"{folder} has {known} embodiments, {embodiment!r} is number {number}, counted from 0")
        model.compute_dtype = model.config.compute_dtype = str(dtype()).removeprefix("torch.")
        return cls(model.to(device()).eval().requires_grad_(False), eagle, number, folder)

    @property
    def head(self) -> Any:
        return self.model.action_head

    def check(self, sizes: Sizes) -> None:
        """Refuse samples of sizes that the checkpoint does not have. States and actions are padded to its own."""
        config, asked = self.head.config, asdict(sizes)
        here = {"d_token": config.backbone_embedding_dim, "horizon": config.action_horizon}
        most = {"d_state": config.max_state_dim, "d_action": config.action_dim}
        wrong = [f"{name} {value}, not {asked[name]}" for name, value in here.items() if value != asked[name]]
        wrong += [f"{name} {value} at most, not {asked[name]}" for name, value in most.items() if value < asked[name]]
        if wrong:
            raise GhostError(f"{self.folder} has {'; '.join(wrong)}")

    def encode(self, settings: Settings, seen: Observations, d_action: int | None = None) -> Encoded:
        """Tokens and predicted actions of n samples, one instruction after the other; of the actions the first d_a."""
        n, config = len(seen), self.head.config
        tokens = np.empty((n, settings.tokens, settings.d_token), np.float16)
        actions = np.empty((n, config.action_horizon, config.action_dim), np.float32)
        cameras = choose_cameras(settings.cameras, seen.cameras)
        images = [
            middle(seen.frames(camera), settings.crop, settings.pixels) for camera in cameras
        ]  # V of [n, h, w, 3]
        padded = np.zeros((n, config.max_state_dim), np.float32)
        padded[:, : seen.state.shape[1]] = seen.state
        for instruction in dict.fromkeys(seen.instructions):
            same = [k for k, text in enumerate(seen.instructions) if text == instruction]
            features, mask = self.features(
                self.inputs([instruction] * len(same), [[view[k] for view in images] for k in same])
            )
            state = torch.from_numpy(padded[same])
            noise = torch.from_numpy(np.stack([self.noise(settings.noise_seed, *seen.step[k]) for k in same]))
            for k, sample, found in zip(same, features.cpu(), mask.cpu().numpy(), strict=True):
                tokens[k] = sample[torch.from_numpy(keep(found, settings))].to(torch.float16).numpy()
            actions[same] = self.act(features, state, noise).float().cpu().numpy()
        return Encoded(tokens, np.ascontiguousarray(actions[:, :, :d_action]))

    def inputs(self, instructions: list[str], images: list[list[np.ndarray]]) -> dict[str, Tensor]:
        return eagle_inputs(self.processor, instructions, images)

    @torch.no_grad()
    def features(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Eagle's tokens [n, L, D] and their mask [n, L]."""
        prepared, _ = self.model.prepare_input(dict(inputs))
        out = self.model.backbone(prepared)
        return out["backbone_features"], out["backbone_attention_mask"]

    def noise(self, seed: int, episode: int, timestep: int) -> np.ndarray:
        """The noise [H, d_a] float32 from which the flow of a sample starts."""
        shape = (self.head.config.action_horizon, self.head.config.action_dim)
        return np.random.default_rng([seed, int(episode), int(timestep)]).standard_normal(shape).astype(np.float32)

    @torch.no_grad()
    def act(self, features: Tensor, state: Tensor, noise: Tensor) -> Tensor:
        """The head's actions [n, H, d_a], from features [n, L, D], state [n, d_s] and noise [n, H, d_a].

        This is lerobot's `get_action`, which draws the noise itself.
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


def eagle_inputs(processor: Any, instructions: list[str], images: list[list[np.ndarray]]) -> dict[str, Tensor]:
    """What Eagle's processor makes of instructions and images. `images` has a list [V] of [h, w, 3] per sample."""
    image = importlib.import_module("PIL.Image")
    texts, pictures = [], []
    for instruction, views in zip(instructions, images, strict=True):
        seen = [{"type": "image", "image": image.fromarray(view)} for view in views]
        talk = [{"role": "user", "content": [*seen, {"type": "text", "text": instruction}]}]
        texts.append(processor.apply_chat_template(talk, tokenize=False, add_generation_prompt=True))
        pictures += processor.process_vision_info(talk)[0]
    tiles = {"min_dynamic_tiles": 1, "max_dynamic_tiles": 1, "use_thumbnail": False}  # one per view, as in lerobot
    encoded = processor(text=texts, images=pictures, images_kwargs=tiles, return_tensors="pt", padding=True)
    return {f"eagle_{name}": value for name, value in encoded.items()}


def choose_cameras(asked: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    if not known:
        raise GhostError(
            "GR00T needs pictures, and the data set has no camera; `--config demos=<folder>` names another data set"
        )
    return asked or tuple(sorted(known))


def keep(mask: np.ndarray, settings: Settings) -> np.ndarray:
    """The places [T] of the cached tokens in a sample's mask [L], by TOKEN_RULE."""
    places = np.flatnonzero(mask == 1)
    if len(places) < settings.tokens:
        given = f"the {len(places)} that Eagle gives for these pictures and this text"
        raise GhostError(f"tokens must be at most {given}, got {settings.tokens}")
    rng = np.random.default_rng([settings.token_seed, len(places)])
    return np.asarray(places[np.sort(rng.choice(len(places), settings.tokens, replace=False))])
