import json
import os
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT
from ghost.data.features import FeatureCache, shard_range
from ghost.errors import GhostError
from ghost.runs.records import open_runs
from ghost.steps.cache_features import cache_features
from ghost.steps.cache_shards import cache_shards
from ghost.steps.make_demos import make_demos
from trained import DEMOS, FEATURES, row

SMALL = {**FEATURES, "samples_per_shard": 16}  # 180 samples: 12 shards
LINE = row("features", "cache_features", "ghost.backbones.standin", SMALL, [0], ["demos"])


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    manifest = tmp_path_factory.mktemp("demos") / "manifest.json"
    make_demos(row("demos", "make_demos", "ghost.data.dual_arm", DEMOS, [0], []), manifest)
    return manifest


@pytest.mark.parametrize("parts", [1, 2, 5, 12, 20])
def test_parts_cover_the_shards_once(parts):
    ranges = [shard_range(12, part, parts) for part in range(1, parts + 1)]
    assert [number for numbers in ranges for number in numbers] == list(range(12))
    assert max(map(len, ranges)) - min(map(len, ranges)) <= 1
    with pytest.raises(GhostError, match=f"part must be 1 to {parts}, got 0"):
        shard_range(12, 0, parts)


def test_any_number_of_jobs_gives_the_same_bytes(tmp_path, demos):
    whole = tmp_path / "whole/manifest.json"
    cache_features(LINE, whole, [demos])
    for parts in (2, 5):
        out = tmp_path / f"in{parts}/manifest.json"
        for part in reversed(range(1, parts + 1)):
            done = out.parent / f"parts/{part}of{parts}.json"
            cache_shards(LINE, done, [demos], part, parts)
            assert len(json.loads(done.read_text())["seed0"]) == len(shard_range(12, part, parts))
        made = {path: path.stat().st_mtime_ns for path in (out.parent / "seed0/tokens").iterdir()}
        cache_features(LINE, out, [demos])
        assert {path: path.stat().st_mtime_ns for path in (out.parent / "seed0/tokens").iterdir()} == made
        assert out.read_bytes() == whole.read_bytes()
        assert not list((out.parent / "seed0").glob("shards.*of*.json"))
    cache = FeatureCache.open(whole)
    with pytest.raises(GhostError, match="has no predicted actions: its backbone has no action head"):
        cache.predicted_action(np.arange(3))
    assert "facts" not in open_runs(whole)[0].record()


def test_a_part_that_was_lost_is_made_again(tmp_path, demos):
    out = tmp_path / "manifest.json"
    cache_shards(LINE, tmp_path / "parts/1of2.json", [demos], 1, 2)
    (tmp_path / "seed0/tokens/00002.npy").write_bytes(b"torn")
    cache_features(LINE, out, [demos])
    assert len(FeatureCache.open(out)) == 180


def test_progress_tells_samples_a_second_of_what_is_left(tmp_path, demos, capsys):
    cache_shards(LINE, tmp_path / "parts/1of2.json", [demos], 1, 2)
    assert "[100%] 96/96 samples; " in capsys.readouterr().err
    cache_features(LINE, tmp_path / "manifest.json", [demos])
    text = capsys.readouterr().err
    assert "[100%] 84/84 samples; " in text
    assert text.rstrip().endswith("samples/s")


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path, demos):
    """A limit on the size of files stands for the disk's: the same write fails, in the same place."""
    code = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "runpy.run_module('ghost.steps.cache_features', run_name='__main__', alter_sys=True)"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "--row",
        LINE,
        "--needs",
        str(demos),
        "--out",
        str(tmp_path / "manifest.json"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr == f"ghost: error: {tmp_path}/seed0/tokens/00000.npy: File too large\n"
    assert not list(tmp_path.rglob("*.tmp*"))
