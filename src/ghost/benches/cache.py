"""The feature cache: reading it, opening it, and reading more than memory holds.

sequential     all tokens in order, 256 samples at a time, against a copy of the memory-mapped shards
shuffled       the same samples in random order
open           opening 512 MB against opening 64 MB
first_read     opening 512 MB and reading all of it once, which verifies every shard's sha256, against hashing the same
               bytes with hashlib alone
training       samples a second that Ghost trains on at the paper's widths, from a cache on the disk of which memory
               holds a quarter, against all in memory. Before each epoch the system forgets the files
bounded        memory that a process takes (without the mapped pages, which the system takes back) after reading
               10 GB, against after 1 GB
"""

import hashlib
import json
import mmap
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ghost.benches import Pair, Place, interleaved, resident_mb
from ghost.data.features import INDEX, SMALL, TOKENS, Encoded, FeatureCache, Sizes, shard_lengths, write_shard
from ghost.data.results import Outcome
from ghost.data.samples import Samples
from ghost.decoders import ghost
from ghost.files import link, write_json
from ghost.runs.driver import Plan, Unit, execute
from ghost.runs.records import MANIFEST
from ghost.training.loop import Fit, Training, be_deterministic

MODULE = "ghost.benches.cache"
SIZES = Sizes(64, 2048, 64, 17, 32)
PER_SHARD, AT_A_TIME = 256, 256
BATCH, IN_EPISODE = 32, 16
SAMPLE_BYTES = 2 * SIZES.tokens * SIZES.d_token  # 256 KB
REPEATS = 7
SMALL_MB, TRAINED_MB, LARGE_MB, FIRST_MB, HUGE_MB = 64, 256, 512, 1024, 10_240


def measure(place: Place) -> list[Pair]:
    small, large = (write(place.scratch / f"cache{mb}", mb) for mb in (SMALL_MB, LARGE_MB))
    cache = FeatureCache.open(large)
    buffer = np.empty((AT_A_TIME, SIZES.tokens, SIZES.d_token), np.float16)
    order = np.random.default_rng(0).permutation(len(cache))

    def copy(cache: FeatureCache) -> None:
        for shard in cache.shards:
            np.copyto(buffer, shard)

    def read(indices: np.ndarray) -> None:
        for start in range(0, len(indices), AT_A_TIME):
            cache.tokens(indices[start : start + AT_A_TIME], out=buffer)

    def hash_all() -> None:
        for path in sorted(large.parent.glob("seed0/tokens/*.npy")):
            hashlib.sha256(path.read_bytes()).digest()

    return [
        *interleaved("sequential", lambda: read(np.arange(len(cache))), lambda: copy(cache), REPEATS),
        *interleaved("shuffled", lambda: read(order), lambda: copy(cache), REPEATS),
        *interleaved("open", lambda: FeatureCache.open(large), lambda: FeatureCache.open(small), REPEATS),
        *interleaved("first_read", lambda: copy(FeatureCache.open(large)), hash_all, REPEATS),
        *training(write(place.scratch / "trained", TRAINED_MB), REPEATS),
        bounded(cache),
    ]


def training(manifest: Path, repeats: int) -> list[Pair]:
    """An epoch from the disk, against one from memory."""
    be_deterministic()
    cache = FeatureCache.open(manifest)
    everything = np.arange(len(cache))
    little = len(cache) * SAMPLE_BYTES // 4
    disk, memory = (
        Fit(ghost, ghost.Settings(), Training(1, BATCH, 1e-3), samples, 0, Path("unused"))
        for samples in (Samples(cache, everything, memory_bytes=little), Samples(cache, everything))
    )

    def from_disk() -> None:
        forget(cache, manifest.parent)
        disk.epoch()

    taken = interleaved("training", from_disk, memory.epoch, repeats)
    return [Pair(p.name, p.repeat, len(cache) / p.ours, len(cache) / p.reference, "samples/s") for p in taken]


def forget(cache: FeatureCache, folder: Path) -> None:
    """Let the system forget the shards, mapped or not: whoever reads them next reads the disk."""
    for shard in cache.shards:
        shard.base.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]  # of a mapped array this is the mapping
    for path in folder.glob(f"seed0/{TOKENS}/*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())  # what is not on the disk yet is never forgotten
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def write(folder: Path, megabytes: int) -> Path:
    """Write a cache of noise with so many megabytes of tokens; returns its manifest."""
    samples = megabytes * 2**20 // SAMPLE_BYTES
    rng = np.random.default_rng(0)

    def run(unit: Unit) -> Outcome:
        names = []
        for number, length in enumerate(shard_lengths(samples, PER_SHARD)):
            shard = Encoded(rng.random((length, SIZES.tokens, SIZES.d_token), np.float32).astype(np.float16))
            (made,) = write_shard(unit.folder, shard)
            names.append(f"{TOKENS}/{number:05d}.npy")
            link(unit.folder / made, unit.folder / names[-1])
        index = {"sizes": asdict(SIZES), "samples_per_shard": PER_SHARD, "task_names": ["noise"], "shards": names}
        index |= {"starts": [], "normalisation": None}
        write_json(unit.folder / INDEX, index)
        arrays = {name: np.zeros(samples, np.int64) for name in SMALL}
        arrays |= {"state": np.zeros((samples, SIZES.d_state), np.float32)}
        arrays |= {"action": np.zeros((samples, SIZES.horizon, SIZES.d_action), np.float32)}
        arrays |= {"episode": np.arange(samples) // IN_EPISODE}
        arrays |= {"action_mask": np.ones(SIZES.d_action, np.uint8)}
        arrays |= {f"split/sample/{part}": np.arange(samples) for part in ("train", "test")}
        return Outcome([], arrays, (INDEX, *names))

    given = {"name": folder.name, "step": "cache_features", "module": MODULE, "scale": "bench", "places": {}}
    more = {"modules": [MODULE], "settings": {}, "seeds": [0], "needs": [], "reduced": {}, "stand_ins": []}
    execute(lambda job: Plan(run), json.dumps(given | more), folder / MANIFEST)
    return folder / MANIFEST


def bounded(cache: FeatureCache) -> Pair:
    """Read the shards again and again, until HUGE_MB were read."""
    taken_mb, read_mb = {}, 0
    every_mb = AT_A_TIME * SAMPLE_BYTES // 2**20
    while read_mb < HUGE_MB:
        start = (read_mb // every_mb * AT_A_TIME) % len(cache)
        cache.tokens(np.arange(start, start + AT_A_TIME))  # a new array each time
        read_mb += every_mb
        if read_mb in (FIRST_MB, HUGE_MB):
            taken_mb[read_mb] = resident_mb(shared=False)
    return Pair("bounded", 0, taken_mb[HUGE_MB], taken_mb[FIRST_MB], "MB")
