import json
import re

import pytest

from ghost.audit.__main__ import audit
from ghost.audit.lookup import display, explain_run, lookup
from ghost.config import load
from ghost.errors import GhostError
from ghost.files import read_json, write_json
from ghost.records import open_runs, run_id


def cell(runs, **changes):
    made = {
        "id": "tab:x/loss",
        "experiment": "tiny",
        "against": "",
        "condition": "train",
        "metric": "loss",
        "estimator": "mean",
        "unit": "",
        "published": "0.5",
        "shown": "0.75",
        "value": 0.75,
        "interval": [0.1, 1.4],
        "n": 2,
        "sha256": None,
        "runs": runs,
        "reduced": False,
        "stand_ins": [],
    }
    return {**made, **changes}


def hostile(manifest, text):
    """Put a text into a record, its id made anew as an attacker would."""
    path = manifest.parent / "seed7/run.json"
    record = read_json(path)
    record["host"] = record["settings"]["note"] = text
    record["run_id"] = run_id(record)
    write_json(path, record)
    listing = read_json(manifest)
    listing["runs"][0]["run_id"] = record["run_id"]
    write_json(manifest, listing)


def test_the_page_leads_from_cells_to_runs_and_back_and_runs_nothing(tiny_manifest, tmp_path):
    attack = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
    hostile(tiny_manifest, attack)
    runs = [run.run_id for run in open_runs(tiny_manifest)]
    cells = tmp_path / "cells.jsonl"
    cells.write_text(json.dumps(cell(runs)) + "\n" + json.dumps(cell(runs, id=f"tab:x/{attack}")) + "\n")
    audit(cells, (tiny_manifest,), "smoke", tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    targets = set(re.findall(r' id="([^"]*)"', page))
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links
    assert links <= targets
    assert set(runs) <= links


def test_marks_are_shown_never_hidden():
    said = display(cell([], reduced=True, stand_ins=["backbone"]))
    assert said == "0.75  [reduced scale; stand-in: backbone]"
    assert display(cell([], estimator="series", shown="curve", n=12)) == "curve of 12 points"


def test_a_run_is_explained_down_to_its_bytes(tiny_manifest):
    said = "\n".join(explain_run(open_runs(tiny_manifest)[0]))
    assert "training 7" in said
    assert "source    ghost/simulate.py" in said
    assert "rows.csv" in said


def test_before_the_first_run_the_command_that_makes_it_is_named(root, tmp_path, monkeypatch):
    config = load({"scale": "smoke"}, root)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GhostError, match="`snakemake all` makes it"):
        lookup(config, "fig:method")


def test_a_cell_whose_run_is_gone_is_named(root, tmp_path, monkeypatch, tiny_manifest):
    config = load({"scale": "smoke"}, root)
    folder = tmp_path / "elsewhere"
    (folder / "data/smoke/runs").mkdir(parents=True)
    tiny_manifest.parent.rename(folder / "data/smoke/runs/tiny")
    (folder / "data/smoke/cells.jsonl").write_text(json.dumps(cell(["0123"])) + "\n")
    monkeypatch.chdir(folder)
    with pytest.raises(GhostError, match="rests on run 0123, which"):
        lookup(config, "tab:x/loss")
    assert lookup(config, "tab:x") == "tab:x/loss  0.75"
    assert "fig:method" not in lookup(config, "tab:")
    assert "tab:libero10  not built" in lookup(config, "tab:")
