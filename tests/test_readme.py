"""What the README says is there."""

import importlib
import re

from ghost.study import ARTEFACTS, EXPERIMENTS


def test_its_make_targets_exist(root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    asked = set(re.findall(r"\bmake ([a-z-]+)", (root / "README.md").read_text()))
    assert {"paper", "test"} <= asked <= targets


def test_its_picture_shows_every_rule(root):
    picture = re.search(r"```mermaid\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    rules = {
        name
        for path in (root / "workflow/rules").glob("*.smk")
        for name in re.findall(r"^rule (\w+):", path.read_text(), re.M)
    }
    rules |= {row.step for row in EXPERIMENTS}
    assert picture is not None
    for rule in rules:
        assert re.search(rf'\b{rule}\["{rule}<br>', picture[1]), rule
        importlib.import_module(f"ghost.steps.{rule}")  # rule = module


def test_its_glossary_names_exist(root):
    rows = re.findall(
        r"^\| .* \| (`.*) \| `(dynamics|simulations|decoders)/(\w+)\.py` \|$", (root / "README.md").read_text(), re.M
    )
    assert len(rows) >= 8
    for names, package, module in rows:
        found = importlib.import_module(f"ghost.{package}.{module}")
        source = (root / f"src/ghost/{package}/{module}.py").read_text()
        for name in re.findall(r"`\.?(\w+)`", names):
            assert hasattr(found, name) or re.search(rf"\b{name}\b", source), name


def test_its_cells_and_stages_exist(root):
    text = (root / "README.md").read_text()
    cells = {f"{artefact.id}/{cell.name}" for artefact in ARTEFACTS for cell in artefact.cells}
    for asked in re.findall(r"ghost audit ((?:fig|tab):\S+)", text):
        assert asked in cells | {artefact.id for artefact in ARTEFACTS}, asked
    for stage in re.findall(r"dvc repro (\w+)", text):
        assert stage in {artefact.stage for artefact in ARTEFACTS if artefact.step}


def test_its_tree_exists(root):
    tree = re.search(r"## The tree\n\n```\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    assert tree is not None
    for line in tree[1].splitlines():
        for name in line.split("  ")[0 if not line.startswith(" ") else 1].split():
            if name.endswith(("/", ".py", "Snakefile")):
                assert (root / name).exists() or (root / "src/ghost" / name).exists(), name
