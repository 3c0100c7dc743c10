"""The potential's closed-form gradient against autograd, to first and second order."""

import pytest
import torch

from ghost.dynamics.networks import Drift, Potential


def example(hidden, *, d_z=3, d_c=4, batch=6):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Potential(d_z, d_c, hidden).double()
        z = torch.randn(batch, d_z, dtype=torch.float64, requires_grad=True)
        return model, z, 3 * torch.randn(batch, d_c, dtype=torch.float64)


@pytest.mark.parametrize("hidden", [(), (8,), (16, 16), (12, 9, 7)])
def test_gradient_is_autograds(hidden):
    model, z, c = example(hidden)
    (expected,) = torch.autograd.grad(model(z, c).sum(), z)
    assert model(z, c).shape == (6,)
    torch.testing.assert_close(model.gradient(z, c), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("hidden", [(8,), (12, 9, 7)])
def test_training_through_the_gradient_is_autograds_second_order(hidden):
    model, z, c = example(hidden)
    parameters = [
        p for name, p in model.named_parameters() if name != f"layers.{len(hidden)}.bias"
    ]  # ∇U does not see it
    (slope,) = torch.autograd.grad(model(z, c).sum(), z, create_graph=True)
    expected = torch.autograd.grad(slope.pow(3).sum(), [*parameters, z])
    ours = torch.autograd.grad(model.gradient(z, c).pow(3).sum(), [*parameters, z])
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)


def test_gradient_survives_gradcheck_and_large_inputs():
    model, z, c = example((5, 4))
    assert torch.autograd.gradcheck(lambda z: model.gradient(z, c), (z,))
    assert torch.isfinite(model.gradient(1e4 * z, c)).all()


def test_gradient_needs_no_autograd():
    model, z, c = example((8, 8))
    with torch.inference_mode():
        assert not model.gradient(z, c).requires_grad


def test_sizes_of_the_decoder():
    """Section IV-E: 192 -> 512 -> 512 -> 1 and 192 -> 512 -> 64 on 64 latents and 128 context dimensions."""
    count = lambda model: sum(p.numel() for p in model.parameters())  # noqa: E731
    assert count(Potential(64, 128, (512, 512))) == 192 * 512 + 512 + 512 * 512 + 512 + 512 + 1
    assert count(Drift(64, 128, (512,))) == 192 * 512 + 512 + 512 * 64 + 64


def test_drift_has_the_shape_of_the_latent():
    _, z, c = example((8,))
    assert Drift(3, 4, (8,)).double()(z, c).shape == z.shape
