r"""Our own sentences that assert an order or an effect, each bound to a predicate over cells: paper/sentences.yaml.

In the text such a sentence is \holds{<id>}{...}. If the cells do not support it, the PDF marks it, and the
camera-ready build refuses it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ghost.claims.consistency import described, predicate
from ghost.claims.verdicts import values
from ghost.errors import GhostError

SENTENCES = Path("paper/sentences.yaml")
USED = re.compile(r"\\holds\{([^{}]*)\}")


@dataclass(frozen=True)
class Sentence:
    id: str
    holds: str  # an expression: see ghost.claims.consistency.predicate


@dataclass(frozen=True)
class Support:
    """Whether the cells support a sentence, with the numbers or with what is missing."""

    holds: bool
    because: str


def read_sentences(path: Path) -> list[Sentence]:
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(loaded, dict) or not all(isinstance(text, str) for text in loaded.values()):
        raise GhostError(f"{path}: expected `id: predicate` on every line")
    return [Sentence(identity, text) for identity, text in loaded.items()]


def supported(sentence: Sentence, cells: Mapping[str, Mapping[str, Any]]) -> Support:
    """Whether the cells support a sentence. They do not if a cell is missing or has no value."""
    try:
        holds, used = predicate(sentence.holds, values(cells))
    except GhostError as error:
        return Support(False, str(error))
    return Support(holds, described(used))


def cells_of(sentence: Sentence, cells: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The cells that its predicate names."""
    named = re.findall(r"'([^']*)'", sentence.holds)
    return [identity for identity in cells if identity in named]
