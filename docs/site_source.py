"""Lay out the source of the documentation site: `python docs/site_source.py site/source`; `make docs` then builds it.

The pages are those of docs/. README.md becomes the first page. Links to files of the repository lead to copies of them.
The reference has a page per package, from the docstrings.
"""

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = {  # of the repository -> of the site, beside docs/*.md
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "data/README.md": "data.md",
    "config/README.md": "config.md",
}
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


def lay_out(to: Path) -> None:
    """Write the pages, the files that they link to, and the reference below `to`, which is emptied first."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    places = {ROOT / source: place for source, place in PAGES.items() if (ROOT / source).exists()}
    places |= {page: page.name for page in (ROOT / "docs").glob("*.md")}
    for page, place in places.items():
        (to / place).write_text(moved(page, places, to), encoding="utf-8")
    shutil.copy(ROOT / "docs/site.css", to)
    packages = sorted(folder.parent for folder in (ROOT / "src/ghost").glob("*/__init__.py"))
    (to / "reference").mkdir()
    for package in (ROOT / "src/ghost", *packages):
        (to / "reference" / f"{package.name}.md").write_text(reference(package), encoding="utf-8")


def moved(page: Path, places: dict[Path, str], to: Path) -> str:
    """The text of a page with links that hold in the site."""

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / match[1]))
        place = places.get(target)
        if place is None:
            place = f"files/{target.relative_to(ROOT)}"
            (to / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, to / place)
        return f"]({place}{match[2] or ''})"

    return LINK.sub(link, page.read_text(encoding="utf-8"))


def reference(package: Path) -> str:
    """A page on the modules of a package, which mkdocstrings fills from their docstrings."""
    if package.name == "ghost":
        head, modules = "# ghost", sorted(path for path in package.glob("*.py") if path.stem != "__init__")
    else:
        head, modules = f"# ghost.{package.name}", sorted(package.rglob("*.py"), key=lambda path: path.parts)
    written = [path for path in modules if path.stat().st_size]  # most packages say nothing of their own
    names = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in written]
    return "\n\n".join([head, *(f"::: {name.removesuffix('.__init__')}" for name in names)]) + "\n"


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
