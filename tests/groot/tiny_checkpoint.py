"""A GR00T N1.5 of the same classes, a hundred-thousandth of its size, with random weights: what the tests load.

The files are those of the published checkpoint: config.json and model.safetensors; in eagle/ the processor's, with a
byte-level tokenizer in place of Qwen's vocabulary and a chat template that numbers the images as Eagle's does.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<IMG_CONTEXT>", "<img>", "</img>")
TEMPLATE = (
    "{% set image = namespace(number=0) %}{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for content in message['content'] %}{% if content['type'] == 'image' %}"
    "{% set image.number = image.number + 1 %}<image-{{ image.number }}>"
    "{% else %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
IMAGE, PATCH = 56, 14  # pixels; 16 patches a view
D_VISION, D_TEXT, HEADS = 48, 64, 4


def make_checkpoint(folder: Path, *, horizon: int = 16, seed: int = 0) -> Path:
    """Write the checkpoint and its processor, with weights drawn from the seed."""
    write_processor(folder / "eagle")
    from ghost.backbones.groot_environment import import_lerobot
    from ghost.backbones.groot_files import assembled_processor

    groot_n1 = import_lerobot()
    import torch

    with tempfile.TemporaryDirectory() as scratch, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        processor = assembled_processor(folder / "eagle", Path(scratch))
        config = groot_n1.GR00TN15Config(**model_config(horizon))
        config.backbone_cfg["tokenizer_assets_repo"] = str(processor)
        model = groot_n1.GR00TN15(config, local_model_path=str(folder))
        for parameter in model.parameters():  # norms apart, the published weights are not near zero either
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.3 * parameter.shape[-1] ** -0.5)
        model.save_pretrained(folder)
    written = json.loads((folder / "config.json").read_text())
    del written["backbone_cfg"]["tokenizer_assets_repo"]
    (folder / "config.json").write_text(json.dumps(written, indent=1))
    return folder


def model_config(horizon: int) -> dict[str, Any]:
    """The published configuration's keys."""
    return {
        "backbone_cfg": {"select_layer": 2, "project_to_dim": None, "tune_llm": False, "tune_visual": False},
        "action_head_cfg": {
            "action_dim": 32,
            "action_horizon": horizon,
            "max_action_dim": 32,
            "max_state_dim": 64,
            "max_num_embodiments": 32,
            "backbone_embedding_dim": D_TEXT,
            "hidden_size": 32,
            "input_embedding_dim": 48,
            "num_inference_timesteps": 4,
            "num_target_vision_tokens": 4,
            "max_seq_len": 64,
            "noise_beta_alpha": 1.5,
            "noise_beta_beta": 1.0,
            "noise_s": 0.999,
            "num_timestep_buckets": 1000,
            "add_pos_embed": True,
            "tune_projector": True,
            "tune_diffusion_model": True,
            "use_vlln": True,
            "diffusion_model_cfg": {
                "attention_head_dim": 12,
                "num_attention_heads": 4,
                "cross_attention_dim": D_TEXT,
                "num_layers": 2,
                "output_dim": 32,
                "dropout": 0.2,
                "final_dropout": True,
                "interleave_self_attention": True,
                "norm_type": "ada_norm",
                "positional_embeddings": None,
            },
            "vl_self_attention_cfg": {
                "attention_head_dim": 16,
                "num_attention_heads": 4,
                "num_layers": 1,
                "dropout": 0.2,
                "final_dropout": True,
                "positional_embeddings": None,
            },
        },
        "action_horizon": horizon,
        "action_dim": 32,
        "compute_dtype": "bfloat16",
    }


def write_processor(folder: Path) -> None:
    """Every asset that lerobot asks the hub for."""
    folder.mkdir(parents=True)
    vocabulary = {letter: number for number, letter in enumerate(byte_letters())}
    added = {token: len(vocabulary) + number for number, token in enumerate(SPECIAL)}
    text = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": len(vocabulary) + len(added),
        "hidden_size": D_TEXT,
        "intermediate_size": 2 * D_TEXT,
        "num_hidden_layers": 4,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 2,
        "head_dim": D_TEXT // HEADS,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": D_VISION,
        "intermediate_size": 2 * D_VISION,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "image_size": IMAGE,
        "patch_size": PATCH,
    }
    vendored = {
        "AutoConfig": "configuration_eagle2_5_vl.Eagle25VLConfig",
        "AutoModel": "modeling_eagle2_5_vl.Eagle25VLForConditionalGeneration",
        "AutoProcessor": "processing_eagle2_5_vl.Eagle25VLProcessor",
        "AutoImageProcessor": "image_processing_eagle2_5_vl_fast.Eagle25VLImageProcessorFast",
    }
    files: dict[str, Any] = {
        "vocab.json": vocabulary,
        "added_tokens.json": added,
        "special_tokens_map.json": {"additional_special_tokens": list(SPECIAL[1:]), "pad_token": SPECIAL[0]},
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer",
            "added_tokens_decoder": {
                str(number): {"content": token, "special": True, "normalized": False} for token, number in added.items()
            },
            "additional_special_tokens": list(SPECIAL[1:]),
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": 512,
            "processor_class": "Eagle25VLProcessor",
        },
        "chat_template.json": {"chat_template": TEMPLATE},
        "generation_config.json": {},
        "config.json": {
            "architectures": ["Eagle25VLForConditionalGeneration"],
            "model_type": "eagle_2_5_vl",
            "auto_map": {name: vendored[name] for name in ("AutoConfig", "AutoModel")},
            "vision_config": vision,
            "text_config": text,
            "image_token_index": added["<IMG_CONTEXT>"],
            "select_layer": -1,
            "use_pixel_shuffle": False,
            "mlp_connector_layers": 1,
            "downsample_ratio": 1.0,
        },
        "preprocessor_config.json": {
            "auto_map": {name: vendored[name] for name in ("AutoProcessor", "AutoImageProcessor")},
            "image_processor_type": "Eagle25VLImageProcessorFast",
            "processor_class": "Eagle25VLProcessor",
            "size": {"height": IMAGE, "width": IMAGE},
            "do_resize": False,
            "do_rescale": True,
            "do_normalize": True,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
        },
        "processor_config.json": {
            "auto_map": {"AutoProcessor": vendored["AutoProcessor"]},
            "processor_class": "Eagle25VLProcessor",
            "tokens_per_tile": (IMAGE // PATCH) ** 2,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1))
    (folder / "merges.txt").write_text("#version: 0.2\n")


def byte_letters() -> list[str]:
    """A printable letter for each of the 256 bytes, as byte-level tokenizers have them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + number) for number in range(len(others))]
