"""The loaded model: saved and read again, its tokens, its action, one instruction per sample, the published size."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
import torch
from groot_experiments import FEATURES, PIXELS
from tiny_checkpoint import make_checkpoint

from ghost.backbones import Observations
from ghost.backbones.groot import Groot, Settings, keep
from ghost.backbones.groot_environment import import_lerobot
from ghost.errors import GhostError
from ghost.study.groot import WEIGHTS

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
OWN = ("tokens", "d_token", "token_seed", "noise_seed", "cameras", "embodiment", "batch_size")
SETTINGS = Settings(**{**{name: FEATURES[name] for name in OWN}, "cameras": ()})


@pytest.fixture(scope="module")
def model(tiny) -> Groot:
    return Groot.load(tiny, "new_embodiment", horizon=17)


def pictures(n: int, views: int = 2) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    return [[rng.integers(0, 255, (PIXELS, PIXELS, 3), dtype=np.uint8) for _ in range(views)] for _ in range(n)]


def observations(instructions: tuple[str, ...]) -> Observations:
    n, seen = len(instructions), pictures(len(instructions))
    state = np.random.default_rng(1).uniform(-1, 1, (n, 64)).astype(np.float32)
    step = np.stack([np.full(n, 3), np.arange(n)], axis=1)
    return Observations(
        instructions, {}, lambda camera: np.stack([views[camera == "b"] for views in seen]), ("a", "b"), state, step
    )


def one_of(seen: Observations, number: int) -> Observations:
    one = slice(number, number + 1)
    return Observations(
        seen.instructions[one],
        {},
        lambda camera: seen.frames(camera)[one],
        seen.cameras,
        seen.state[one],
        seen.step[one],
    )


def test_saved_weights_come_back(model, tiny, tmp_path):
    model.model.save_pretrained(tmp_path / "again")
    again = Groot.load(tmp_path / "again", "new_embodiment", processor=tiny / "eagle")
    assert again.head.config.action_horizon == 17
    mine, theirs = model.model.state_dict(), again.model.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_the_head_on_the_features_is_the_models_own_action(model):
    inputs = model.inputs(["stack the cups"] * 3, pictures(3))
    features, mask = model.features(inputs)
    assert features.shape[2] == 64
    assert mask.all()
    state = torch.randn(3, 64)
    more = {"state": state[:, None], "embodiment_id": torch.full((3,), 31)}
    torch.manual_seed(5)
    own = model.model.get_action({**inputs, **more})["action_pred"]
    torch.manual_seed(5)
    noise = torch.randn(3, 17, 32)  # what get_action drew
    ours = model.act(features, state, noise)
    assert ours.shape == (3, 17, 32)
    torch.testing.assert_close(ours, own, rtol=0, atol=0)


def test_the_head_on_cached_tokens_is_the_cached_action(model):
    """With all tokens kept, what float16 takes away is all that is lost."""
    seen = observations(("fold", "fold", "fold"))
    L = model.inputs(["fold"], pictures(1))["eagle_input_ids"].shape[1]
    whole = Settings(**{**vars(SETTINGS), "tokens": L})
    encoded = model.encode(whole, seen)
    noise = torch.from_numpy(np.stack([model.noise(0, *step) for step in seen.step]))
    again = model.act(torch.from_numpy(encoded.tokens).float(), torch.from_numpy(seen.state), noise)
    np.testing.assert_allclose(again.numpy(), encoded.actions, atol=2e-3)
    assert encoded.actions.std() > 0.1


def test_every_sample_has_its_own_instruction(model):
    mixed = model.encode(SETTINGS, observations(("stack the cups", "fold", "stack the cups", "fold the towel")))
    same = model.encode(SETTINGS, observations(("fold",) * 4))
    np.testing.assert_allclose(mixed.tokens[1], same.tokens[1], atol=4e-3)
    np.testing.assert_allclose(mixed.actions[1], same.actions[1], atol=1e-5)
    for number in (0, 2, 3):
        assert np.abs(mixed.tokens[number].astype(float) - same.tokens[number].astype(float)).max() > 0.1
        assert np.abs(mixed.actions[number] - same.actions[number]).max() > 1e-4


def test_a_sample_does_not_depend_on_its_batch(model):
    seen = observations(("stack the cups", "fold", "stack the cups", "fold", "lift"))
    whole = model.encode(SETTINGS, seen)
    alone = [model.encode(SETTINGS, one_of(seen, number)) for number in range(5)]
    tokens = np.concatenate([encoded.tokens for encoded in alone])
    ulp = np.spacing(np.abs(whole.tokens)).astype(float)
    assert np.all(np.abs(tokens.astype(float) - whole.tokens.astype(float)) <= 2 * ulp)
    np.testing.assert_allclose(np.concatenate([encoded.actions for encoded in alone]), whole.actions, atol=1e-5)


def test_bfloat16_moves_tokens_by_a_few_per_cent(tiny, model):
    """What a GPU computes in, here on the CPU: the size of its rounding, and of what another batch may change."""
    half = Groot.load(tiny, "new_embodiment", horizon=17)
    half.model.to(torch.bfloat16).compute_dtype = "bfloat16"
    seen = observations(("stack the cups", "fold", "stack the cups", "fold", "lift"))
    exact, rounded = (one.encode(SETTINGS, seen).tokens.astype(float) for one in (model, half))
    alone = np.concatenate([half.encode(SETTINGS, one_of(seen, k)).tokens.astype(float) for k in range(5)])
    assert 1e-3 < np.abs(rounded - exact).max() < 0.04 * exact.std()
    assert np.abs(alone - rounded).max() < 0.04 * exact.std()


def test_pictures_state_and_camera_order_matter(model):
    seen = observations(("fold",) * 2)
    base = model.encode(SETTINGS, seen)
    assert np.abs(base.tokens[0].astype(float) - base.tokens[1].astype(float)).max() > 0.1
    other = model.encode(Settings(**{**vars(SETTINGS), "cameras": ("b", "a")}), seen)
    assert np.abs(base.tokens.astype(float) - other.tokens.astype(float)).max() > 0.1
    moved = Observations(seen.instructions, {}, seen.frames, seen.cameras, seen.state + 0.5, seen.step)
    again = model.encode(SETTINGS, moved)
    np.testing.assert_array_equal(again.tokens, base.tokens)
    assert np.abs(again.actions - base.actions).max() > 1e-4


def test_tokens_are_chosen_among_the_unmasked_by_the_rule():
    mask = np.array([0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1])
    places = keep(mask, SETTINGS)
    unmasked = np.flatnonzero(mask)
    expected = unmasked[sorted(np.random.default_rng([0, 10]).choice(10, 8, replace=False))]
    np.testing.assert_array_equal(places, expected)
    other = Settings(**{**vars(SETTINGS), "token_seed": 1})
    assert any(not np.array_equal(keep(np.ones(n), other), keep(np.ones(n), SETTINGS)) for n in range(20, 30))
    with pytest.raises(GhostError, match=r"tokens must be at most the 7 that Eagle gives .* got 8"):
        keep(np.ones(7), SETTINGS)


def test_the_noise_belongs_to_the_sample(model):
    assert np.array_equal(model.noise(0, 3, 4), model.noise(0, 3, 4))
    drawn = [model.noise(*key) for key in ((0, 3, 4), (0, 4, 3), (1, 3, 4), (0, 3, 5))]
    assert len({values.tobytes() for values in drawn}) == 4
    assert abs(np.mean(drawn)) < 0.1


def test_horizons_are_a_matter_of_configuration(tmp_path, tiny):
    assert Groot.load(tiny, "new_embodiment").head.config.action_horizon == 16
    with pytest.raises(GhostError, match="positions for horizons 1 to 64, not 65"):
        Groot.load(tiny, "new_embodiment", horizon=65)
    make_checkpoint(tmp_path / "other", seed=1)
    first, second = (
        Groot.load(folder, "new_embodiment").head.future_tokens.weight for folder in (tiny, tmp_path / "other")
    )
    assert not torch.equal(first, second)


def test_the_published_head_has_the_published_number_of_parameters():
    import_lerobot()
    from accelerate import init_empty_weights
    from lerobot.policies.groot.action_head.flow_matching_action_head import (
        FlowmatchingActionHead,
        FlowmatchingActionHeadConfig,
    )

    diffusion = {"num_attention_heads": 32, "attention_head_dim": 48, "num_layers": 16, "cross_attention_dim": 2048}
    config = FlowmatchingActionHeadConfig(
        action_dim=32,
        action_horizon=17,
        max_state_dim=64,
        backbone_embedding_dim=2048,
        hidden_size=1024,
        input_embedding_dim=1536,
        max_num_embodiments=32,
        max_seq_len=1024,
        num_inference_timesteps=4,
        num_target_vision_tokens=32,
        add_pos_embed=True,
        use_vlln=True,
        noise_beta_alpha=1.5,
        noise_beta_beta=1.0,
        noise_s=0.999,
        num_timestep_buckets=1000,
        tune_projector=True,
        tune_diffusion_model=True,
        diffusion_model_cfg={
            **diffusion,
            "output_dim": 1024,
            "interleave_self_attention": True,
            "norm_type": "ada_norm",
            "positional_embeddings": None,
        },
        vl_self_attention_cfg={
            "num_attention_heads": 32,
            "attention_head_dim": 64,
            "num_layers": 4,
            "positional_embeddings": None,
        },
    )
    with init_empty_weights(), contextlib.redirect_stdout(io.StringIO()):
        head = FlowmatchingActionHead(config)
    assert next(head.parameters()).device.type == "meta"
    assert sum(parameter.numel() for parameter in head.parameters()) == WEIGHTS.real == 1_068_806_144
