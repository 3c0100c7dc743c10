"""Which assets are used, and what records say of them."""

import pytest

from ghost.errors import GhostError
from ghost.libero import assets
from ghost.libero.primitives import THINGS


@pytest.fixture
def tree(tmp_path):
    """The names of LIBERO's asset tree, without its meshes."""
    for thing in THINGS:
        (tmp_path / thing.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / thing.path).write_text(thing.name)
    return tmp_path


def test_a_path_comes_first_and_records_have_its_hash(tree, monkeypatch):
    monkeypatch.setenv("GHOST_LIBERO_ASSETS", str(tree))
    found = assets.find_assets()
    assert (found.folder, found.stand_ins) == (tree.resolve(), [])
    before = found.facts["libero_assets"]
    (tree / THINGS[0].path).write_text("another mesh")
    assets.tree_hash.cache_clear()
    assert len(before) == 64
    assert assets.find_assets().facts["libero_assets"] != before


def test_a_path_that_lacks_a_thing_is_one_line(tree, monkeypatch):
    (tree / THINGS[3].path).unlink()
    monkeypatch.setenv("GHOST_LIBERO_ASSETS", str(tree))
    with pytest.raises(GhostError, match=f"has no {THINGS[3].path}; it must hold LIBERO's asset tree"):
        assets.find_assets()


def test_then_what_is_installed_then_the_primitives(tree, tmp_path, monkeypatch):
    monkeypatch.delenv("GHOST_LIBERO_ASSETS", raising=False)
    monkeypatch.setattr(assets, "package_folder", lambda: tmp_path / "package")
    found = assets.find_assets()
    assert (found.stand_ins, found.facts) == (["LIBERO assets"], {"libero_assets": "primitives"})
    (tmp_path / "package/assets").mkdir(parents=True)
    assert assets.find_assets() == assets.Assets(tmp_path / "package/assets", primitive=False)
