import json

import pytest

from conftest import ROOT, call
from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.steps.simulate import simulate
from ghost.study.builds import load


@pytest.fixture
def given(root):
    return load({"scale": "smoke"}, root).declaration("ghost_mechanism")


def test_an_experiment_becomes_a_run_per_seed(tmp_path, given):
    given["seeds"] = [3, 4]
    execute(simulate, json.dumps(given), tmp_path / "manifest.json")
    runs = open_runs(tmp_path / "manifest.json")
    assert [run.seed for run in runs] == [3, 4]
    assert runs[0].value("ghost", "dwell_s") > 0
    record = runs[1].record()
    assert record["reduced"] == {"dt": {"here": 0.05, "paper": 0.01}}
    assert "ghost/simulations/ghost_mechanism.py" in record["code"]["files"]
    assert not [name for name in record["code"]["files"] if name.startswith(("ghost/study", "ghost/runs"))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given["settings"].update(dt=-1.0), "ghost_mechanism: dt must be positive, got -1.0"),
        (lambda given: given["settings"].update(speed=1), "no setting 'speed'"),
        (lambda given: given.pop("seeds"), "--experiment lacks seeds"),
        (lambda given: given.update(module="os"), "'os' is not a module of this project"),
    ],
)
def test_bad_experiments_are_one_line(tmp_path, given, change, message):
    change(given)
    with pytest.raises(GhostError) as error:
        execute(simulate, json.dumps(given), tmp_path / "manifest.json")
    assert message in str(error.value)
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("simulate", "--experiment", "{", "--out", "x"), "--experiment is not JSON"),
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
