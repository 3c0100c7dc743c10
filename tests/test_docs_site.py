"""The documentation as a site: every page is in its navigation, links hold, and it is built without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import ROOT, copy_project

sys.path.insert(0, str(ROOT / "docs"))
sys.path.insert(0, str(ROOT / "tests/audit"))
import chromium
import site_source

GENERATOR = ROOT / ".venv-docs/bin/zensical"
has_generator = pytest.mark.skipif(not GENERATOR.exists(), reason="no site generator: make .venv-docs/ready")
# What ends right of the screen, without a box around it that scrolls. Not innerWidth: a phone zooms out to show all.
CUT_OFF = """[...document.querySelectorAll("article *")].filter((part) => {
    const {width, right} = part.getBoundingClientRect();
    if (!width || right <= screen.width + 1) return false;
    for (let box = part.parentElement; box; box = box.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
    return true;
}).map((part) => part.textContent.slice(0, 80))"""


# Names in tables that a line break tears apart. Blanks and hyphens are where a line may break.
TORN = """[...document.querySelectorAll("article td code")].filter(
    (part) => !/[\\s-]/.test(part.textContent) && part.getClientRects().length > 1
).map((part) => part.textContent)"""


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


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [GENERATOR, "build", "--strict", "--clean"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A copy of the project with its site built."""
    folder = copy_project(tmp_path_factory.mktemp("built") / "project")
    site_source.lay_out(folder / "site/source")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
@has_generator
@pytest.mark.skipif(not chromium.available(), reason="no chromium")
def test_names_in_tables_are_whole_on_a_wide_screen(site):
    with chromium.Browser(1200, 900) as browser:
        browser.send("Network.setBlockedURLs", urls=["http://*", "https://*"])
        for page in sorted((site / "site/html").glob("*/index.html")):
            browser.open(page.as_uri())
            assert browser.evaluate(TORN) == [], page


@pytest.mark.slow
@has_generator
@pytest.mark.skipif(not chromium.available(), reason="no chromium")
def test_no_page_is_wider_than_a_phone(site):
    """Nor does a part of one leave the screen, but for tables and code that can be scrolled. With one page of the
    reference. Formulas and diagrams are not drawn: their libraries come from the network."""
    pages = {path for path in (site / "site/html").rglob("index.html") if "reference" not in path.parts}
    pages.add(site / "site/html/reference/decoders/index.html")
    assert len(pages) > 20
    with chromium.Browser(390, 800) as browser:
        browser.send("Network.setBlockedURLs", urls=["http://*", "https://*"])
        for page in sorted(pages):
            browser.open(page.as_uri())
            assert browser.evaluate("document.documentElement.scrollWidth <= screen.width"), page
            assert browser.evaluate(CUT_OFF) == [], page


@pytest.mark.slow
@has_generator
def test_the_site_is_built_without_a_warning(site):
    assert "integrated in five steps" in (site / "site/html/index.html").read_text()
    assert "NT-Xent" in (site / "site/html/reference/decoders/index.html").read_text()
    assert 'class="mermaid"' in (site / "site/html/build/index.html").read_text()
    page = site / "site/source/speed.md"
    page.write_text(page.read_text() + "\n[nowhere](nowhere.md)\n")
    assert build(site).returncode != 0
