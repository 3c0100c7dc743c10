"""The policies for LIBERO: published sizes, an inferred phase, memory between chunks, windows that begin an episode."""

from dataclasses import replace

import pytest
import torch

from ghost.data.features import Sizes
from ghost.decoders import ghost, ghost_phase, gru_phase, mlp, mlp_phase
from ghost.decoders.contract import Batch, join
from ghost.decoders.losses import imitation_terms
from ghost.runs.settings import read_settings
from ghost.study.libero import POLICIES, VARIANTS
from ghost.training.loop import Training

PAPER = Sizes(tokens=64, d_token=2048, d_state=64, horizon=16, d_action=7)
TINY = Sizes(tokens=1, d_token=6, d_state=5, horizon=4, d_action=3)
MODULES = {"mlp": mlp, "mlp_phase": mlp_phase, "gru_phase": gru_phase, "ghost": ghost, "ghost_phase": ghost_phase}
SMALL = {"hidden": 16, "d_context": 8, "d_latent": 8}
WEIGHTS = {"bc": 1.0, "phase": 0.1}


def count(name):
    decoder, settings, _ = {**POLICIES, **VARIANTS}[name]
    with torch.device("meta"):
        built = MODULES[decoder].Decoder(read_settings(name, settings, MODULES[decoder].Settings, Training)[0], PAPER)
    return sum(p.numel() for p in built.parameters())


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_batch(n=6, seed=0, **more):
    g = torch.Generator().manual_seed(seed)
    return Batch(
        torch.randn(n, 1, 6, generator=g),
        torch.randn(n, 5, generator=g),
        torch.randn(n, 4, 3, generator=g),
        torch.ones(3, dtype=torch.bool),
        torch.arange(n) % 2,
        phase=torch.arange(n) % 8,
        **more,
    )


def build(module, **settings):
    torch.manual_seed(0)
    return module.Decoder(module.Settings(**(SMALL | settings)), TINY)


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("libero_mlp", 1.4),
        ("libero_mlp_phase", 1.4),
        ("libero_gru_phase", 3.9),
        ("libero_ghost", 3.0),
        ("libero_ghost_pg", 3.0),
        ("libero_ghost_pz", 3.0),
    ],
)
def test_published_sizes(name, millions):
    assert count(name) / 1e6 == pytest.approx(millions, rel=0.05)


def test_persistent_z_costs_what_is_published():
    assert count("libero_ghost_pz") - count("libero_ghost_pg") == 8256


@pytest.mark.parametrize("module", [mlp_phase, gru_phase, ghost_phase])
def test_the_phase_is_inferred(module):
    """In closed loop nobody knows the phase: it must not reach the action, in training neither."""
    decoder, batch = build(module), make_batch()
    other = replace(batch, phase=(batch.phase + 3) % 8)
    assert (decoder.act(batch) == decoder.act(other)).all()
    assert decoder.plan(replace(batch, phase=None), None).phase_logits.shape == (6, 8)
    terms, others = (decoder.loss_terms(b, WEIGHTS) for b in (batch, other))
    assert terms["bc"] == others["bc"]
    assert terms["phase"] != others["phase"]


@pytest.mark.parametrize("module", [mlp_phase, gru_phase, ghost_phase])
def test_a_few_samples_are_learnt(module):
    decoder, batch = build(module, hidden=32), make_batch()
    optimiser = torch.optim.Adam(decoder.parameters(), 0.02)
    for _ in range(150):
        terms = decoder.loss_terms(batch, WEIGHTS)
        optimiser.zero_grad()
        (terms["bc"] + 0.1 * terms["phase"]).backward()
        optimiser.step()
    assert terms["bc"] < 0.1
    assert (decoder.plan(batch, None).phase_logits.argmax(dim=1) == batch.phase).all()


@pytest.mark.parametrize(("module", "settings"), [(gru_phase, {}), (ghost_phase, {"persistent": True})])
def test_memory_is_that_of_the_window(module, settings):
    """Chunk by chunk in closed loop is what a window does in training."""
    decoder, first, second = build(module, **settings).eval(), make_batch(seed=1), make_batch(seed=2)
    plan = decoder.plan(second, decoder.plan(first, None).memory)
    real = torch.ones(6, dtype=torch.bool)
    window = replace(second, history=(replace(first, real=real),))
    torch.testing.assert_close(decoder.act(window), plan.action)
    assert (decoder.act(window) != decoder.act(second)).any()  # what came before matters
    begun = replace(second, history=(replace(first, real=~real),))
    torch.testing.assert_close(decoder.act(begun), decoder.act(second))


def test_the_gru_remembers_a_window_and_no_more():
    """Late in an episode it plans from the chunks that a window of its training has."""
    decoder = build(gru_phase, window=3).eval()
    chunks, memory = [make_batch(seed=seed) for seed in range(6)], None
    for chunk in chunks:
        plan = decoder.plan(chunk, memory)
        memory = plan.memory
    real = torch.ones(6, dtype=torch.bool)
    window = replace(chunks[5], history=tuple(replace(chunk, real=real) for chunk in chunks[3:5]))
    torch.testing.assert_close(decoder.act(window), plan.action)


def test_the_loss_leaves_out_what_was_before_the_beginning():
    decoder = build(ghost_phase, persistent=True)
    first, second = make_batch(seed=1), make_batch(seed=2)
    none = torch.zeros(6, dtype=torch.bool)
    begun = decoder.loss_terms(replace(second, history=(replace(first, real=none),)), WEIGHTS)
    alone = decoder.loss_terms(second, WEIGHTS)
    assert begun["bc"].item() == pytest.approx(alone["bc"].item(), abs=1e-6)
    gradients = torch.autograd.grad(begun["bc"], list(decoder.parameters()), materialize_grads=True)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_every_chunk_of_a_window_is_distilled():
    """A teacher that does what the decoder does, in both chunks: no error. In the last chunk only: an error."""
    decoder, first, second = build(mlp_phase), make_batch(seed=1), make_batch(seed=2)
    batches = [replace(batch, teacher=decoder.act(batch)) for batch in (first, second)]
    both, (action,) = join(batches, [decoder.act(batch) for batch in batches])
    assert imitation_terms(action, both, {"distillation": 1.0})["distillation"].item() == 0
    batches[0] = replace(first, teacher=first.action)
    one, (action,) = join(batches, [decoder.act(batch) for batch in batches])
    assert imitation_terms(action, one, {"distillation": 1.0})["distillation"].item() > 0.1


def test_the_subspace_has_potential_in_its_basin_and_drift_outside():
    decoder = build(ghost_phase, basin_dims=3)
    z, e = torch.randn(5, 8), torch.randn(5, 8)
    field = decoder.field(e)(z)
    torch.testing.assert_close(field[:, :3], -decoder.potential.gradient(z[:, :3], e))
    torch.testing.assert_close(field[:, 3:], decoder.drift(z, e)[:, 3:])


def test_the_quartic_gradient_is_that_of_its_potential():
    quartic = ghost_phase.Quartic(4, 3)
    z, c = torch.randn(5, 4, requires_grad=True), torch.randn(5, 3)
    u = (z - quartic.centre(c)).square().sum(dim=-1).square().sum() / (4 * 4)
    (expected,) = torch.autograd.grad(u, z)
    torch.testing.assert_close(quartic.at(c).gradient(z), expected)


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="basin_dims must lie in"):
        ghost_phase.Settings(basin_dims=64)
    with pytest.raises(ValueError, match="choose one"):
        ghost_phase.Settings(basin_dims=16, quartic=True)
