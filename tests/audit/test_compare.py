"""Two builds: which cells differ, and why; also with a build whose records have fewer or other fields."""

from __future__ import annotations

import shutil

import pytest
from small_build import cell, small_build, write_cells

from ghost.audit.compare import compare, report
from ghost.errors import GhostError
from ghost.files import read_json, write_json
from ghost.report.cells import read_cells

CVAE = "tab:lightweight/CVAE/test_mse"


@pytest.fixture
def builds(tmp_path, monkeypatch):
    """A build and a copy of it whose two cells of cvae_offline show something else."""
    monkeypatch.chdir(tmp_path)
    first = small_build().data
    second = tmp_path / "other/data/smoke"
    shutil.copytree(first, second)
    cells = read_cells(second / "cells.jsonl")
    for identity in (CVAE, "tab:lightweight/CVAE/change"):
        cells[identity]["shown"] = "9"
    (second / "cells.jsonl").unlink()
    config = small_build()
    monkeypatch.chdir(tmp_path / "other")
    write_cells(config, *cells.values())
    monkeypatch.chdir(tmp_path)
    return first, second


def edit(folder, experiment: str, change) -> None:
    for path in (folder / "runs" / experiment).glob("seed*/run.json"):
        record = read_json(path)
        change(record)
        write_json(path, record)


def test_equal_builds_do_not_differ(builds):
    assert compare(builds[0], builds[0]) == []
    assert report([]) == "no cell differs"


def test_cells_that_differ_for_the_same_reason_stand_together(builds):
    edit(builds[1], "cvae_offline", lambda record: record["settings"].update(split="episode"))
    found = compare(*builds)
    assert [(each.cell, each.second) for each in found] == [("tab:lightweight/CVAE/change", "9"), (CVAE, "9")]
    assert report(found).splitlines() == [
        "tab:lightweight/CVAE/change: -24.4 -> 9",
        f"{CVAE}: 0.0281 ± 0.0001 -> 9",
        "    cvae_offline: split sample and episode",
        "2 cells differ",
    ]


def test_inputs_code_seeds_and_circumstances_are_reasons(builds):
    def change(record):
        record["inputs"]["dual_arm_features/seed0"]["sha256"] = "a" * 64
        record["code"]["files"] |= {f"ghost/{letter}.py": {"sha256": "b" * 64} for letter in "bcdefgh"}
        record["host"] = "node2"

    edit(builds[1], "cvae_offline", change)
    shutil.rmtree(builds[1] / "runs/cvae_offline/seed7")
    because = compare(*builds)[0].because
    assert because[0] == "cvae_offline: seeds [7, 42, 123, 999, 2024] and [42, 123, 999, 2024]"
    assert because[1].startswith("cvae_offline: input dual_arm_features/seed0 ")
    assert because[2:] == [
        "host: node1 and node2",
        "code: ghost/b.py, ghost/c.py, ghost/d.py, ghost/e.py, ghost/f.py and 2 more",
    ]


def test_a_build_of_the_old_record_format_can_be_compared(builds):
    def change(record):
        record["seeds"] = {"training": record.pop("seed"), "evaluation": None}
        del record["step"], record["module"], record["lock_sha256"]
        record["inputs"] = {"data/smoke/runs/cvae/manifest.json": {"sha256": "a" * 64, "md5": "a"}}

    edit(builds[0], "cvae_offline", change)
    old = [{**each, "published": "1"} for each in read_cells(builds[0] / "cells.jsonl").values()]
    for each in old:
        del each["against_condition"], each["against_metric"]
    write_cells(small_build(), *old)
    edit(builds[0], "cvae_offline", change)
    assert {each.cell for each in compare(*builds)} == {CVAE, "tab:lightweight/CVAE/change"}
    assert compare(*builds)[0].because == [f"lock_sha256: None and {'1' * 64}"]


def test_cells_of_one_build_alone(builds, tmp_path, monkeypatch):
    config = small_build()
    write_cells(config, cell("tab:lightweight/new", "1", 1.0))
    found = {each.cell: each for each in compare(*builds)}
    assert found["tab:lightweight/new"].because == [f"only in {builds[0]}"]
    assert (found[CVAE].first, found[CVAE].because) == ("", [f"only in {builds[1]}"])
    with pytest.raises(GhostError, match=r"has no cells\.jsonl"):
        compare(builds[0], tmp_path)
