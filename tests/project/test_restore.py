"""The bytes through DVC: repro, push, and in a clone pull and restore, with Snakemake's checks still alive."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from conftest import call
from ghost.errors import GhostError
from ghost.files import read_json, write_json, write_text
from ghost.project.dvc import find_stage
from ghost.project.snapshots import KEPT, METADATA, record_path, restore, take
from test_workflow import AFTER_CELLS, planned

WHO = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}


def test_records_lie_where_snakemake_keeps_them(tmp_path, monkeypatch):
    from snakemake.persistence.file import FilePersistence

    monkeypatch.chdir(tmp_path)
    theirs = FilePersistence(path=tmp_path / ".snakemake")
    for output in ("figures/a.pdf", "data/" + "long/" * 80 + "manifest.json"):
        assert tmp_path / record_path(output) == Path(theirs._record_path(theirs._metadata_path, output))


def test_restore_without_snapshots_says_where_they_come_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GhostError, match="no snapshots in nowhere; `dvc pull` brings them"):
        restore(Path("nowhere"))


@pytest.fixture
def pulled(root, tmp_path, monkeypatch) -> Path:
    """A snapshot of one stage, with a file that it lists: what `dvc pull` brings."""
    for name in ("config", "workflow/schemas"):
        shutil.copytree(root / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    stage = find_stage("run_switch_speed")
    (target,) = stage.targets
    write_text(Path(target), "{}")
    write_json(record_path(target), dict.fromkeys(KEPT) | RECORD)
    take(stage)
    shutil.rmtree(METADATA)
    return Path(stage.snapshot)


def test_a_snapshot_is_verified_and_its_records_come_back(pulled):
    assert restore(pulled.parent).startswith("1 files verified, 1 of them known to Snakemake again; no snapshot of ")
    target = "data/laptop/runs/switch_speed/manifest.json"
    assert read_json(record_path(target)).items() >= {**RECORD, "incomplete": False}.items()


RECORD = {"rule": "simulate", "input": [], "log": [], "params": [], "record_format_version": 6}
TARGET = "data/laptop/runs/switch_speed/manifest.json"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(files={}), f"has no sha256 of {TARGET}, which it records"),
        (lambda s: s.update(records={}), "does not record what run_switch_speed makes"),
        (lambda s: s["records"].update({"README.md": s["records"][TARGET]}), "does not record what run_switch_speed"),
        (lambda s: s.update(stage="run_dwell_time"), "'run_dwell_time' is not its stage"),
        (lambda s: s.update(stage="../x"), r"'\.\./x' is not its stage"),
        (lambda s: s.update(stage=7), "stage must be text, got 7"),
        (lambda s: s["files"].update({"/etc/hostname": "0" * 64}), "must be the name of a file inside its folder"),
        (lambda s: s["files"].update({"../x": "0" * 64}), "must be the name of a file inside its folder"),
        (lambda s: s["files"].update({"config/laptop.yaml": "0" * 64}), "is no file of run_switch_speed"),
        (lambda s: s["files"].update({TARGET: None}), "must be a sha256, got None"),
        (lambda s: s["files"].update({TARGET: "0" * 64}), "sha256 differs"),
        (lambda s: s["records"].update({TARGET: []}), "must be an object"),
        (lambda s: s["records"][TARGET].update(input=7), "input must be a list, got 7"),
        (lambda s: s["records"][TARGET].pop("params"), "must be an object with params"),
    ],
)
def test_a_snapshot_that_is_not_right_restores_nothing(pulled, change, message):
    snapshot = read_json(pulled)
    change(snapshot)
    write_json(pulled, snapshot)
    with pytest.raises(GhostError, match=message):
        restore(pulled.parent)
    assert not METADATA.exists()


@pytest.mark.parametrize("content", ["", "[]", "7", '{"files": {}}', "\0"])
def test_a_file_that_is_no_snapshot_is_one_line(pulled, content):
    pulled.write_text(content)
    with pytest.raises(GhostError, match=r"is not JSON|must be an object"):
        restore(pulled.parent)


def test_a_link_out_of_the_tree_is_neither_hashed_nor_restored(pulled, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_text("{}")
    Path(TARGET).unlink()
    Path(TARGET).symlink_to(elsewhere)
    for read in (lambda: restore(pulled.parent), lambda: take(find_stage("run_switch_speed"))):
        with pytest.raises(GhostError, match="leads out of"):
            read()


@pytest.fixture(scope="module")
def author(whole_build, tmp_path_factory) -> Path:
    """A run of the whole DAG given to DVC, committed and pushed to a remote that is a folder."""
    folder = tmp_path_factory.mktemp("author") / "project"
    shutil.copytree(whole_build, folder, symlinks=True)
    (folder.parent / "remote").mkdir()
    call(folder, "dvc", "remote", "add", "--default", "shelf", str(folder.parent / "remote"))
    said = call(folder, "ghost", "snapshot").stdout
    assert "fig_switch_speed: 4 files, 4 new or changed: data/laptop/cells/fig_switch_speed.jsonl" in said
    call(folder, "dvc", "commit", "--force")
    call(folder, "git", "add", "-A")
    call(folder, "git", "commit", "-qm", "built", **WHO)
    call(folder, "dvc", "push")
    return folder


@pytest.fixture
def clone(author, tmp_path) -> Path:
    call(author, "git", "clone", "-q", str(author), str(tmp_path / "clone"))
    call(tmp_path / "clone", "dvc", "pull")
    return tmp_path / "clone"


@pytest.mark.cluster
class TestClone:
    def test_a_restored_clone_has_nothing_to_do_and_notices_an_edited_row(self, clone):
        assert planned(clone, ()) != set()  # without the records Snakemake would begin anew
        said = call(clone, "ghost", "restore").stdout
        assert "files verified" in said
        assert "no snapshot of" not in said
        assert planned(clone, ()) == set()
        assert "nothing to be done" in call(clone, "snakemake", "all").stderr
        table = clone / "src/ghost/study/analytic.py"
        table.write_text(table.read_text().replace('"dt": 0.16,', '"dt": 0.15,'))
        assert planned(clone, ()) == {
            "simulate switch_speed",
            "summarize fig_switch_speed",
            "plot switch_speed",
            *AFTER_CELLS,
        }
        code = clone / "src/ghost/report/plots/dwell_time.py"
        code.write_text(code.read_text() + "\nEDITED = 1\n")
        assert "plot dwell_time" in planned(clone, ())

    def test_wrong_and_missing_files_are_named_and_nothing_is_restored(self, clone):
        (clone / "figures/dwell_time.pdf").unlink()
        rows = clone / "data/laptop/runs/switch_speed/seed0/measured.csv"
        content = rows.read_text()
        rows.unlink()  # DVC may have linked it to its cache
        rows.write_text(content.replace("1", "2", 1))
        done = call(clone, "ghost", "restore", check=False)
        assert done.returncode == 2
        assert "figures/dwell_time.pdf is missing" in done.stderr
        assert "measured.csv is not the file of the snapshot" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not (clone / ".snakemake/metadata").exists()

    def test_the_pull_brings_runs_cells_results_and_the_report(self, clone, author):
        for name in ("cells.jsonl", "results.csv", "metrics.json", "audit.html", "runs/switch_speed/seed0/run.json"):
            assert (clone / "data/laptop" / name).read_bytes() == (author / "data/laptop" / name).read_bytes()
        assert (clone / "paper/ghost.pdf").exists()
        shards = sorted((author / "data/laptop/runs/dual_arm_features").rglob("tokens/*.npy"))
        assert max(shard.stat().st_size for shard in shards) > 1_000_000
        for shard in shards:
            assert (clone / shard.relative_to(author)).read_bytes() == shard.read_bytes()

    def test_a_second_repro_does_nothing(self, author):
        assert "Data and pipelines are up to date" in call(author, "dvc", "repro").stdout

    def test_metrics_are_the_measured_cells(self, author):
        shown = json.loads(call(author, "dvc", "metrics", "show", "--json").stdout)
        metrics = next(iter(shown.values()))["data"]["data/laptop/metrics.json"]["data"]
        cells = [json.loads(line) for line in (author / "data/laptop/cells.jsonl").read_text().splitlines()]
        (cell,) = [cell for cell in cells if cell["id"] == "fig:switch_speed/gru_a0.30/steps_to_converge"]
        assert metrics["fig_switch_speed"]["gru_a0.30/steps_to_converge"] == cell["value"]
        assert "setting/dt" not in metrics["fig_switch_speed"]

    def test_plots_are_the_figures(self, author):
        call(author, "dvc", "plots", "show", "--out", "plots")
        assert "switch_speed.png" in (author / "plots/index.html").read_text()
        shutil.rmtree(author / "plots")

    def test_an_experiment_with_another_setting(self, clone):
        call(clone, "ghost", "restore")
        setting = "config/laptop.yaml:experiments.switch_speed.scan_resolution=0.02"
        call(clone, "dvc", "exp", "run", "-S", setting, "run_switch_speed", **WHO)
        assert yaml.safe_load((clone / "config/laptop.yaml").read_text())["experiments"]["switch_speed"] == {
            "scan_resolution": 0.02
        }
        record = json.loads((clone / "data/laptop/runs/switch_speed/seed0/run.json").read_text())
        assert record["settings"]["scan_resolution"] == 0.02
