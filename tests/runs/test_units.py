"""Units of work: done once, found by what determines them, done again when their files are wrong."""

from __future__ import annotations

import json
import os

import pytest

from ghost.errors import GhostError
from ghost.runs.units import Made, Store, address_of, run_all


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "units")


class Work:
    """Writes its own number into a file, and counts how often it is asked."""

    def __init__(self, number=1):
        self.number, self.folders = number, []

    def __call__(self, folder):
        self.folders.append(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.tmp").write_text("unfinished")
        (folder / "number.txt").write_text(str(self.number))
        return Made({"number": self.number}, ("number.txt",))


def test_a_unit_is_done_once_whoever_asks(store):
    work = Work()
    first = store.find_or_do("episode", {"seed": 1, "trial": 2}, work)
    second = Store(store.folder).find_or_do("episode", {"trial": 2, "seed": 1}, work)
    assert len(work.folders) == 1
    assert (first.new, second.new) == (True, False)
    assert first.value == second.value == {"number": 1}
    assert (first.files, first.start, first.wall_s) == (second.files, second.start, second.wall_s)
    assert [path.name for path in first.folder.iterdir()] == ["number.txt"]  # nothing unfinished is left
    store.find_or_do("episode", {"seed": 1, "trial": 3}, work)
    store.find_or_do("attempt", {"seed": 1, "trial": 2}, work)
    assert len(work.folders) == 3


def test_a_unit_without_files_is_one_small_file(store):
    store.find_or_do("episode", {"trial": 1}, lambda folder: Made({"success": True}))
    (path,) = (store.folder / "episode").iterdir()
    assert json.loads(path.read_text())["determined_by"] == {"trial": 1}


@pytest.mark.parametrize("damage", [lambda path: path.write_text("9"), lambda path: path.unlink()])
def test_a_unit_with_a_wrong_file_is_done_again(store, damage):
    work = Work()
    damage(store.find_or_do("shard", {"k": 0}, work).folder / "number.txt")
    assert store.find("shard", {"k": 0}) is None
    again = store.find_or_do("shard", {"k": 0}, work)
    assert again.new
    assert (again.folder / "number.txt").read_text() == "1"


def test_work_that_fails_keeps_its_folder_for_the_next_try(store):
    work = Work()

    def killed(folder):
        work(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.find_or_do("train", {"seed": 0}, killed)
    assert store.find("train", {"seed": 0}) is None
    assert (work.folders[0] / "state.tmp").read_text() == "unfinished"
    store.find_or_do("train", {"seed": 0}, work)
    assert work.folders[0] == work.folders[1]
    assert not (work.folders[0] / "state.tmp").exists()


def test_a_file_outside_of_the_unit_is_refused(store):
    with pytest.raises(GhostError, match="leads out of"):
        store.find_or_do("train", {"seed": 0}, lambda folder: Made({}, ("../../secret",)))


def test_the_address_depends_on_content_and_not_on_order():
    assert address_of({"a": 1, "b": [1, 2]}) == address_of({"b": [1, 2], "a": 1})
    assert address_of({"a": 1}) != address_of({"a": 1.5})
    assert len(address_of({})) == 16


def test_processes_return_results_in_order():
    assert list(run_all(abs, [-3, -2, -1], 2)) == [3, 2, 1]
    assert list(run_all(lambda x: os.getpid(), [1], 2)) == [os.getpid()]  # one item needs no process


@pytest.mark.parametrize("content", ["[]", "{}", '{"files": {"../x": {"sha256": "0"}}}', '{"files": 3}'])
def test_a_listing_that_is_none_is_done_again(store, content):
    work, seed = Work(), {"seed": 1}
    kept = store.find_or_do("episode", seed, work)
    (store.folder / "episode" / f"{kept.address}.json").write_text(content)
    assert store.find_or_do("episode", seed, work).new


def test_a_unit_that_leads_elsewhere_deletes_nothing_there(store, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter").write_text("dear")
    (store.folder / "episode").mkdir(parents=True)
    (store.folder / "episode" / address_of({"seed": 1})).symlink_to(tmp_path / "home")
    with pytest.raises(GhostError, match="leads out of"):
        store.find_or_do("episode", {"seed": 1}, Work())
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["letter"]
