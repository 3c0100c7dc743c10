"""A data set of one real task, its features, and every policy trained on it for a moment: by the real steps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from policies import POLICIES, TRAINING, WIDTHS

from ghost.libero.assets import Assets
from ghost.runs.driver import execute
from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from ghost.steps.train import train
from trained import declared

# Tests choose: what the variable names is for those that ask for LIBERO's own assets, the others have the primitives.
ORIGINAL = Path(os.environ.pop("GHOST_LIBERO_ASSETS", "") or Path(__file__).parents[3] / "shared/libero-assets")


@pytest.fixture(scope="session")
def original_assets() -> Assets:
    if not (ORIGINAL / "scenes").is_dir():
        pytest.skip("LIBERO's own assets are not here ($GHOST_LIBERO_ASSETS)")
    return Assets(ORIGINAL, primitive=False)


@pytest.fixture(scope="session")
def libero_runs(tmp_path_factory) -> dict[str, Path]:
    """Manifests: demos (task 5, three attempts), features, and each policy with two seeds."""
    folder = tmp_path_factory.mktemp("build") / "runs"
    made = {name: folder / name / "manifest.json" for name in ("demos", "features", *POLICIES)}
    demos = {"tasks": [5], "attempts": 3, "max_steps": 200, "noise": 0.05, "bursts": 0.01}
    execute(make_demos, declared("demos", "make_demos", "ghost.libero.demos", demos, [0], []), made["demos"])
    features = {"tokens": 1, "d_token": 160, "weights_seed": 0, "stride": 2, "test_episodes": 1, "horizon": 16}
    features |= {"d_state": 64, "d_action": 7, "samples_per_shard": 64}
    text = declared("features", "cache_features", "ghost.backbones.libero_standin", features, [0], ["demos"])
    execute(cache_features, text, made["features"], [made["demos"]])
    for name, (decoder, more) in POLICIES.items():
        settings = {**TRAINING, **WIDTHS, **more}
        text = declared(name, "train", f"ghost.decoders.{decoder}", settings, [1, 2], ["features"])
        execute(train, text, made[name], [made["features"]])
    return made
