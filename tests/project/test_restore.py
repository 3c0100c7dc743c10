"""The bytes through DVC: repro, keep, push, and in a clone pull and restore, with Snakemake's checks still alive."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import call
from ghost.errors import GhostError
from ghost.files import read_json, write_json, write_text
from ghost.project.dvc import parts
from ghost.project.snapshots import KEPT, METADATA, record_path, restore, snapshot_path, take
from ghost.study import ARTEFACTS
from ghost.study.builds import Config, load
from test_workflow import AFTER_CELLS, planned

WHO = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}


def test_records_lie_where_snakemake_keeps_them(tmp_path, monkeypatch):
    from snakemake.persistence.file import FilePersistence

    monkeypatch.chdir(tmp_path)
    theirs = FilePersistence(path=tmp_path / ".snakemake")
    for output in ("figures/a.pdf", "data/" + "long/" * 80 + "manifest.json"):
        assert tmp_path / record_path(output) == Path(theirs._record_path(theirs._metadata_path, output))


@pytest.fixture
def config(root, tmp_path, monkeypatch) -> Config:
    """A folder with the configurations and a lab's own build."""
    for name in ("config", "workflow/schemas"):
        shutil.copytree(root / name, tmp_path / name)
    write_text(tmp_path / "config/mylab.yaml", "extends: smoke\n")
    monkeypatch.chdir(tmp_path)
    return load({"scale": "mylab"})


def test_restore_without_snapshots_says_where_they_come_from(config):
    with pytest.raises(GhostError, match="no snapshots in data/mylab/snapshots; `dvc pull` brings them"):
        restore(config)


@pytest.fixture
def pulled(config) -> Path:
    """A snapshot of one part, with a file that it lists: what `dvc pull` brings."""
    part = parts(config)["run_switch_speed"]
    write_text(Path(TARGET), "{}")
    write_json(record_path(TARGET), dict.fromkeys(KEPT) | RECORD)
    assert part.targets == (TARGET,)
    assert take(part, config) == 1
    shutil.rmtree(METADATA)
    return snapshot_path(part, config)


def test_a_snapshot_is_verified_and_its_records_come_back(pulled, config):
    said = restore(config)
    assert said.startswith("1 files verified, 1 of them known to Snakemake again; ")
    assert said.endswith(" parts of the build mylab are not here")
    assert read_json(record_path(TARGET)).items() >= {**RECORD, "incomplete": False}.items()


def test_a_part_that_was_not_pulled_is_left_out(pulled, config):
    shutil.rmtree(Path(TARGET).parent)
    assert restore(config).startswith("0 files verified, 0 of them known to Snakemake again")
    assert not METADATA.exists()


def test_a_manifest_alone_is_known_and_runs_in_pieces_are_refused(pulled, config):
    """A figure's runs rest on runs that were not pulled; of those Snakemake needs the manifest."""
    part, extra = parts(config)["run_switch_speed"], [Path(TARGET).parent / "seed0" / name for name in ("a", "b")]
    for path in extra:
        write_text(path, path.name)
    write_json(record_path(TARGET), dict.fromkeys(KEPT) | RECORD)
    assert take(part, config) == 3
    shutil.rmtree(METADATA)
    extra[0].unlink()
    with pytest.raises(GhostError, match="nothing restored: data/mylab/runs/switch_speed/seed0/a is missing"):
        restore(config)
    extra[1].unlink()
    assert restore(config).startswith("1 files verified, 1 of them known to Snakemake again; ")
    assert record_path(TARGET).exists()


def test_a_file_without_a_record_is_not_kept(pulled, config):
    with pytest.raises(GhostError, match=f"Snakemake has no record of {TARGET}; run `snakemake {TARGET}` first"):
        take(parts(config)["run_switch_speed"], config)


RECORD = {"rule": "simulate", "input": [], "log": [], "params": [], "record_format_version": 6}
TARGET = "data/mylab/runs/switch_speed/manifest.json"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(files={}), f"has no sha256 of {TARGET}, which it records"),
        (lambda s: s.update(records={}), "does not record what run_switch_speed makes"),
        (lambda s: s["records"].update({"README.md": s["records"][TARGET]}), "does not record what run_switch_speed"),
        (lambda s: s.update(part="run_dwell_time"), "'run_dwell_time' is not its part"),
        (lambda s: s.update(part="../x"), r"'\.\./x' is not its part"),
        (lambda s: s.update(part=7), "part must be text, got 7"),
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
def test_a_snapshot_that_is_not_right_restores_nothing(pulled, config, change, message):
    snapshot = read_json(pulled)
    change(snapshot)
    write_json(pulled, snapshot)
    with pytest.raises(GhostError, match=message):
        restore(config)
    assert not METADATA.exists()


@pytest.mark.parametrize("content", ["", "[]", "7", '{"files": {}}', "\0"])
def test_a_file_that_is_no_snapshot_is_one_line(pulled, config, content):
    pulled.write_text(content)
    with pytest.raises(GhostError, match=r"is not JSON|must be an object"):
        restore(config)


def test_a_link_out_of_the_tree_is_neither_hashed_nor_restored(pulled, config, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_text("{}")
    Path(TARGET).unlink()
    Path(TARGET).symlink_to(elsewhere)
    for read in (lambda: restore(config), lambda: take(parts(config)["run_switch_speed"], config)):
        with pytest.raises(GhostError, match="leads out of"):
            read()


MYLAB = ("--config", "scale=mylab")
OF_MYLAB = ("data/mylab/figures/switch_speed.pdf", "data/mylab/paper/generated/tab_lightweight.tex")


@pytest.fixture(scope="module")
def author(whole_build, tmp_path_factory) -> tuple[Path, str]:
    """Two builds given to DVC, committed and pushed to a remote that is a folder; and what `dvc repro` said.

    The whole DAG at laptop scale, and a figure and a table of a lab's own build, which finds finished runs.
    """
    folder = tmp_path_factory.mktemp("author") / "project"
    shutil.copytree(whole_build, folder, symlinks=True)
    (folder.parent / "remote").mkdir()
    call(folder, "dvc", "remote", "add", "--default", "shelf", str(folder.parent / "remote"))
    said = call(folder, "dvc", "repro")
    (folder / "config/mylab.yaml").write_text("extends: laptop\n")
    runs = folder / "data/laptop/runs"
    shutil.copytree(runs, folder / "data/mylab/runs", ignore=shutil.ignore_patterns("manifest.json"))
    call(folder, "snakemake", *OF_MYLAB, *MYLAB)
    assert "kept in data/mylab.dvc" in call(folder, "ghost", "keep", "--scale", "mylab").stdout
    call(folder, "git", "add", "-A")
    call(folder, "git", "commit", "-qm", "built", **WHO)
    call(folder, "dvc", "push")
    return folder, said.stdout + said.stderr


@pytest.fixture
def fresh(author, tmp_path) -> Path:
    call(author[0], "git", "clone", "-q", str(author[0]), str(tmp_path / "clone"))
    return tmp_path / "clone"


@pytest.fixture(scope="module")
def clone(author, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reader") / "clone"
    call(author[0], "git", "clone", "-q", str(author[0]), str(folder))
    call(folder, "dvc", "pull")
    return folder


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.cluster
class TestClone:
    def test_a_whole_repro_is_one_snakemake_and_a_second_one_none(self, author):
        folder, said = author
        assert said.count("Using workflow specific profile") == 1
        assert said.count("Snakemake has made it already") == len([a for a in ARTEFACTS if a.step])
        assert "Data and pipelines are up to date" in call(folder, "dvc", "repro").stdout
        assert call(folder, "git", "status", "--short").stdout == ""

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
        call(clone, "dvc", "checkout", "--force")

    def test_a_restored_clone_has_nothing_to_do_at_two_scales_and_notices_edits(self, clone, author):
        assert planned(clone, ()) != set()  # without the records Snakemake would begin anew
        said = call(clone, "ghost", "restore").stdout
        assert "files verified" in said
        assert "not here" not in said
        assert planned(clone, ()) == set()
        assert "nothing to be done" in call(clone, "snakemake", "all").stderr
        assert "Nothing to be done" not in call(clone, "snakemake", "-n", *OF_MYLAB, *MYLAB).stdout
        assert "files verified" in call(clone, "ghost", "restore", "--scale", "mylab").stdout
        assert "Nothing to be done" in call(clone, "snakemake", "-n", *OF_MYLAB, *MYLAB).stdout
        assert "up to date" in call(clone, "dvc", "status").stdout
        for name in ("laptop/runs/dual_arm_features", "laptop/cells.jsonl", "mylab/runs/mlp", "mylab/build.json"):
            shared = author[0] / "data" / name
            for path in shared.rglob("*") if shared.is_dir() else [shared]:
                copy = clone / path.relative_to(author[0])
                assert path.is_dir() or copy.read_bytes() == path.read_bytes(), path
        edit(clone / "src/ghost/study/analytic.py", '"dt": 0.16,', '"dt": 0.15,')
        concerned = {"simulate switch_speed", "summarize fig_switch_speed", "plot switch_speed", *AFTER_CELLS}
        assert planned(clone, ()) == concerned
        call(clone, "dvc", "repro", "recipes")
        status = json.loads(call(clone, "dvc", "status", "--json").stdout)
        assert set(status) == {"fig_switch_speed", "paper"}
        edit(clone / "workflow/rules/runs.smk", "# Runs:", "# All runs:")
        status = json.loads(call(clone, "dvc", "status", "--json").stdout)
        assert status["recipes"] == [{"changed deps": {"workflow/rules": "modified"}}]

    def test_the_runs_of_one_table_are_enough_to_make_it(self, fresh, author):
        for artefact, config, target in (
            ("fig:switch_speed", MYLAB, "data/mylab/figures/switch_speed.png"),
            ("tab:lightweight", (), "paper/generated/tab_lightweight.tex"),
        ):
            scale = "mylab" if config else "laptop"
            assert "parts of the build" in call(fresh, "ghost", "pull", artefact, "--scale", scale).stdout
            call(fresh, "snakemake", target, *config)
            assert (fresh / target).read_bytes() == (author[0] / target).read_bytes()
        assert [path.name for path in (fresh / "logs/mylab").iterdir()] == ["plot"]
        assert {path.name for path in (fresh / "logs/laptop").iterdir()} == {"summarize", "tabulate"}
        assert (fresh / "data/laptop/runs/mlp_offline/seed42/measured.csv").exists()
        assert [path.name for path in (fresh / "data/laptop/runs/mlp").iterdir()] == ["manifest.json"]
        said = call(fresh, "ghost", "keep").stdout  # the other parts stay as they were kept
        assert "parts are not here" in said
        call(fresh, "dvc", "pull")
        assert (fresh / "data/laptop/runs/mlp/seed42/model.safetensors").exists()
        assert "not here" not in call(fresh, "ghost", "restore").stdout

    def test_metrics_are_the_headlines_on_one_screen(self, author):
        shown = call(author[0], "dvc", "metrics", "show").stdout.splitlines()
        assert len(shown) < 40
        assert max(map(len, shown)) <= 120
        cells = [json.loads(line) for line in (author[0] / "data/laptop/cells.jsonl").read_text().splitlines()]
        (cell,) = [cell for cell in cells if cell["id"] == "tab:lightweight/CVAE/test_mse"]
        (line,) = [line for line in shown if "/CVAE.json" in line]
        assert f"{cell['value']:.5g}" in line

    def test_plots_are_the_figures_and_leave_no_untracked_folder(self, author):
        call(author[0], "dvc", "plots", "show")
        assert "switch_speed.png" in (author[0] / "dvc_plots/index.html").read_text()
        assert call(author[0], "git", "status", "--short").stdout == ""

    def test_an_experiment_leaves_the_configuration_and_the_laptop_build_as_they_were(self, author):
        folder, _ = author
        before = {path: path.read_bytes() for path in (folder / "data/laptop").rglob("*") if path.is_file()}
        settings = ("what=fig:switch_speed", "+experiments.switch_speed.scan_resolution=0.02")
        call(folder, "dvc", "exp", "run", *(word for each in settings for word in ("-S", each)), "trial", **WHO)
        assert call(folder, "git", "status", "--short").stdout.split()[1::2] == ["dvc.lock", "params.yaml"]
        assert {path: path.read_bytes() for path in (folder / "data/laptop").rglob("*") if path.is_file()} == before
        record = json.loads((folder / "data/trial/runs/switch_speed/seed0/run.json").read_text())
        assert record["settings"]["scan_resolution"] == 0.02
        assert "steps_to_converge" in call(folder, "dvc", "metrics", "show").stdout
