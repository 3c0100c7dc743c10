"""Tokens that memory does not hold: each byte once an epoch, the same batches, the same bytes after a kill."""

from collections import Counter

import numpy as np
import pytest
import torch

from ghost.data import pools, samples
from ghost.data.features import FeatureCache, Sizes
from ghost.data.samples import Samples
from ghost.decoders import ghost_phase
from ghost.errors import GhostError
from ghost.training.loop import Fit, Training
from trained import write_cache

pytestmark = pytest.mark.usefixtures("torch_as_it_was")
EPISODES, STEPS = 12, 20
N, T, D = EPISODES * STEPS, 3, 4
SIZES = Sizes(T, D, 5, 2, 3)
SETTINGS = ghost_phase.Settings(hidden=8, d_context=6, d_latent=4, phases=3, persistent=True)
TRAINING = Training(4, 16, 1e-2, "episode", phase=0.1, window=3, gap=4, final_rate=0.1)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    rng = np.random.default_rng(0)
    episode, timestep = np.repeat(np.arange(EPISODES), STEPS), np.tile(np.arange(STEPS), EPISODES)
    tokens = rng.normal(size=(N, T, D)).astype(np.float16)
    arrays = {
        "state": rng.normal(size=(N, 5)).astype(np.float32),
        "action": rng.normal(size=(N, 2, 3)).astype(np.float32),
        "action_mask": np.ones(3, np.uint8),
        **{"task": episode % 2, "phase": timestep % 3, "episode": episode, "timestep": timestep},
        "split/episode/train": np.arange(N),
        "split/episode/test": np.arange(1),
    }
    index = {"sizes": vars(SIZES), "task_names": ["a", "b"]}
    return write_cache(tmp_path_factory.mktemp("runs") / "features/manifest.json", arrays, tokens, 25, index)


@pytest.fixture
def little_memory(monkeypatch):
    """Room for 90 samples: three pools of 30, blocks of one or two episodes."""
    monkeypatch.setattr(samples, "MEMORY_BYTES", 90 * T * D * 2)
    monkeypatch.setattr(pools, "BLOCK", 15)


def opened(manifest):
    return Samples(FeatureCache.open(manifest), np.arange(N), window=3, gap=4)


def fit(manifest, state):
    return Fit(ghost_phase, SETTINGS, TRAINING, opened(manifest), 3, state)


def test_each_sample_is_read_once_an_epoch_and_in_the_order_of_the_disk(manifest, little_memory, monkeypatch):
    read = Samples._read
    seen = []
    monkeypatch.setattr(Samples, "_read", lambda self, places: (seen.append(places.copy()), read(self, places))[1])
    run = fit(manifest, None)
    assert run.samples.tokens is None
    epochs = []
    for _ in range(2):
        seen.clear()
        run.epoch()
        assert set(Counter(np.concatenate(seen).tolist()).values()) == {1}
        assert len(np.concatenate(seen)) == N
        assert all((np.diff(places) > 0).all() for places in seen)
        assert len(seen) > 5
        epochs.append(np.concatenate(seen).tolist())
    assert epochs[0] != epochs[1]  # other blocks are neighbours


def test_batches_are_those_from_memory(manifest, little_memory, monkeypatch):
    there = opened(manifest)
    monkeypatch.setattr(samples, "MEMORY_BYTES", 2**30)
    here = opened(manifest)
    assert (there.tokens is None, here.tokens is None) == (True, False)
    order = there.arranged(torch.randperm(N, generator=torch.Generator().manual_seed(0)))
    assert sorted(order.tolist()) == list(range(N))
    for places in torch.split(order, 16):
        a, b = there.batch(places), here.batch(places)
        for one, other in zip(a.window, b.window, strict=True):
            assert torch.equal(one.tokens, other.tokens)
            assert torch.equal(one.state, other.state)
    assert len(there.pools.held) <= 2


def test_neighbours_on_the_disk_are_mixed(manifest, little_memory):
    order = opened(manifest).arranged(torch.randperm(N, generator=torch.Generator().manual_seed(0)))
    assert (order.diff().abs() == 1).float().mean() < 0.2
    first = order[:30] // STEPS
    assert len(first.unique()) >= 2  # a pool has several episodes


def test_a_killed_run_goes_on_to_the_same_bytes(manifest, little_memory, tmp_path):
    whole = fit(manifest, tmp_path / "none")
    for _ in range(4):
        whole.epoch()
    killed = fit(manifest, tmp_path / "state.safetensors")
    for _ in range(2):
        killed.epoch()
    killed._save()
    again = fit(manifest, tmp_path / "state.safetensors")
    again.run(lambda epoch, text: None)
    assert again.epochs_run == 4
    for name, value in whole.decoder.state_dict().items():
        assert torch.equal(value, again.decoder.state_dict()[name]), name
    assert whole.curves == again.curves


def test_a_damaged_shard_is_named_by_the_thread_that_reads_it(manifest, little_memory):
    path = manifest.parent / "seed7/tokens/00003.npy"
    good = path.read_bytes()
    try:
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        with pytest.raises(GhostError, match=r"tokens/00003\.npy is not the file that its manifest lists"):
            fit(manifest, None).epoch()
    finally:
        path.write_bytes(good)
