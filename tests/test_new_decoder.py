"""A new decoder is one file and one row: the guide's own, added to a finished build, is trained, tested and printed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pypdf
import pytest

from conftest import ROOT, SMOKE, call

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grown(project, tmp_path_factory) -> Path:
    """A copy of the smoke build with the decoder of docs/add-a-decoder.md, built again."""
    folder = tmp_path_factory.mktemp("grown") / "project"
    shutil.copytree(project, folder, symlinks=True)
    guide = (ROOT / "docs/add-a-decoder.md").read_text()
    file, row = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (folder / "src/ghost/decoders/lstm.py").write_text(file)
    study = folder / "src/ghost/study/offline.py"
    text = study.read_text()
    (first,) = re.findall(r"^COMPARED = \([^\n]*\n", text, re.MULTILINE)
    study.write_text(text.replace(first, first + row))
    done = call(folder, "snakemake", "all", *SMOKE)
    trained = re.findall(r"(\d+) of (\d+) jobs done", done.stderr)
    assert trained
    assert int(trained[0][1]) < 30  # what was there is not done again
    return folder


@pytest.fixture(scope="module")
def cells(grown) -> dict[str, dict]:
    lines = (grown / "data/smoke/cells.jsonl").read_text().splitlines()
    return {cell["id"]: cell for cell in map(json.loads, lines)}


def test_it_is_trained_tested_and_compared(grown, cells):
    mse = cells["tab:lightweight/LSTM/test_mse"]
    assert (mse["experiment"], mse["n"]) == ("lstm_offline", 2)
    assert float(mse["value"]) > 0
    assert cells["tab:lightweight/LSTM/p"]["against"] == "ghost_basin_curriculum_offline"
    for name in ("params", "paper_params", "latency_ms", "p", "holm_p", "d"):
        assert cells[f"tab:lightweight/LSTM/{name}"]["value"] is not None
    results = (grown / "data/smoke/results.csv").read_text()
    assert re.search(r"^lstm_offline,42,all,mse,", results, re.MULTILINE)


def test_it_belongs_to_the_family_of_holms_correction(cells):
    family = [cell for name, cell in cells.items() if re.fullmatch(r"tab:lightweight/\w+/holm_p", name)]
    assert len(family) == 6
    p = {name: cells[f"tab:lightweight/{name}/p"]["value"] for name in ("CVAE", "LSTM", "MLP")}
    assert all(cells[f"tab:lightweight/{name}/holm_p"]["value"] >= p[name] for name in p)


def test_it_is_printed(grown, cells):
    text = "".join(page.extract_text() for page in pypdf.PdfReader(grown / "data/smoke/paper/ghost.pdf").pages)
    shown = cells["tab:lightweight/LSTM/test_mse"]["shown"]
    (line,) = [line for line in text.splitlines() if line.startswith("LSTM ")]
    assert shown.replace(" ", "") in line.replace(" ", "").replace("·", "×")
    page = (grown / "data/smoke/audit.html").read_text()
    assert '"text":"LSTM"' in page
    assert "tab:lightweight/LSTM/test_mse" in page


def test_its_audit_names_its_file(grown):
    said = call(grown, "ghost", "audit", "tab:lightweight/LSTM/test_mse", "--scale", "smoke", "--full").stdout
    assert "ghost/decoders/lstm.py" in said
    assert "lstm" in call(grown, "ghost", "list", "decoders").stdout
    done = call(grown, "ghost", "audit", "--verify", "--scale", "smoke")
    assert "consistent" in done.stdout
