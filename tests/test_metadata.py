"""Licence, version and citation: the files that state them agree."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml


@pytest.fixture
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


@pytest.fixture
def citation(root):
    return yaml.safe_load((root / "CITATION.cff").read_text())


def test_the_citation_file_has_what_is_required(citation):
    assert {"cff-version", "message", "title", "authors", "version", "type", "license"} <= set(citation)
    assert citation["authors"]
    assert all("name" in author or "family-names" in author for author in citation["authors"])


def test_version_and_licence_are_the_same_everywhere(project, citation):
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"] == "Apache-2.0"


def test_the_licences_have_their_texts(root, project):
    assert "Version 2.0, January 2004" in (root / "LICENSE").read_text()
    assert "Attribution 4.0 International Public License" in (root / "paper/LICENSE").read_text()
    assert "Copyright (c) 2023 Lifelong Robot Learning" in (root / "NOTICE").read_text()
    assert all((root / name).exists() for name in project["license-files"])


def test_the_changelog_has_what_is_unreleased_on_top_of_dated_releases(root):
    first, *releases = re.findall(r"^## (.*)$", (root / "CHANGELOG.md").read_text(), re.M)
    assert first == "Unreleased"
    assert releases
    dated = [re.fullmatch(r"(\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)", release) for release in releases]
    assert all(dated), releases
