import pytest

from conftest import ROOT
from ghost.errors import GhostError
from ghost.steps.notebook import notebook
from trained import train_tiny

pytestmark = pytest.mark.slow
SOURCE = ROOT / "workflow/notebooks/ghost_walkthrough.py"


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # the kernel imports this copy
    monkeypatch.setenv("GHOST_FEATURES", "")  # and leaves no paths behind
    monkeypatch.setenv("GHOST_TRAINED", "")


def test_the_walkthrough_runs_and_repeats_byte_for_byte(tmp_path):
    made = train_tiny(tmp_path)
    for name in ("a", "b"):
        notebook(SOURCE, made["features"], made["ghost"], tmp_path / f"{name}.html")
    page = (tmp_path / "a.html").read_text()
    assert page == (tmp_path / "b.html").read_text()
    assert page.count("<img ") == 5
    assert "times the own error" in page
    assert "end at a higher potential than they began at" in page
    assert str(tmp_path) not in page
    assert "Traceback" not in page


def test_a_cell_that_fails_is_one_line(tmp_path):
    source = tmp_path / "broken.py"
    source.write_text("# %%\nraise RuntimeError('no such luck')\n")
    with pytest.raises(GhostError) as error:
        notebook(source, tmp_path, tmp_path, tmp_path / "x.html")
    assert str(error.value) == f"{source}: RuntimeError: no such luck"
    assert not (tmp_path / "x.html").exists()
