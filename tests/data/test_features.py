import numpy as np
import pytest

from conftest import make_runs
from ghost.data.features import Encoded, FeatureCache, Sizes, shard_lengths, without_padding, write_shard
from ghost.data.results import Outcome
from ghost.errors import GhostError
from ghost.files import read_json, write_json
from ghost.runs.records import Run
from trained import write_cache

N, T, D = 23, 3, 4
TOKENS = np.random.default_rng(0).normal(size=(N, T, D)).astype(np.float16)


def arrays():
    rng = np.random.default_rng(1)
    return {
        "state": rng.normal(size=(N, 64)).astype(np.float32),
        "action": rng.normal(size=(N, 17, 32)).astype(np.float32),
        "action_mask": (np.arange(32) < 17).astype(np.uint8),
        **{name: np.arange(N) for name in ("phase", "episode", "timestep")},
        "task": np.arange(N) % 2,
        **{
            f"split/{name}/{part}": np.arange(k)
            for name in ("episode", "sample")
            for k, part in ((9, "train"), (4, "test"))
        },
    }


def write(manifest, per_shard=5):
    index = {"sizes": vars(Sizes(T, D, 64, 17, 32)), "task_names": ["a", "b"]}
    return write_cache(manifest, arrays(), TOKENS, per_shard, index)


@pytest.fixture
def manifest(tmp_path):
    return write(tmp_path / "runs/features/manifest.json")


def test_a_cache_comes_back(manifest):
    cache = FeatureCache.open(manifest)
    assert len(cache) == N
    assert cache.sizes == Sizes(tokens=T, d_token=D, d_state=64, horizon=17, d_action=32)
    assert cache.task_names == ("a", "b")
    assert cache.action_mask.dtype == bool
    assert cache.action_mask.sum() == 17
    for name in ("state", "action", "task", "phase", "episode", "timestep"):
        np.testing.assert_array_equal(getattr(cache, name), arrays()[name])
    assert [len(part) for part in cache.split("sample")] == [9, 4]
    assert all(isinstance(shard, np.memmap) for shard in cache.shards)


@pytest.mark.parametrize("per_shard", [1, 5, 23, 100])
def test_gathering_is_indexing_whatever_the_shards(tmp_path, per_shard):
    cache = FeatureCache.open(write(tmp_path / "m/manifest.json", per_shard))
    assert len(cache.shards) == len(shard_lengths(N, per_shard))
    for indices in (np.arange(N), np.array([22, 0, 7, 7, 4, 5]), np.array([], int)):
        tokens = cache.tokens(indices)
        assert tokens.dtype == np.float16
        np.testing.assert_array_equal(tokens, TOKENS[indices])
    with pytest.raises(IndexError, match="samples are 0 to 22"):
        cache.tokens(np.array([3, 23]))
    with pytest.raises(IndexError, match="samples are 0 to 22"):
        cache.tokens(np.array([-1]))


def test_bad_shards_are_refused_by_name(manifest):
    folder = manifest.parent / "seed7/tokens"
    one, two = folder / "00001.npy", folder / "00002.npy"
    good = one.read_bytes()
    altered = bytearray(good)
    altered[-3] ^= 1
    for content in (good[:-10], bytes(altered), two.read_bytes(), b""):
        one.write_bytes(content)
        cache = FeatureCache.open(manifest)
        with pytest.raises(GhostError, match=r"tokens/00001\.npy is not the file that its manifest lists"):
            cache.tokens(np.arange(N))
        np.testing.assert_array_equal(cache.tokens(np.arange(5)), TOKENS[:5])  # the first shard is right
    one.unlink()
    with pytest.raises(GhostError, match=r"tokens/00001\.npy is missing"):
        FeatureCache.open(manifest)
    one.write_bytes(good)
    np.testing.assert_array_equal(FeatureCache.open(manifest).tokens(np.arange(N)), TOKENS)


def test_opening_reads_no_shard_and_reading_verifies_each_once(manifest, monkeypatch):
    verified = []
    path = Run.path
    monkeypatch.setattr(Run, "path", lambda run, name: (verified.append(name), path(run, name))[1])
    cache = FeatureCache.open(manifest)
    assert not [name for name in verified if name.startswith("tokens/")]
    for _ in range(2):
        cache.tokens(np.array([22, 6, 7]))
    assert [name for name in verified if name.startswith("tokens/")] == ["tokens/00004.npy", "tokens/00001.npy"]


@pytest.mark.parametrize("starts", [5, "abc", [1], {"a": "b"}])
def test_starts_are_a_list_of_texts(tmp_path, starts):
    index = {"sizes": vars(Sizes(T, D, 64, 17, 32)), "task_names": ["a", "b"]}
    written = write_cache(tmp_path / "good/manifest.json", arrays(), TOKENS, 5, {**index, "starts": ["x", "y"]})
    assert FeatureCache.open(written).starts == ("x", "y")
    damaged = write_cache(tmp_path / "bad/manifest.json", arrays(), TOKENS, 5, {**index, "starts": starts})
    with pytest.raises(GhostError, match=r"shards\.json: starts.* must be"):
        FeatureCache.open(damaged)


def test_a_foreign_index_is_refused(manifest):
    index = manifest.parent / "seed7/shards.json"
    write_json(index, {**read_json(index), "samples_per_shard": 6})
    with pytest.raises(GhostError, match=r"shards\.json is not the file"):
        FeatureCache.open(manifest)


def test_what_is_no_cache_is_refused(tiny_manifest, manifest, tmp_path):
    with pytest.raises(GhostError, match="a feature cache has one run, this has 2"):
        FeatureCache.open(tiny_manifest)
    other = tmp_path / "other/manifest.json"
    make_runs(other, lambda seed: Outcome([]), seeds=[1])
    with pytest.raises(GhostError, match=r"lists no seed1/shards\.json"):
        FeatureCache.open(other)
    with pytest.raises(GhostError, match="no split 'samples'; did you mean sample"):
        FeatureCache.open(manifest).split("samples")


def test_a_shard_has_actions_where_the_backbone_has_a_head(tmp_path):
    assert write_shard(tmp_path, Encoded(TOKENS)) == ("tokens.npy",)
    assert write_shard(tmp_path, Encoded(TOKENS, np.zeros((N, 17, 32), np.float32))) == ("tokens.npy", "actions.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "tokens.npy"), TOKENS)


@pytest.mark.parametrize(("t", "d"), [(1, 1), (2, 4), (3, 2), (3, 4)])
def test_padding_is_not_stored_and_comes_back(tmp_path, t, d):
    padded = TOKENS.copy()
    padded[:, t:], padded[:, :, d:] = 0, 0
    assert without_padding(padded).shape == (N, t, d)
    index = {"sizes": vars(Sizes(T, D, 64, 17, 32)), "task_names": ["a", "b"]}
    cache = FeatureCache.open(write_cache(tmp_path / "m/manifest.json", arrays(), without_padding(padded), 5, index))
    assert cache.stored() == (t, d)
    indices = np.array([22, 0, 7, 8, 4, 5])
    np.testing.assert_array_equal(cache.tokens(indices), padded[indices])
    dirty = np.full((6, T, D), 9, np.float16)
    np.testing.assert_array_equal(cache.tokens(indices, out=dirty), padded[indices])
    small = cache.tokens(indices, out=np.empty((6, t, d), np.float16))
    np.testing.assert_array_equal(small, padded[indices, :t, :d])


def test_tokens_of_zeros_alone_keep_a_number():
    assert without_padding(np.zeros((N, T, D), np.float16)).shape == (N, 1, 1)


def test_a_shard_wider_than_the_index_says_is_refused(tmp_path):
    index = {"sizes": vars(Sizes(T, D - 1, 64, 17, 32)), "task_names": ["a", "b"]}
    cache = FeatureCache.open(write_cache(tmp_path / "m/manifest.json", arrays(), TOKENS, 5, index))
    for ask in (cache.stored, lambda: cache.tokens(np.arange(3))):
        with pytest.raises(GhostError, match=r"00000\.npy is float16 \(5, 3, 4\), not as shards\.json says"):
            ask()
