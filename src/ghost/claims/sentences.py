r"""Our own sentences that assert an order or an effect, each bound to a predicate over cells: paper/sentences.yaml.

In the text such a sentence is \holds{<id>}{...}. If the cells do not support it, the PDF marks it, and the
camera-ready build refuses it. \whether{<id>}{...}{...} has the first text where the predicate holds, else the second:
a sentence for whichever way a comparison comes out.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ghost.claims.consistency import described, predicate
from ghost.claims.verdicts import values
from ghost.errors import GhostError
from ghost.files import read_yaml

SENTENCES = Path("paper/sentences.yaml")
USED = re.compile(r"\\holds\{([^{}]*)\}")


def read_sentences(path: Path) -> dict[str, str]:
    """The predicate of each sentence, by id."""
    loaded: dict[str, str] = read_yaml(path, {str: str})
    return loaded


def supported(holds: str, cells: Mapping[str, Mapping[str, Any]]) -> tuple[bool, str]:
    """Whether a predicate holds, with the numbers or with what is missing: a cell, or its value."""
    try:
        bounds = {identity: cell["interval"] for identity, cell in cells.items() if cell.get("interval")}
        answer, used = predicate(holds, values(cells), bounds)
    except GhostError as error:
        return False, str(error)
    return answer, described(used)


def cells_of(holds: str, cells: Iterable[str]) -> set[str]:
    """The cells that a predicate names."""
    return set(re.findall(r"'([^']*)'", holds)).intersection(cells)
