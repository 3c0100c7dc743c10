import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT
from ghost.data.features import FeatureCache
from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from trained import DEMOS, FEATURES, declared

SMALL = {**FEATURES, "samples_per_shard": 16}  # 180 samples: 12 shards
TEXT = declared("features", "cache_features", "ghost.backbones.standin", SMALL, [0], ["demos"])


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    manifest = tmp_path_factory.mktemp("demos") / "manifest.json"
    execute(make_demos, declared("demos", "make_demos", "ghost.data.dual_arm", DEMOS, [0], []), manifest)
    return manifest


def cache_part(out, demos, part, parts):
    done = out.parent / f"parts/{part}of{parts}.json"
    execute(cache_features, TEXT, out, [demos], part=part, parts=parts, done=done)
    return json.loads(done.read_text())


@pytest.mark.parametrize("parts", [2, 5, 12, 20])
def test_any_number_of_jobs_gives_the_same_bytes(tmp_path, demos, parts):
    whole, out = tmp_path / "whole/manifest.json", tmp_path / "shared/manifest.json"
    execute(cache_features, TEXT, whole, [demos])
    shares = [cache_part(out, demos, part, parts) for part in reversed(range(1, parts + 1))]
    assert not out.exists()
    addresses = [address for share in shares for address in share]
    assert (len(addresses), len(set(addresses))) == (12, 12)  # each shard once
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    units = out.parent / "units/cache_features"
    made = {path: path.stat().st_mtime_ns for path in units.glob("*/tokens.npy")}
    execute(cache_features, TEXT, out, [demos])
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert out.read_bytes() == whole.read_bytes()
    with pytest.raises(GhostError, match=f"part must be 1 to {parts}, got 0"):
        cache_part(out, demos, 0, parts)


def test_cores_do_not_matter_since_the_backbone_is_loaded_once(tmp_path, demos, monkeypatch):
    execute(cache_features, TEXT, tmp_path / "one/manifest.json", [demos])
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "8")
    execute(cache_features, TEXT, tmp_path / "eight/manifest.json", [demos])
    assert (tmp_path / "one/manifest.json").read_bytes() == (tmp_path / "eight/manifest.json").read_bytes()


def test_a_backbone_without_a_head_predicts_no_actions(tmp_path, demos):
    execute(cache_features, TEXT, tmp_path / "manifest.json", [demos])
    with pytest.raises(GhostError, match="has no predicted actions: its backbone has no action head"):
        FeatureCache.open(tmp_path / "manifest.json").predicted_action(np.arange(3))


def test_a_shard_that_was_lost_is_made_again(tmp_path, demos):
    out = tmp_path / "manifest.json"
    first, *_ = cache_part(out, demos, 1, 2)
    (tmp_path / f"units/cache_features/{first}/tokens.npy").write_bytes(b"torn")
    execute(cache_features, TEXT, out, [demos])
    assert len(FeatureCache.open(out).tokens(np.arange(180))) == 180


def test_what_has_no_units_has_no_parts(tmp_path):
    text = declared("demos", "make_demos", "ghost.data.dual_arm", DEMOS, [0], [])
    with pytest.raises(GhostError, match="demos: a run of make_demos has no parts"):
        execute(make_demos, text, tmp_path / "manifest.json", part=1, parts=2, done=tmp_path / "1of2.json")


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path, demos):
    """A limit on the size of files stands for the disk's: the same write fails, in the same place."""
    code = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "runpy.run_module('ghost.steps.cache_features', run_name='__main__', alter_sys=True)"
    )
    command = [sys.executable, "-c", code, "--experiment", TEXT, "--needs", str(demos)]
    command += ["--out", str(tmp_path / "manifest.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(rf"ghost: error: {tmp_path}/units/cache_features/\w+/tokens.npy: File too large\n", done.stderr)
    assert not list(tmp_path.rglob("*.tmp*"))
