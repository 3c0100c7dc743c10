"""Errors that a user can mend: one line that names what is wrong and what would be right, no traceback."""

import difflib
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

LONGEST = 4000  # characters of a message


class GhostError(Exception):
    """Bad input. The message is one line; the command line prints it and exits with 2."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean a, b?` for the nearest known names, or the first few of all when none is near."""
    candidates = sorted(set(known))
    near = difflib.get_close_matches(name, candidates, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {', '.join(near)}?"
    more = ", ..." if len(candidates) > 8 else ""
    return f"; known are {', '.join(candidates[:8])}{more}" if candidates else ""


def exit_on_error(function: Callable[[], Any]) -> None:
    """Run a command line: a `GhostError` ends it with one line on stderr and exit code 2."""
    try:
        code = function()
    except GhostError as error:
        sys.exit(_fail(str(error)))
    except BrokenPipeError:  # `ghost audit tab: | head`: the reader has what it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # a missing, unreadable or unwritable path, a full disk
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(_fail(f"{where}{error.strerror or error}"))
    except MemoryError as error:
        sys.exit(_fail(f"not enough memory: {error}"))
    sys.exit(code if isinstance(code, int) else 0)


def one_line(message: str) -> str:
    """A message without line breaks and control characters: it may quote a file, and a terminal obeys them."""
    text = " ".join(message[:LONGEST].split()) + ("..." if len(message) > LONGEST else "")
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _fail(message: str) -> int:
    print(f"ghost: error: {one_line(message)}", file=sys.stderr)
    return 2
