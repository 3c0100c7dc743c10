"""What README.md and docs/ say is there: files, commands, settings, cells, names, and code that runs."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import shlex
import shutil
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from ghost import cli
from ghost.data.features import Sizes
from ghost.decoders.contract import Batch
from ghost.study import ARTEFACTS, EXPERIMENTS, builds, closed_loop, sources

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXT = {page.relative_to(ROOT).as_posix(): page.read_text() for page in PAGES}
ALL = "\n".join(TEXT.values())
LABELS = {artefact.label for artefact in ARTEFACTS}
# What a guide has its reader write.
EXAMPLES = {
    "config/allowed_signers": "docs/ask.md",
    "config/cups.yaml": "docs/your-data.md",
    "data/bench/jobs.json": "docs/cluster.md",  # `ghost plan --keep` writes it
    "src/ghost/decoders/lstm.py": "docs/add-a-decoder.md",
    "src/ghost/simulations/relaxation.py": "docs/add-an-experiment.md",
    "src/ghost/report/plots/relaxation.py": "docs/add-an-experiment.md",
}
EXAMPLE_NAMES = {"relaxation", "LSTM"}
EXAMPLE_BUILDS = {"cups"}  # of a data set that a guide speaks of
BUILDS = {*sources.names(ROOT), *EXAMPLE_BUILDS}
PATH = re.compile(r"(?<![\w/.])(?:src|config|workflow|paper|docs|tests|data|figures)/[\w./-]*\b/?")


def code(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT[page], re.DOTALL)


def commands() -> list[list[str]]:
    """Every command line of a shell block, as words, without comments."""
    lines = [line for page in TEXT for block in code(page, "bash") for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(part, comments=True) for line in lines for part in re.split(r"&&|; ", line)]


def example(path: str) -> types.ModuleType:
    """A module that a guide has its reader write."""
    opening = {"lstm": '"""LSTM', "relaxation": '"""Relaxation'}[Path(path).stem]
    if "plots" in path:
        opening = '"""fig:relaxation'
    (source,) = [block for block in code(EXAMPLES[path], "python") if block.startswith(opening)]
    module = types.ModuleType(Path(path).stem)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def test_the_readme_is_short_and_links_every_page():
    assert len(TEXT["README.md"].splitlines()) <= 150
    for page in TEXT:
        assert page == "README.md" or f"]({page})" in TEXT["README.md"], page


@pytest.mark.parametrize("page", TEXT)
def test_its_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)(#[^)]*)?\)", TEXT[page]):
        linked = (ROOT / page).parent / target if target else ROOT / page
        assert linked.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", linked.read_text(), re.M)
            assert anchor[1:] in {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}, anchor


@pytest.mark.parametrize("page", TEXT)
def test_its_paths_exist(page):
    for path in PATH.findall(TEXT[page]):
        assert (ROOT / path).exists() or path in EXAMPLES or made(path), path


def made(path: str) -> bool:
    """Whether the pipeline makes this path, from an experiment or a figure that is declared."""
    folder, *rest = Path(path).parts
    if folder == "data" and rest[1:2] == ["runs"]:
        return rest[0] in BUILDS and rest[2] in {e.name for e in EXPERIMENTS} | EXAMPLE_NAMES
    if folder == "figures":
        return Path(path).stem in LABELS | EXAMPLE_NAMES
    return (folder == "data" and rest[0].removesuffix(".dvc") in BUILDS | {"studies"}) or rest[0] in (
        "ghost.pdf",
        "ghost_supplement.pdf",
        "generated",
    )


def test_the_memory_that_it_asks_for_is_enough():
    """By the records that prices come from: of two jobs at a time, the largest of a laptop build and the next."""
    units = json.loads((ROOT / "data/bench/units.json").read_text())
    peaks = sorted(unit["peak_memory_mb"] for unit in units if unit["build"] == "laptop" and not unit["on_gpu"])
    (asked,) = re.findall(r"(\d+) GB of memory", TEXT["README.md"])
    assert sum(peaks[-2:]) < int(asked) * 1000


def test_its_make_targets_exist():
    targets = set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.M))
    asked = set(re.findall(r"\bmake ([a-z.][\w./-]*)", "\n".join(re.findall(r"`[^`]*`|^make .*$", ALL, re.M))))
    assert {"paper", "test", "bench", ".venv-groot/ready"} <= asked <= targets


def test_its_ghost_commands_exist():
    asked = [words for words in commands() if words[:1] == ["ghost"]]
    asked += [shlex.split(line) for line in re.findall(r"`(ghost [^`<]*)`", ALL)]
    assert {"audit", "list", "claims", "plan", "glance"} <= {words[1] for words in asked}
    for words in asked:
        assert words[1] in cli.COMMANDS, words
        parameters = inspect.signature(cli.COMMANDS[words[1]]).parameters
        for option in words[2:]:
            if option.startswith("--"):
                assert option[2:].replace("-", "_") in parameters, words


def test_its_configurations_are_accepted(tmp_path):
    """Those of a lab's own build too, whose file a guide shows."""
    for name in ("config", "workflow/schemas"):
        shutil.copytree(ROOT / name, tmp_path / name)
    own, *others = [block for block in code("docs/build.md", "yaml") if "extends:" in block]
    (tmp_path / "config/mylab.yaml").write_text(own)
    for other in others:
        (tmp_path / "config/rows.yaml").write_text(other)
        assert builds.load({"scale": "rows"}, tmp_path).left_out
    asked = [words[words.index("--config") + 1 :] for words in commands() if "--config" in words]
    assert len(asked) > 5
    for words in asked:
        given = dict(word.split("=", 1) for word in words if "=" in word)
        if given.get("scale") in EXAMPLE_BUILDS:  # tests/test_own_data_builds.py makes such builds
            continue
        assert builds.load({key: yaml.safe_load(value) for key, value in given.items()}, tmp_path).experiments


def test_its_cells_artefacts_and_stages_exist():
    every = {*ARTEFACTS, *closed_loop.artefacts()}  # also where no study is shipped
    cells = {f"{artefact.id}/{cell.name}" for artefact in every for cell in artefact.cells}
    known = cells | {artefact.id for artefact in every}
    asked = re.findall(r"ghost (?:audit|claims|plan) ((?:fig|tab):\S*[\w])", ALL)
    assert len(asked) > 5
    for name in asked:
        assert name in known or EXAMPLE_NAMES & set(re.split("[:/]", name)), name
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    assert set(re.findall(r"dvc repro (\w+)", ALL)) <= stages.keys()


def test_the_picture_shows_every_rule():
    (picture,) = code("docs/build.md", "mermaid")
    rules = {
        name
        for path in (ROOT / "workflow/rules").glob("*.smk")
        for name in re.findall(r"^rule (\w+):", path.read_text(), re.M)
    } | {experiment.step for experiment in EXPERIMENTS}
    boxes = set(re.findall(r'\b(\w+)\["\1<br>', picture))
    # these are there with GR00T, or with a shipped study alone
    assert boxes == rules | {"finetune", "time_head", "read_study"}
    for rule in boxes:
        importlib.import_module(f"ghost.steps.{rule}")


def test_its_modules_exist():
    asked = set(re.findall(r"python -m (ghost\.[\w.]+\w)", ALL))
    assert "ghost.steps.train" in asked
    for name in asked:
        assert name == "ghost.steps" or importlib.util.find_spec(name), name


def test_every_package_stands_in_the_tree():
    packages = {path.parent.name for path in (ROOT / "src/ghost").glob("*/__init__.py")}
    listed = set(re.findall(r"^\| `(\w+)/` \|", TEXT["docs/tree.md"].split("## Packages")[1], re.M))
    assert listed == packages
    (tree,) = re.findall(r"## The tree\n\n```\n(.*?)```", TEXT["README.md"], re.DOTALL)
    assert packages <= set(re.findall(r"\b(\w+)/", tree))


def test_its_symbols_exist():
    table = TEXT["docs/tree.md"].split("## From the article's symbols")[1]
    lines = [line for line in table.splitlines() if line.startswith("| ") and "`" in line]
    assert len(lines) >= 15
    for line in lines:
        names, where = line.rsplit("|", 3)[1:3]
        (path,) = re.findall(r"`([\w/]+\.py)`", where)
        source = (ROOT / "src/ghost" / path).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b{name}\b", source), name


def templates() -> list[str]:
    """Every text of the code, with `...` for what is filled in."""
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "..." for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_the_errors_that_are_explained_are_those_of_the_code():
    known = templates()
    heads = re.findall(r"^### `(.*)`$", TEXT["docs/errors.md"], re.M)
    assert len(heads) > 20
    for head in heads:
        wanted = re.compile(".*".join(re.escape(part) for part in head.split("...")), re.DOTALL)
        assert any(wanted.fullmatch(text) for text in known), head


def test_the_decoder_of_the_guide_keeps_the_contract():
    lstm = example("src/ghost/decoders/lstm.py")
    decoder = lstm.Decoder(lstm.Settings(hidden=8, d_context=4, d_latent=3), Sizes(2, 5, 6, 7, 4))
    batch = Batch(
        tokens=torch.ones(3, 2, 5),
        state=torch.ones(3, 6),
        action=torch.ones(3, 7, 4),
        action_mask=torch.ones(4, dtype=torch.bool),
        task=torch.zeros(3, dtype=torch.int64),
    )
    assert decoder.act(batch).shape == (3, 7, 4)
    terms = decoder.loss_terms(batch, {"bc": 1.0})
    assert list(terms) == ["bc"]
    terms["bc"].backward()
    assert all(parameter.grad is not None for parameter in decoder.parameters())
    assert torch.equal(decoder.act(batch), decoder.act(replace(batch, action=torch.zeros(3, 7, 4))))


def test_the_experiment_of_the_guide_runs():
    relaxation = example("src/ghost/simulations/relaxation.py")
    outcome = relaxation.run(relaxation.Settings(1.0, 0.1, 5.0), seed=0, progress=lambda *_: None)
    (error,) = outcome.measured
    assert 0 < error.value < 0.03

    class Run:
        @staticmethod
        def arrays():
            return outcome.arrays

    figure = example("src/ghost/report/plots/relaxation.py").draw({"relaxation": [Run]})
    assert len(figure.axes[0].lines) == 2
    with pytest.raises(ValueError, match="stable"):
        relaxation.Settings(1.0, 2.0, 5.0)
