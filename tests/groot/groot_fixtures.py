"""A tiny checkpoint, a recorded data set with two cameras, and the runs of the steps on them; all are made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from groot_experiments import demos_experiment, features_experiment, finetune_experiment, write_recorded
from tiny_checkpoint import make_checkpoint

from ghost.runs.driver import execute
from ghost.steps.cache_features import cache_features
from ghost.steps.finetune import finetune
from ghost.steps.make_demos import make_demos


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("weights") / "tiny")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Path:
    return write_recorded(tmp_path_factory.mktemp("recorded") / "set", "v2.1")


@pytest.fixture(scope="session")
def demos(tmp_path_factory, recorded) -> Path:
    manifest = tmp_path_factory.mktemp("runs") / "dual_arm/manifest.json"
    execute(make_demos, demos_experiment(recorded), manifest)
    return manifest


@pytest.fixture(scope="session")
def finetuned(tmp_path_factory, tiny, demos) -> Path:
    """The manifest of a checkpoint that had two updates."""
    manifest = tmp_path_factory.mktemp("runs") / "dit/manifest.json"
    execute(finetune, finetune_experiment(tiny), manifest, [demos])
    return manifest


@pytest.fixture(scope="session")
def cached(tmp_path_factory, demos, finetuned) -> Path:
    """The manifest of a feature cache."""
    manifest = tmp_path_factory.mktemp("runs") / "features/manifest.json"
    execute(cache_features, features_experiment(), manifest, [demos, finetuned])
    return manifest
