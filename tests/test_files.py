import signal
import subprocess
import sys
import time

import pytest

from ghost.errors import GhostError
from ghost.files import atomic, confined, write_text


def test_atomic_moves_when_the_block_ends_well(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with atomic(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
        assert temporary.suffix == ".txt"
    assert path.read_text() == "whole"
    assert [made.name for made in path.parent.iterdir()] == ["a.txt"]


def test_atomic_keeps_the_old_file_when_the_block_fails(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail():
        with atomic(path) as temporary:
            temporary.write_text("ha")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert [made.name for made in tmp_path.iterdir()] == ["a.txt"]


def test_a_killed_writer_leaves_nothing_half_written(tmp_path):
    """SIGKILL in the middle of a write: the old content is still there, whole."""
    path = tmp_path / "a.txt"
    write_text(path, "old")
    code = (
        "import sys, time; from pathlib import Path; from ghost.files import atomic\n"
        "with atomic(Path(sys.argv[1])) as t:\n"
        "    t.write_text('half'); print('writing', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.05)
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", ["../a", "b/../../a", "/etc/passwd"])
def test_confined_refuses_a_way_out(tmp_path, name):
    with pytest.raises(GhostError, match="leads out"):
        confined(tmp_path, name)


def test_confined_refuses_a_link_that_leads_out(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/link").symlink_to("/etc")
    with pytest.raises(GhostError, match="leads out"):
        confined(tmp_path / "inside", "link/passwd")
    assert confined(tmp_path, "inside") == tmp_path / "inside"


def test_confined_refuses_a_name_that_no_file_can_have(tmp_path):
    (tmp_path / "itself").symlink_to("itself")
    for name in ("a\0b", "itself/x"):
        with pytest.raises(GhostError, match="leads out"):
            confined(tmp_path, name)
