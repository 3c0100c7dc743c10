"""Folders from outside of the project: their content counts, not where they are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from conftest import make_runs
from ghost.data.results import Outcome
from ghost.errors import GhostError
from ghost.runs import outside
from ghost.runs.outside import Place, Source

OLD_NS = 10**18  # in 2001: such a file has settled


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(outside, "SETTLED_NS", -(10**12))  # files of a test are new, and may be kept all the same
    return tmp_path / "cache/ghost/outside"


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    for name, text in {"meta/info.json": "{}", "data/0.parquet": "12345", "a.txt": "a"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def hashed(monkeypatch) -> list[str]:
    """The names of the files that were read."""
    names: list[str] = []
    real = outside.sha256
    monkeypatch.setattr(outside, "sha256", lambda path: (names.append(path.name), real(path))[1])
    return names


def test_the_same_files_elsewhere_are_the_same(data, tmp_path):
    copy = shutil.copytree(data, tmp_path / "elsewhere")
    assert Place(str(copy)).content() == Place(str(data)).content()
    (copy / "more").write_text("")
    assert Place(str(copy)).content() != Place(str(data)).content()


@pytest.mark.parametrize("change", ["content", "name"])
def test_another_content_or_name_is_another_folder(data, change):
    before, file = Place(str(data)).content(), data / "data/0.parquet"
    file.write_text("12346") if change == "content" else file.rename(data / "data/1.parquet")
    assert Place(str(data)).content() != before


def test_only_what_changed_is_read_again(data, hashed):
    before = Place(str(data)).content()
    assert sorted(hashed) == ["0.parquet", "a.txt", "info.json"]
    assert Place(str(data)).content() == before
    assert len(hashed) == 3
    (data / "data/0.parquet").write_text("other")  # as long as before
    assert Place(str(data)).content() != before
    assert hashed[3:] == ["0.parquet"]
    (data / "a.txt").touch()
    Place(str(data)).content()
    assert hashed[4:] == ["a.txt"]


def test_a_change_under_the_old_time_is_seen(data):
    """As `rsync -t` or `cp -p` leave it: the size and the time of modification are as before."""
    file = data / "data/0.parquet"
    os.utime(file, ns=(OLD_NS, OLD_NS))
    before = Place(str(data)).content()
    file.write_text("54321")
    os.utime(file, ns=(OLD_NS, OLD_NS))
    assert Place(str(data)).content() != before


def test_a_file_that_has_just_changed_is_not_kept(data, hashed, monkeypatch):
    monkeypatch.setattr(outside, "SETTLED_NS", 2 * 10**9)
    for _ in range(2):
        Place(str(data)).content()
    assert len(hashed) == 6


def test_a_verification_reads_everything(data, hashed):
    Place(str(data)).content()
    Place(str(data)).content(afresh=True)
    assert len(hashed) == 6


@pytest.mark.parametrize("damage", ["no JSON", "[]", '{"a.txt": {"size": 1}}'])
def test_a_damaged_memory_is_none(data, own_cache, damage):
    before = Place(str(data)).content()
    (memory,) = own_cache.iterdir()
    memory.write_text(damage)
    assert Place(str(data)).content() == before


def test_hidden_files_and_those_that_no_pattern_names_do_not_count(data):
    weights = Place(str(data), ("*.txt", "meta/*.json"))
    everything, some = Place(str(data)).content(), weights.content()
    (data / ".cache").mkdir()
    (data / ".cache/of_the_hub").write_text("1")
    assert Place(str(data)).content() == everything
    (data / "README.md").write_text("new")
    assert weights.content() == some
    (data / "meta/info.json").write_text("[]")
    assert weights.content() != some


def test_links_are_followed_and_none_is_endless(data, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/film.mp4").write_text("1")
    (data / "videos").symlink_to(tmp_path / "disk")
    (data / "again").symlink_to(data)
    before = Place(str(data)).content()
    (tmp_path / "disk/film.mp4").write_text("2")
    assert Place(str(data)).content() != before


WEIGHTS = Source("checkpoint", ("*.safetensors",), "revision", key="groot.checkpoint")
COMMIT = "0123456789" * 4


@pytest.mark.parametrize(
    ("checkpoint", "revision", "message"),
    [
        ("/nope", "", "groot.checkpoint: there is no folder '/nope'"),
        ("nvidia/GR00T", "main", "as a name on the hub it needs groot.revision, a commit .* got 'main'"),
        ("nvidia/GR00T", "", "it needs groot.revision"),
    ],
)
def test_a_missing_folder_or_commit_is_one_line(checkpoint, revision, message):
    with pytest.raises(GhostError, match=message):
        WEIGHTS.check("dit", {"checkpoint": checkpoint, "revision": revision})


def test_a_name_on_the_hub_stays_a_name(data, monkeypatch):
    named = {"checkpoint": "nvidia/GR00T", "revision": COMMIT}
    WEIGHTS.check("dit", named)
    assert WEIGHTS.place(named) is None
    monkeypatch.chdir(data.parent)
    shutil.copytree(data, "nvidia/GR00T")
    assert WEIGHTS.place(named) == Place("nvidia/GR00T", ("*.safetensors",))  # a folder that is there comes first
    assert Source("processor", (), "revision").place({"processor": "", "revision": ""}) is None


def test_a_folder_that_must_be_there_is_never_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GhostError, match=r"^demos: there is no folder 'recordings/cups'"):
        Source("path", key="demos").check("dual_arm", {"path": "recordings/cups"})


def test_a_run_knows_a_folder_by_its_content(data, tmp_path):
    """The same data elsewhere are the same run, which is not done again; other data are another run."""
    done: list[int] = []

    def ids(folder: Path) -> list[str]:
        settings, places = {"path": str(folder)}, {"path": {"folder": str(folder), "files": []}}
        manifest = tmp_path / "runs/tiny/manifest.json"
        runs = make_runs(manifest, lambda seed: done.append(seed) or Outcome([]), settings=settings, places=places)
        record = runs[0].record()
        assert record["settings"] == record["outside"] == {"path": Place(str(folder)).content()}
        assert record["places"] == {"path": str(data)}  # where the data were when the run was made
        return [run.run_id for run in runs]

    first = ids(data)
    assert done == [7, 8]
    assert ids(shutil.copytree(data, tmp_path / "elsewhere")) == first
    assert done == [7, 8]
    (data / "a.txt").write_text("b")
    assert not set(ids(data)) & set(first)
    assert done == [7, 8, 7, 8]
