"""A tiny checkpoint, a recorded data set with two cameras, and what the steps make of them; all made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from groot_rows import demos_row, features_row, finetune_row, write_recorded
from tiny_checkpoint import make_checkpoint

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
    make_demos(demos_row(recorded), manifest)
    return manifest


@pytest.fixture(scope="session")
def finetuned(tmp_path_factory, tiny, demos) -> Path:
    """The manifest of a checkpoint that had two updates."""
    from ghost.steps.finetune import finetune

    manifest = tmp_path_factory.mktemp("runs") / "groot/manifest.json"
    finetune(finetune_row(tiny), (demos,), manifest)
    return manifest


@pytest.fixture(scope="session")
def cached(tmp_path_factory, demos, finetuned) -> Path:
    """The manifest of a feature cache."""
    from ghost.steps.cache_features import cache_features

    manifest = tmp_path_factory.mktemp("runs") / "features/manifest.json"
    cache_features(features_row(), manifest, [demos, finetuned])
    return manifest
