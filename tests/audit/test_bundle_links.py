"""What a bundle takes: files of the tree, verified. A link that leads elsewhere would publish a file of the user's."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

import pytest
from small_build import small_build

from ghost.audit.bundle import bundle
from ghost.errors import GhostError


@pytest.fixture
def config(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return dataclasses.replace(small_build(), files=())  # its configuration lies in another folder


def test_a_build_without_links_is_packed(config):
    bundle(config, Path("b.zip"))
    assert "data/smoke/runs/cvae/seed42/measured.csv" in zipfile.ZipFile("b.zip").namelist()


@pytest.mark.parametrize(
    "name", ["results.csv", "audit.html", "cells/secret.jsonl", "runs/cvae/seed42/measured.csv", "runs/cvae/seed42"]
)
def test_a_link_out_of_the_tree_is_refused(config, name):
    link = config.data / name
    link.parent.mkdir(parents=True, exist_ok=True)
    secret = Path("../secret").resolve()
    if link.exists():
        link.rename(secret)
    else:
        secret.write_text("a key")
    link.symlink_to(secret)
    with pytest.raises(GhostError, match="leads out of"):
        bundle(config, Path("b.zip"))
    assert not Path("b.zip").exists()


def test_a_changed_file_of_a_run_is_not_packed(config):
    (config.data / "runs/cvae_offline/seed42/measured.csv").write_text("condition,metric,value,n\n")
    with pytest.raises(GhostError, match="is not the file that its manifest lists"):
        bundle(config, Path("b.zip"))
