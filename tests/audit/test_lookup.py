"""From a cell, or a number, to the line of code and the runs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from small_build import OFFLINE, ROOT, SEEDS, cell, mse, small_build, write_cells, write_paper, write_run

from ghost.audit.build import Build
from ghost.audit.crate import crate
from ghost.audit.lookup import as_json, choose, lookup
from ghost.errors import GhostError
from ghost.files import read_json
from ghost.report.appendix import versus
from ghost.report.cells import read_cells
from ghost.steps.summarize import summarize_cell
from ghost.study.declarations import Artefact, Cell

CVAE = "tab:lightweight/CVAE/test_mse"


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_paper()
    return small_build()


def field(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.split()[:1] == [name]).partition(name)[2].strip()


def line_at(place: str) -> str:
    path, number = place.split(":")
    return (ROOT / path).read_text().splitlines()[int(number) - 1]


def change(config, identity: str, **changed) -> None:
    cells = read_cells(config.data / "cells.jsonl")
    write_cells(config, *(each for name, each in cells.items() if name != identity), {**cells[identity], **changed})


def test_a_cell_with_five_runs_fits_on_a_screen_and_says_nothing_twice(config):
    lines = lookup(config, CVAE).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120
    settings = [line for line in lines if line.startswith("    reduced") or line.startswith(" " * 12)]
    doubled = [line for line, count in Counter(line for line in lines if line not in settings).items() if count > 1]
    assert doubled == []


def test_it_names_the_lines_of_code(config):
    text = lookup(config, CVAE)
    name, place = field(text, "estimator").split(", ")
    assert line_at(place).startswith(f"def {name}(")
    place, code = field(text, "computed").split("  in evaluate: ")
    assert place.startswith("src/ghost/evaluations/offline.py:")
    assert code.startswith('"mse": squared_errors(')
    assert code in line_at(place)


def test_it_says_where_the_cell_is_declared(config):
    declared = SimpleNamespace(name="CVAE/test_mse", declared="src/ghost/study/offline.py:271")
    artefact = SimpleNamespace(id="tab:lightweight", cells=[declared])
    config = replace(config, artefacts=[artefact])
    assert field(lookup(config, CVAE), "declared") == declared.declared


def test_a_file_that_changed_since_the_runs_is_named(config):
    assert "has changed since the runs" not in lookup(config, CVAE)
    code = {"sha256": "0" * 64, "files": {"ghost/evaluations/offline.py": {"sha256": "0" * 64}}}
    made = write_run(config, "cvae_offline", 42, "evaluate", OFFLINE, {("all", "mse"): 1.0}, code=code)
    change(config, CVAE, runs=[made])
    assert "src/ghost/evaluations/offline.py has changed since the runs" in lookup(config, CVAE)


def test_its_command_remakes_the_cell(config):
    command = "snakemake data/smoke/cells/tab_lightweight.jsonl --config scale=smoke"
    assert field(lookup(config, CVAE), "remake") == command
    assert field(lookup(small_build("laptop"), CVAE), "remake") == "snakemake data/laptop/cells/tab_lightweight.jsonl"


def test_every_run_has_its_seed_and_the_value_that_the_estimator_used(config):
    text = lookup(config, CVAE)
    for run in Build.open(config).manifests["cvae_offline"]:
        (line,) = re.findall(rf"^  {run.run_id} .*$", text, re.MULTILINE)
        assert line.split()[1:3] == [str(run.seed), repr(mse("cvae_offline", run.seed))]
        assert "node1" not in line


def test_what_differs_stands_with_its_run(config):
    made = write_run(config, "cvae_offline", 42, "evaluate", OFFLINE, {("all", "mse"): 1.0}, host="node2", reduced={})
    runs = read_cells(config.data / "cells.jsonl")[CVAE]["runs"]
    change(config, CVAE, runs=[made, *runs[1:]])
    text = lookup(config, CVAE)
    assert re.search(rf"^  {made} .* machine node2, EPYC, no GPU$", text, re.MULTILINE)
    assert text.count("machine node1, EPYC, no GPU") == len(SEEDS) - 1


def test_the_trainings_below_are_named_with_their_code_and_host(config):
    text, build = lookup(config, CVAE), Build.open(config)
    code = build.records[build.manifests["cvae"][0].run_id]["code"]["sha256"]
    assert f"  cvae: train, code {code[:16]}, on node1" in text
    for run in (*build.manifests["cvae"], *build.manifests["dual_arm_features"], *build.manifests["dual_arm"]):
        assert f"seed {run.seed} {run.run_id}" in text


def test_an_input_run_that_was_made_again_is_named(config):
    old = Build.open(config).manifests["cvae"][0].run_id
    write_run(config, "cvae", 42, "train", "ghost.decoders.cvae", {}, settings={"split": "episode"})
    assert f"cvae/seed42 {old}: no manifest lists this run any more" in lookup(config, CVAE)


def test_a_comparison_names_its_other_side(config):
    text = lookup(config, "tab:lightweight/CVAE/p")
    assert field(text, "of") == "all/mse of cvae_offline"
    assert field(text, "against") == "all/mse of ghost_basin_curriculum_offline"
    assert "5 runs of ghost_basin_curriculum_offline" in text
    for run in Build.open(config).manifests["ghost_basin_curriculum_offline"]:
        assert re.search(rf"^  {run.run_id} +{run.seed} +{mse(run.folder.name, run.seed)!r} ", text, re.MULTILINE)


def test_what_both_sides_share_is_said_once_and_a_lack_is_said(config):
    text = lookup(config, "tab:lightweight/CVAE/p")
    assert text.count("  stand-ins ") == text.count("  machine ") == 1
    measured, reduced = {("all", "mse"): 1.0}, {"tasks": {"here": 1, "paper": 2}}
    ours = write_run(config, "cvae_offline", 42, "evaluate", OFFLINE, measured, reduced=reduced)
    theirs = write_run(config, "ghost_basin_curriculum_offline", 42, "evaluate", OFFLINE, measured, reduced={})
    change(config, "tab:lightweight/CVAE/p", runs=[ours, theirs])
    found = re.findall(r"^  reduced +(.*)$", lookup(config, "tab:lightweight/CVAE/p"), re.MULTILINE)
    assert found == ["tasks 1 (paper: 2)", "none"]


def test_the_other_side_may_be_another_metric_of_the_same_runs(config):
    runs = read_cells(config.data / "cells.jsonl")[CVAE]["runs"]
    other = {"against": "cvae_offline", "against_metric": "cosine", "estimator": "ratio"}
    write_cells(config, cell("tab:lightweight/CVAE/ratio", "0.03", 0.03, runs=runs, **other))
    text = lookup(config, "tab:lightweight/CVAE/ratio")
    assert field(text, "against") == "all/cosine of cvae_offline"
    for run_id, seed in zip(runs, SEEDS, strict=True):
        values = re.findall(rf"^  {run_id} +{seed} +(\S+)", text, re.MULTILINE)
        assert values == [repr(mse("cvae_offline", seed)), repr(0.9 + seed / 1e6)]


def test_the_other_side_goes_from_the_study_to_every_answer(config):
    """A cell that the study declares against another condition: the audit, the appendix and the crate name it."""
    runs = Build.open(config).manifests["cvae_offline"]
    declared = Cell("slower", "cvae_offline", "mse", "all", "ratio", ".1f", "", "cvae_offline", "worst_task", "cosine")
    for run in runs:
        measured = {("all", "mse"): 1.0, ("worst_task", "cosine"): 0.5}
        write_run(config, "cvae_offline", run.seed, "evaluate", OFFLINE, measured, reduced={})
    runs = Build.open(config).manifests["cvae_offline"]
    made = summarize_cell(Artefact("tab", "x", cells=(declared,)).declaration()[0], runs, runs)
    write_cells(config, made)
    text, wanted = lookup(config, "tab:x/slower"), "worst_task/cosine of cvae_offline"
    assert (field(text, "value").split()[0], field(text, "against")) == ("2.0", wanted)
    assert as_json(config, "tab:x/slower")[0]["against_condition"] == "worst_task"
    assert versus(made) == f"against {wanted}"
    entity = next(e for e in crate(Build.open(config), {})["@graph"] if e["@id"] == "#cell/tab:x/slower")
    assert entity["description"].endswith(versus(made))


def test_a_cell_that_follows_from_others_names_them_and_its_line_of_code(config):
    write_cells(config, cell("tab:x/least", "0.02", 0.02, experiment="", metric="a/mse,b/mse", estimator="least_of"))
    text = lookup(config, "tab:x/least")
    assert field(text, "of") == "tab:x/a/mse, tab:x/b/mse"
    assert field(text, "estimator").startswith("least_of, src/ghost/report/over_cells.py:")


def test_trials_without_a_pair_are_counted(config):
    left_out = ["T0/0/10", "T0/0/11", "T8/0/19"]
    write_cells(config, cell("tab:x/gain", "+3 [-1, +7]", 3.0, estimator="rate_difference", n=20, unpaired=left_out))
    said = field(lookup(config, "tab:x/gain"), "n")
    assert said == "20; without 3 trials that only one side met, T0/0/10 to T8/0/19"


def test_the_published_value_comes_from_the_ledger(config):
    found = field(lookup(config, CVAE), "published")
    assert found == "0.0184 ± 0.0001  (verdict: ghost claims tab:lightweight/CVAE/mse)"


def test_full_prints_sources_inputs_and_outputs_of_every_run(config):
    short, full = lookup(config, CVAE), lookup(config, CVAE, full=True)
    assert full.startswith(short)
    record = read_json(config.data / "runs/cvae_offline/seed7/run.json")
    (source,) = record["code"]["files"].items()
    assert f"  source    {source[0]} {source[1]['sha256'][:16]}" in full
    assert f"  input     cvae/seed7 {record['inputs']['cvae/seed7']['sha256'][:16]}" in full
    output = record["outputs"]["measured.csv"]["sha256"][:16]
    assert f"  output    data/smoke/runs/cvae_offline/seed7/measured.csv {output}" in full


@pytest.mark.parametrize(
    ("asked", "identity"),
    [
        ("0.0281 ± 0.0001", CVAE),  # the whole text
        ("0.0281", CVAE),  # its first number
        ("-24.4", "tab:lightweight/CVAE/change"),
        ("−24.4 %", "tab:lightweight/CVAE/change"),  # copied from the PDF
        ("66.0", "tab:libero10/MLP/success"),
        ("68.8", "tab:libero10/MLP/success"),  # the end of its interval
        ("10.1 ± 3.7", "tab:meta_rl/Ghost/latency"),
        ("10.12", "tab:meta_rl/Ghost/latency"),  # the value, rounded to the digits that are asked
        ("3", "fig:diagnostic/c1/minima"),  # not 3.7, which holds a 3
        ("4615", "tab:multi_task/aggregate_params_ratio"),
        ("1.5 × 10−6", "fig:dwell_time/final"),
        ("< 0.001", "tab:lightweight/CVAE/p"),
        ("0.0184", CVAE),  # as the article prints it
    ],
)
def test_a_number_finds_its_cell(config, asked, identity):
    assert [found["id"] for found in choose(Build.open(config), asked)] == [identity]


def test_a_number_of_several_cells_lists_them_and_one_of_none_is_an_error(config):
    change(config, "fig:diagnostic/c1/minima", shown="10.1")
    change(config, "tab:lightweight/CVAE/change", shown="10.1")
    listed = lookup(config, "10.1").splitlines()
    assert [line.split()[:2] for line in listed] == [
        ["fig:diagnostic/c1/minima", "10.1"],
        ["tab:lightweight/CVAE/change", "10.1"],
    ]
    with pytest.raises(GhostError, match="no cell of data/smoke shows 77"):
        lookup(config, "77")


def test_a_prefix_lists_its_cells_and_an_unknown_name_suggests_one(config):
    listed = lookup(config, "tab:lightweight").splitlines()
    assert [line.split()[0] for line in listed] == [CVAE, "tab:lightweight/CVAE/p", "tab:lightweight/CVAE/change"]
    with pytest.raises(GhostError, match=f"did you mean {CVAE}"):
        lookup(config, "tab:lightweight/CVAE/test_msa")


def test_a_cell_whose_run_no_manifest_lists_is_an_error(config):
    change(config, CVAE, runs=["f" * 16])
    with pytest.raises(GhostError, match=f"{CVAE} rests on run ffffffffffffffff, which no manifest lists"):
        lookup(config, CVAE)


def test_json_holds_the_records_down_to_the_demonstrations(config):
    (found,) = as_json(config, "0.0281")
    assert found["id"] == CVAE
    experiments = Counter(record["experiment"] for record in found["records"])
    assert experiments == {"cvae_offline": 5, "cvae": 5, "dual_arm_features": 1, "dual_arm": 1}


def test_it_loads_no_slow_library(config):
    code = (
        "import sys; from ghost.audit.answer import answer; from ghost.audit.affected import Query;"
        "from ghost.study.builds import load; from pathlib import Path;"
        f"config = load({{'scale': 'smoke'}}, Path({str(ROOT)!r}));"
        f"print(answer(config, {CVAE!r}, Query())[0]);"
        "sys.exit(str({'torch', 'pandas', 'scipy', 'jinja2'} & {name.split('.')[0] for name in sys.modules} or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    assert done.stdout.startswith(f"cell       {CVAE}\n")
