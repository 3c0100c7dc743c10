"""What holds for every decoder: its size, its contract, that it learns, and that padding and global state stay out."""

import dataclasses
import importlib

import pytest
import torch

from ghost.data.features import Sizes
from ghost.decoders.contract import Batch

PAPER = Sizes(tokens=64, d_token=2048, d_state=64, horizon=17, d_action=32)
TINY = Sizes(tokens=3, d_token=8, d_state=5, horizon=4, d_action=6)
SMALL = {
    "ghost": {"hidden": 32, "d_context": 8, "d_latent": 8},
    "mlp": {"hidden": 32, "d_context": 8, "d_latent": 8},
    "neural_ode": {"hidden": 32, "d_context": 8, "d_latent": 8},
    "cvae": {"hidden": 32, "d_context": 8, "d_latent": 8, "d_code": 4},
    "transformer": {"d_model": 32, "hidden": 32, "layers": 1, "heads": 2},
    "diffusion": {"hidden": 64, "d_context": 8, "d_latent": 8, "d_time": 8},
    "dit": {
        **{"layers": 2, "heads": 2, "d_head": 16, "vl_layers": 1, "vl_heads": 2, "hidden": 32, "embodiments": 2},
        **{"embodiment": 1, "future_tokens": 2, "positions": 8, "dropout": 0.0},
    },
}
WEIGHTS = {"bc": 1.0, "kl": 0.01, "contrastive": 0.2, "basin": 0.01, "denoising": 1.0, "consistency": 1.0, "flow": 1.0}


def module(name):
    return importlib.import_module(f"ghost.decoders.{name}")


def build(name, sizes=TINY, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return module(name).Decoder(module(name).Settings(**(SMALL[name] | settings)), sizes)


def make_batch(n=8, sizes=TINY):
    g = torch.Generator().manual_seed(1)
    return Batch(
        tokens=torch.randn(n, sizes.tokens, sizes.d_token, generator=g),
        state=torch.randn(n, sizes.d_state, generator=g),
        action=torch.randn(n, sizes.horizon, sizes.d_action, generator=g).clamp(-1, 1),
        action_mask=torch.arange(sizes.d_action) < 4,
        task=torch.arange(n) % 2,
    )


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("name", "published", "ours"),
    [
        ("ghost", 2_315_746, 2_315_746),
        ("mlp", 2.1e6, 2_084_193),
        ("neural_ode", 2.2e6, 2_216_417),
        ("cvae", 2.1e6, 2_117_089),
        ("transformer", 2.0e6, 2_020_896),
        ("diffusion", 2.2e6, 2_165_601),
        ("dit", 1_068_806_144, 1_068_806_144),
    ],
)
def test_parameters_at_the_papers_size(name, published, ours):
    with torch.device("meta"):
        decoder = module(name).Decoder(module(name).Settings(), PAPER)
    count = sum(p.numel() for p in decoder.parameters())
    assert count == ours
    assert abs(count / published - 1) < 0.05


@pytest.mark.parametrize("name", SMALL)
def test_contract(name):
    decoder, batch = build(name), make_batch()
    assert dataclasses.is_dataclass(module(name).Settings)
    weights = {term: WEIGHTS.get(term, 0.0) for term in module(name).TERMS}
    terms = decoder.loss_terms(batch, weights, seeded())
    assert set(terms) == {term for term, weight in weights.items() if weight}
    assert all(term.shape == () and torch.isfinite(term) for term in terms.values())
    assert decoder.act(batch, seeded()).shape == batch.action.shape
    torch.testing.assert_close(decoder.act(batch, seeded()), decoder.act(batch, seeded()), rtol=0, atol=0)


@pytest.mark.parametrize("name", SMALL)
def test_global_randomness_is_not_touched(name):
    decoder, batch = build(name), make_batch()
    before = torch.random.get_rng_state()
    decoder.loss_terms(batch, dict.fromkeys(module(name).TERMS[:1], 1.0), seeded())
    decoder.act(batch, seeded())
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("name", SMALL)
def test_padding_has_no_influence(name):
    """Other values in the padded action dimensions: same losses, same gradients."""
    decoder, batch = build(name), make_batch()
    padded = torch.where(batch.action_mask, batch.action, torch.tensor(1e6))
    weights = {term: WEIGHTS[term] for term in module(name).TERMS if term in WEIGHTS}
    results = []
    for action in (batch.action, padded):
        terms = decoder.loss_terms(dataclasses.replace(batch, action=action), weights, seeded())
        loss = sum(terms.values())
        results.append([loss, *torch.autograd.grad(loss, list(decoder.parameters()), materialize_grads=True)])
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", SMALL)
def test_acting_does_not_look_at_the_answer(name):
    decoder, batch = build(name), make_batch()
    blind = dataclasses.replace(
        batch, action=torch.full_like(batch.action, torch.nan), task=torch.zeros_like(batch.task)
    )
    assert torch.equal(decoder.act(batch, seeded()), decoder.act(blind, seeded()))


@pytest.mark.parametrize("name", SMALL)
def test_eight_samples_are_learned_by_heart(name):
    decoder, batch = build(name), make_batch()
    weights = {module(name).TERMS[0]: 1.0} | ({"kl": 0.001} if name == "cvae" else {})
    adam = torch.optim.Adam(decoder.parameters(), lr=3e-3)
    noise = seeded()

    def error():
        with torch.no_grad():
            return (decoder.act(batch, seeded()) - batch.action)[..., batch.action_mask].square().mean().item()

    before = error()
    for _ in range(400 if name in ("dit", "diffusion") else 250):
        adam.zero_grad()
        terms = decoder.loss_terms(batch, weights, noise)
        sum(weights[k] * v for k, v in terms.items()).backward()
        adam.step()
    assert error() < (0.35 if name == "dit" else 0.1) * before


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("ghost", {"steps": 0}, "steps must be at least 1, got 0"),
        ("ghost", {"dt": 0.0}, "dt must be positive, got 0.0"),
        ("ghost", {"refinement_steps": -1}, "refinement_steps must not be negative, got -1"),
        ("ghost", {"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ("mlp", {"layers": 0}, "layers must be at least 1, got 0"),
        ("neural_ode", {"dt": -0.2}, "dt must be positive, got -0.2"),
        ("cvae", {"d_code": 0}, "d_code must be at least 1, got 0"),
        ("transformer", {"heads": 3}, "d_model must be a multiple of heads, got 32 and 3"),
        ("diffusion", {"levels": 1}, "levels must be at least 2, got 1"),
        ("diffusion", {"d_time": 7}, "d_time must be even and at least 4, got 7"),
        ("dit", {"embodiment": 2}, "embodiment must be below embodiments = 2, got 2"),
        ("dit", {"positions": 3}, "positions must cover the horizon 4, got 3"),
        ("dit", {"vl_heads": 3}, "d_token must be a multiple of vl_heads, got 8 and 3"),
    ],
)
def test_bad_settings_say_what_they_got(name, wrong, message):
    with pytest.raises(ValueError, match=message):
        build(name, **wrong)
