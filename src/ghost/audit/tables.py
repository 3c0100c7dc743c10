r"""A generated table, read back from its LaTeX: what the audit page shows is the table as it is printed.

The tables of the report are plain: cells between &, rows that end with \\, rules, and \ghostlink around each number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LINK = re.compile(r"\\ghostlink\{prov:([^{}]*)\}\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
SYMBOLS = {
    r"\pm": "±", r"\times": "×", r"\Delta": "Δ", r"\theta": "θ", r"\lambda": "λ", r"\approx": "≈", r"\le": "≤",
    r"\ge": "≥", r"\to": "→", r"\textless": "<", r"\textgreater": ">", r"\textbackslash": "\\", r"\textquotedbl": '"',
    r"\textasciicircum": "^", r"\textasciitilde": "~", r"\quad": "\u2003", r"\checkmark": "✓", r"\dagger": "†",
}  # fmt: skip


@dataclass(frozen=True)
class TableCell:
    text: str
    cell: str = ""  # the anchor of its cell, where it is one
    span: int = 1


def read_table(path: Path) -> list[list[TableCell]]:
    """The rows of a generated table, its head first."""
    text = path.read_text(encoding="utf-8")
    body = re.search(r"\\begin\{tabular\}(?:\[.*?\])?\{.*?\}\s*\n(.*)\\end\{tabular\}", text, re.DOTALL)
    if body is None:
        return []
    ruled = re.sub(
        r"\\(?:top|mid|bottom)rule|\\cmidrule(?:\([^)]*\))?\{[^{}]*\}|\\addlinespace(?:\[[^\]]*\])?", "", body[1]
    )
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", ruled) if row.strip()]
    return [[_cell(part) for part in re.split(r"(?<!\\)&", row)] for row in rows]


def _cell(part: str) -> TableCell:
    spanning = re.match(r"\s*\\multicolumn\{(\d+)\}\{[^{}]*\}\{(.*)\}\s*$", part, re.DOTALL)
    span, part = (int(spanning[1]), spanning[2]) if spanning else (1, part)
    link = LINK.search(part)
    return TableCell(plain(LINK.sub(lambda match: match[2], part)), link[1] if link else "", span)


def plain(tex: str) -> str:
    """LaTeX as text, well enough for a table: marks of math and type are dropped, symbols kept."""
    text = re.sub(r"\\(?:eqref|ref)\{([^{}]*)\}", lambda match: f"({match[1].split(':')[-1]})", tex)
    text = re.sub(r"\\(?:allowbreak|,|!|;)(?:\{\})?", "", text)
    text = re.sub(
        r"\\(" + "|".join(name[1:] for name in SYMBOLS) + r")(?![A-Za-z])(?:\{\})?",
        lambda m: SYMBOLS["\\" + m[1]],
        text,
    )
    text = re.sub(r"\\(?:[A-Za-z]+)\s*", "", text)
    text = re.sub(r"\\([#%&_{}$])", lambda match: f"\x00{ord(match[1]):02x}", text)
    text = re.sub(r"[{}$]", "", text).replace("~", "\u00a0").replace("---", "—")
    text = re.sub(r"\x00([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), text)
    return " ".join(text.split(" ")).strip(" \n")
