"""What a user sees of an error: one line, an exit code, and nothing that a terminal obeys."""

from __future__ import annotations

import pytest

from ghost.errors import GhostError, exit_on_error, one_line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (GhostError("a\nb\r\n\tc"), "a b c"),
        (GhostError("line\u2028separator\u0085here"), "line separator here"),
        (GhostError("\x1b[2Jcleared\x07 \u202eright to left"), "\\x1b[2Jcleared\\x07 \\u202eright to left"),
        (GhostError("lone \udc80"), "lone \\udc80"),
        (OSError(28, "No space left on device", "data/x"), "data/x: No space left on device"),
        (MemoryError("Unable to allocate 5 TiB"), "not enough memory: Unable to allocate 5 TiB"),
    ],
)
def test_an_error_is_one_line(capsys, error, said):
    def fail():
        raise error

    with pytest.raises(SystemExit) as stopped:
        exit_on_error(fail)
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"ghost: error: {said}\n"


def test_a_message_has_an_end():
    assert len(one_line("x" * 10**6)) < 5000
