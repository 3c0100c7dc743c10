"""The documentation as a site: every page is in its navigation, links hold, and it is built without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from conftest import ROOT, copy_project

sys.path.insert(0, str(ROOT / "docs"))
import site_source

GENERATOR = ROOT / ".venv-docs/bin/zensical"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "source"
    site_source.lay_out(folder)
    return folder


def in_navigation(entries) -> set[str]:
    found = set()
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            found |= in_navigation(value) if isinstance(value, list) else {value}
    return found


def test_every_page_is_in_the_navigation(source):
    config = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    pages = {str(path.relative_to(source)) for path in source.rglob("*.md") if "files" not in path.parts}
    assert in_navigation(config["nav"]) == pages


def test_links_lead_to_pages_or_to_copies_of_files(source):
    first = (source / "index.md").read_text()
    assert "](build.md)" in first
    assert "](docs/" not in first
    for page in source.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)", page.read_text()):
            assert (source / target).exists(), (page.name, target)


def test_the_reference_names_every_module(source):
    listed = set(re.findall(r"^::: (\S+)$", "".join(p.read_text() for p in (source / "reference").glob("*.md")), re.M))
    for path in (ROOT / "src/ghost").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        assert (name in listed) == bool(path.stat().st_size and name != "ghost"), name


@pytest.mark.slow
@pytest.mark.skipif(not GENERATOR.exists(), reason="no site generator: make .venv-docs/ready")
def test_the_site_is_built_without_a_warning(tmp_path):
    folder = copy_project(tmp_path / "project")
    source = folder / "site/source"

    def build():
        command = [GENERATOR, "build", "--strict", "--clean"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    site_source.lay_out(source)
    done = build()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "integrated in five steps" in (folder / "site/html/index.html").read_text()
    assert "NT-Xent" in (folder / "site/html/reference/decoders/index.html").read_text()
    assert 'class="mermaid"' in (folder / "site/html/build/index.html").read_text()
    page = source / "speed.md"
    page.write_text(page.read_text() + "\n[nowhere](nowhere.md)\n")
    assert build().returncode != 0
