"""Ghost against a plain version of the paper's equations that uses autograd for the gradients and no class of ours."""

import pytest
import torch
from torch.nn.functional import silu

from ghost.data.features import Sizes
from ghost.decoders.context import drop
from ghost.decoders.contract import Batch
from ghost.decoders.ghost import Decoder, Settings

SIZES = Sizes(tokens=5, d_token=12, d_state=7, horizon=4, d_action=6)
SINGLE = {"hidden": 16, "d_context": 8, "d_latent": 6}
DUAL = SINGLE | {"steps": 3, "refinement_steps": 2}


def build(**settings):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        decoder = Decoder(Settings(**settings), SIZES)
        for p in decoder.parameters():  # larger than at the start, so that every part matters
            p.data *= 2
        batch = Batch(
            torch.randn(9, 5, 12),
            torch.randn(9, 7),
            torch.randn(9, 4, 6),
            torch.arange(6) < 4,
            torch.arange(9) % 3,
        )
    return decoder, batch


def plain_ghost(w, settings, batch):
    """Actions and all latents from the weights `w` alone: Section IV, with U's gradient by autograd."""

    def two(name, x):
        x = silu(x @ w[f"{name}.first.weight"].T + w[f"{name}.first.bias"])
        return x @ w[f"{name}.second.weight"].T + w[f"{name}.second.bias"]

    def scalar(name, x):
        for k in (0, 1):
            x = silu(x @ w[f"{name}.layers.{k}.weight"].T + w[f"{name}.layers.{k}.bias"])
        return x @ w[f"{name}.layers.2.weight"].T + w[f"{name}.layers.2.bias"]

    def vector(name, x):
        x = silu(x @ w[f"{name}.layers.0.weight"].T + w[f"{name}.layers.0.bias"])
        return x @ w[f"{name}.layers.1.weight"].T + w[f"{name}.layers.1.bias"]

    def slope(name, z, c):
        with torch.enable_grad():
            z = z if z.requires_grad else z.detach().requires_grad_()
            u = scalar(name, torch.cat([z, c], dim=1)).sum()
            return torch.autograd.grad(u, z, create_graph=True)[0]

    e = []
    for tokens in batch.tokens:  # one sample at a time
        x = two("compressor.compress", tokens)
        score = [x_t @ w["compressor.score.weight"][0] + w["compressor.score.bias"][0] for x_t in x]
        share = torch.softmax(torch.stack(score), dim=0)
        e.append(sum(a * x_t for a, x_t in zip(share, x, strict=True)))
    e = torch.stack(e)
    z = [two("encoder", batch.state)]
    for _ in range(settings.steps):
        field = -slope("potential", z[-1], e) + vector("drift", torch.cat([z[-1], e], dim=1))
        z.append(z[-1] + settings.dt * field)
    p = torch.zeros_like(z[-1])
    for _ in range(settings.refinement_steps):
        xi = torch.cat([e, two("refinement_encoder", batch.state)], dim=1)
        force = vector("force", torch.cat([z[-1], xi], dim=1))
        p = p + settings.refinement_dt * (-slope("refinement_potential", z[-1], xi) - settings.damping * p + force)
        z.append(z[-1] + settings.refinement_dt * p / settings.mass)
    u = two("horizon", z[-1]).reshape(len(e), SIZES.horizon, -1)
    return torch.stack([two("decode", u[:, h]) for h in range(SIZES.horizon)], dim=1), z


@pytest.mark.parametrize("settings", [SINGLE, DUAL, DUAL | {"mass": 2.0, "damping": 0.9}])
def test_an_independent_ghost_acts_the_same(settings):
    decoder, batch = build(**settings)
    expected, z = plain_ghost(dict(decoder.named_parameters()), decoder.settings, batch)
    torch.testing.assert_close(decoder.act(batch), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(decoder.latents(batch), torch.stack(z), rtol=0, atol=1e-5)
    torch.testing.assert_close(decoder.readout(decoder.latents(batch)[-1]), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("settings", [SINGLE, DUAL])
def test_training_through_the_closed_form_is_training_through_autograd(settings):
    decoder, batch = build(**settings)
    decoder.double()
    batch = Batch(batch.tokens.double(), batch.state.double(), batch.action.double(), batch.action_mask, batch.task)
    weights = dict(decoder.named_parameters())
    ours = decoder.loss_terms(batch, {"bc": 1.0})["bc"]
    actions, _ = plain_ghost(weights, decoder.settings, batch)
    theirs = (actions - batch.action)[..., batch.action_mask].square().mean()
    torch.testing.assert_close(ours, theirs)
    got = torch.autograd.grad(ours, list(weights.values()), materialize_grads=True)
    expected = torch.autograd.grad(theirs, list(weights.values()), materialize_grads=True)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-12)


def test_dual_phase_has_the_published_size():
    """2.94M, +27 % over 2.32M, with n_1 = 3 and n_2 = 2."""
    sizes = Sizes(64, 2048, 64, 17, 32)
    with torch.device("meta"):
        dual = sum(p.numel() for p in Decoder(Settings(steps=3, refinement_steps=2), sizes).parameters())
    assert dual == 2_941_027
    assert f"{dual / 1e6:.2f}" == "2.94"
    assert round(100 * (dual / 2_315_746 - 1)) == 27


def test_what_the_figures_look_at():
    decoder, batch = build(**SINGLE)
    e, z = decoder.context(batch), decoder.latents(batch)
    assert z.shape == (6, 9, 6)
    assert e.shape == (9, 8)
    latent = z[2].detach().requires_grad_()
    (slope,) = torch.autograd.grad(decoder.potential(latent, e).sum(), latent)
    torch.testing.assert_close(decoder.gradient_norms(batch)[2], slope.norm(dim=1))
    torch.testing.assert_close(decoder.drift_norms(batch)[5], decoder.drift(z[5], e).norm(dim=1))
    torch.testing.assert_close(
        decoder.loss_terms(batch, {"basin": 1.0})["basin"], decoder.gradient_norms(batch)[-1].square().mean()
    )


def test_dropout_acts_in_training_only_and_from_its_generator():
    decoder, batch = build(**SINGLE, dropout=0.5)
    draw = lambda seed: decoder.act(batch, torch.Generator().manual_seed(seed))  # noqa: E731
    decoder.train()
    assert torch.equal(draw(0), draw(0))
    assert not torch.equal(draw(0), draw(1))
    decoder.eval()
    assert torch.equal(draw(0), draw(1))


def test_dropout_keeps_the_mean():
    dropped = drop(torch.ones(100_000), 0.1, torch.Generator().manual_seed(0))
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.9])
    assert dropped.mean().item() == pytest.approx(1, abs=0.01)
