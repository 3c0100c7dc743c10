import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from ghost.errors import GhostError
from ghost.files import HOST, atomic, confined, read_lines, read_yaml, scratch, tidy, write_text


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


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: !!python/object/apply:os.system [echo]",
        "a: [1, 2",
        "\ta: 1",
        "a: !!int ''",
        "a: !!timestamp x",
        "a: !!bool x",
        "a: 2001-99-99",
        f"a: {'9' * 5000}",
        "[" * 100_000,
        "a: *unknown",
        "? [a]\n: b",
        "a: \0",
        "- " * 100_000,
        "a: &a [x, x]\n" + "\n".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in pairwise("abcdefg")),
    ],
)
def test_yaml_that_says_more_than_values_is_one_line(tmp_path, text):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(GhostError, match=r"a\.yaml (is not YAML|has more than|has values nested)"):
        read_yaml(tmp_path / "a.yaml")


def test_yaml_may_share_values(tmp_path):
    (tmp_path / "a.yaml").write_text("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2, x: 3}\n")
    assert read_yaml(tmp_path / "a.yaml") == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 3, "y": 2}}


def test_lines_end_at_line_feeds_alone(tmp_path):
    (tmp_path / "a.jsonl").write_text("a\u2028b\x0b\x1c\u0085c\n\nd\n", newline="")
    assert read_lines(tmp_path / "a.jsonl") == ["a\u2028b\x0b\x1c\u0085c", "", "d"]
    (tmp_path / "a.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(GhostError, match="is not text"):
        read_lines(tmp_path / "a.jsonl")
