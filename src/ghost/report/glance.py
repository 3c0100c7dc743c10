"""Results at a glance: a few central cells and a picture of the report, for README.md.

The block stands between two comments in README.md. `ghost glance` writes it from a build, so nobody types a number.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from PIL import Image

from ghost.errors import GhostError
from ghost.files import atomic, write_text
from ghost.report.cells import read_cells
from ghost.report.headlines import chosen
from ghost.study.builds import Config

README = Path("README.md")
PICTURE = Path("docs/images/report.png")
BEGIN, END = "<!-- glance -->\n", "<!-- /glance -->\n"


def glance(config: Config) -> None:
    """Write the block of README.md and, where the build has a PDF, its picture."""
    text = README.read_text(encoding="utf-8")
    write_text(README, replaced(text, block(read_cells(config.data / "cells.jsonl"), config.scale)))
    if config.pdf.exists():
        picture(config.pdf, PICTURE)


def block(cells: Mapping[str, Mapping[str, Any]], build: str) -> str:
    """The block as Markdown: one line per chosen cell, and one sentence on what the numbers rest on."""
    lines = ["| result | of | value | p against Ghost | `ghost audit` |", "|---|---|---|---|---|"]
    used = []
    for title, label, identity, p in chosen():
        for name in filter(None, (identity, p)):
            if name not in cells:
                raise GhostError(f"the build {build} has no cell {name}; run `snakemake all --config scale={build}`")
            used.append(cells[name])
        value = " ".join(filter(None, (cells[identity]["shown"], cells[identity]["unit"])))
        against = cells[p]["shown"] if p else ""
        lines.append(f"| {title} | {label.replace('_', ' ')} | {value} | {against} | `{identity}` |")
    return "\n".join([*lines, "", caveat(used, build), ""])


def caveat(cells: Sequence[Mapping[str, Any]], build: str) -> str:
    """What the cells rest on, in a sentence."""
    stand_ins = sorted({name for cell in cells for name in cell["stand_ins"]})
    reasons = [f"stand-ins ({', '.join(stand_ins)})"] if stand_ins else []
    if any(cell["reduced"] for cell in cells):
        reasons.append("settings that are smaller than the article's")
    rests = f"rest on {' and on '.join(reasons)}, so they" if reasons else "rest on no stand-in and no reduced setting;"
    verdict = "neither confirm nor refute the article" if reasons else "see `ghost claims` for the verdicts"
    return f"These numbers come from the build `{build}`. They {rests} {verdict}."


def replaced(text: str, new: str) -> str:
    """The README with `new` as its block."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise GhostError(f"{README}: no block between {BEGIN.strip()} and {END.strip()}, each on a line of its own")
    return before + begin + new + end + after


def picture(pdf: Path, out: Path, *, pages: int = 2, dpi: int = 60) -> None:
    """The first pages of the report side by side, in few colours, since the picture is kept by git."""
    document = pypdfium2.PdfDocument(pdf)
    images = [
        np.asarray(document[number].render(scale=dpi / 72).to_pil()) for number in range(min(pages, len(document)))
    ]
    with atomic(out) as temporary:
        Image.fromarray(np.hstack(images)).quantize(32).save(temporary, optimize=True)
