import json

import pytest

from conftest import ROOT, call
from ghost.errors import GhostError
from ghost.runs.records import open_runs
from ghost.steps.simulate import simulate
from ghost.study.builds import load


@pytest.fixture
def row(root):
    return load({"scale": "smoke"}, root).declaration("ghost_mechanism")


def test_a_row_becomes_a_run_per_seed(tmp_path, row):
    row["seeds"] = [3, 4]
    simulate(json.dumps(row), tmp_path / "manifest.json")
    runs = open_runs(tmp_path / "manifest.json")
    assert [run.seed for run in runs] == [3, 4]
    assert runs[0].value("ghost", "dwell_s") > 0
    record = runs[1].record()
    assert record["reduced"] == {"dt": {"here": 0.05, "paper": 0.01}}
    assert "ghost/simulations/ghost_mechanism.py" in record["code"]["files"]
    assert "ghost/experiments.py" not in record["code"]["files"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row["settings"].update(dt=-1.0), "ghost_mechanism: dt must be positive, got -1.0"),
        (lambda row: row["settings"].update(speed=1), "unexpected keyword argument 'speed'"),
        (lambda row: row.pop("seeds"), "--row lacks seeds"),
        (lambda row: row.update(module="os"), "no module 'os' of ours"),
    ],
)
def test_bad_rows_are_one_line(tmp_path, row, change, message):
    change(row)
    with pytest.raises(GhostError) as error:
        simulate(json.dumps(row), tmp_path / "manifest.json")
    assert message in str(error.value)
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("simulate", "--row", "{", "--out", "x"), "--row is not JSON"),
        (
            ("summarize", "--artefact", "fig:switch_speed", "--out", "x", "--manifests", "nope.json"),
            "nope.json: No such",
        ),
        (("summarize", "--artefact", "fig:nope", "--out", "x"), "no figure or table 'fig:nope'"),
        (("plot", "--label", "switch_speed", "--out", "x", "--manifests", "README.md"), "README.md is not JSON"),
    ],
)
def test_steps_end_with_one_line_and_no_traceback(command, message):
    done = call(ROOT, "python", "-m", f"ghost.steps.{command[0]}", *command[1:], check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
