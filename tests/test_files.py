import os
import signal
import subprocess
import sys
import time

import pytest

from ghost.errors import GhostError
from ghost.files import HOST, atomic, confined, scratch, tidy, write_text


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


def killed_while_writing(path) -> str:
    """The name of the temporary file that it leaves."""
    code = (
        "import os, sys; from pathlib import Path; from ghost.files import atomic\n"
        "with atomic(Path(sys.argv[1])) as t: t.write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -signal.SIGKILL
    (left,) = path.parent.glob(".*")
    return left.name


def test_what_killed_writers_left_goes_and_what_others_write_stays(tmp_path):
    left = killed_while_writing(tmp_path / "a.json")
    assert HOST in left
    old, new = tmp_path / ".b.elsewhere-7.tmp.json", tmp_path / ".c.elsewhere-7.tmp.json"
    for path in (old, new, tmp_path / ".gitignore", tmp_path / "d.tmp"):
        path.write_text("x")
    os.utime(old, (time.time() - 2 * 86400,) * 2)
    with scratch(tmp_path / "fig") as folder, atomic(tmp_path / "e.txt") as temporary:
        temporary.write_text("x")
        (folder / "x").write_text("x")
        tidy(tmp_path)
        kept = {".gitignore", "d.tmp", new.name, temporary.name, folder.name}
        assert {path.name for path in tmp_path.iterdir()} == kept
    tidy(tmp_path / "no such folder")
    assert {path.name for path in tmp_path.iterdir()} == {".gitignore", "d.tmp", new.name, "e.txt"}


def test_a_killed_plot_leaves_a_folder_that_goes(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from ghost.files import scratch\n"
        "with scratch(Path(sys.argv[1])) as f: (f / 'x').write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "fig")], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    tidy(tmp_path)
    assert list(tmp_path.iterdir()) == []


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
