"""What is particular to the decoders that draw noise: the CVAE's prior, the consistency boundary, flow matching."""

import dataclasses

import pytest
import torch
from test_every_decoder import build, make_batch, seeded

from ghost.data.features import Sizes
from ghost.decoders import dit
from ghost.decoders.diffusion import SIGMA_MAX, SIGMA_MIN


def test_cvae_acts_from_the_mean_of_its_prior():
    decoder, batch = build("cvae"), make_batch()
    c = decoder.condition(batch)
    mean = decoder.prior(c)[:, :4]
    assert torch.equal(decoder.act(batch, seeded(0)), decoder.chunk(mean, c))
    assert torch.equal(decoder.act(batch, seeded(0)), decoder.act(batch, seeded(1)))


def test_cvae_posterior_sees_the_action():
    decoder, batch = build("cvae"), make_batch()
    other = dataclasses.replace(batch, action=-batch.action)
    kl = [decoder.loss_terms(b, {"kl": 1.0}, seeded())["kl"] for b in (batch, other)]
    assert kl[0] != kl[1]


def test_denoising_at_the_lowest_level_changes_nothing():
    decoder, batch = build("diffusion"), make_batch()
    assert decoder.sigmas[0].item() == pytest.approx(SIGMA_MIN)
    assert decoder.sigmas[-1].item() == pytest.approx(SIGMA_MAX)
    denoised = decoder.denoise(batch.action, torch.full((8,), SIGMA_MIN), decoder.condition(batch))
    torch.testing.assert_close(denoised, batch.action)


def test_diffusion_takes_one_step():
    decoder, batch = build("diffusion"), make_batch()
    calls = []
    decoder.network.register_forward_hook(lambda *_: calls.append(1))
    decoder.act(batch, seeded())
    assert len(calls) == 1


def test_consistency_does_not_teach_its_own_target():
    """The gradient is that of a fixed target: |f(x_σ) - f⁻|² with f⁻ constant."""
    decoder, batch = build("diffusion"), make_batch()
    terms = decoder.loss_terms(batch, {"consistency": 1.0}, seeded())
    assert set(terms) == {"consistency"}
    assert 0 < terms["consistency"].item() < 1


def test_dit_parts_have_the_published_sizes():
    with torch.device("meta"):
        decoder = dit.Decoder(dit.Settings(), Sizes(64, 2048, 64, 17, 32))
    count = lambda *parts: sum(p.numel() for part in parts for p in part.parameters())  # noqa: E731
    time_and_out = (decoder.embed_time, decoder.modulation, decoder.out)
    assert count(decoder.blocks, *time_and_out) == 550_386_688
    assert count(decoder.encode_action) == 228_212_736
    assert count(decoder.vl_blocks) == 201_433_088
    assert count(decoder.encode_state) == 52_510_720
    assert count(decoder.decode_action) == 34_636_800
    assert decoder.positions.numel() == 1_572_864


def test_dit_integrates_its_velocity_in_four_euler_steps():
    decoder, batch = build("dit"), make_batch()
    buckets = []

    def velocity(x, bucket, memory, state, generator):
        buckets.append(int(bucket[0]))
        return torch.ones_like(x)

    decoder.velocity = velocity
    start = torch.randn(batch.action.shape, generator=seeded())
    torch.testing.assert_close(decoder.act(batch, seeded()), start + 1)
    assert buckets == [0, 250, 500, 750]


def test_dit_perfect_velocity_has_no_loss_and_times_are_beta():
    """x_t and t are consistent with v = a - ε, and t has the mean of (s - Beta(1.5, 1)) / s."""
    decoder, batch = build("dit"), make_batch(4096)
    seen = {}

    def velocity(x, bucket, memory, state, generator):
        seen["x"], seen["t"] = x, bucket / dit.BUCKETS
        noise = torch.empty_like(x).normal_(generator=seeded())  # the first draw from the same generator
        return batch.target - noise

    decoder.velocity = velocity
    assert decoder.loss_terms(batch, {"flow": 1.0}, seeded())["flow"] == 0
    assert seen["t"].mean().item() == pytest.approx((0.999 - 0.6) / 0.999, abs=0.01)
    noise = torch.empty_like(batch.action).normal_(generator=seeded())
    t = seen["t"][:, None, None]
    torch.testing.assert_close(seen["x"], (1 - t) * noise + t * batch.target, rtol=0, atol=0.01)


def test_dit_layers_alternate_between_memory_and_sequence():
    decoder, batch = build("dit"), make_batch()
    before = decoder.act(batch, seeded())
    tokens = dataclasses.replace(batch, tokens=batch.tokens + 1 * torch.randn(batch.tokens.shape, generator=seeded()))
    assert not torch.allclose(before, decoder.act(tokens, seeded()))
    assert decoder.blocks[0].attention.key.in_features == 8
    assert decoder.blocks[1].attention.key.in_features == 32
