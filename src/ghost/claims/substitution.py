r"""Our value in the place of a printed one: the LaTeX for it, and how much of the article's text it replaces.

A place may be two numbers with something between them (`82.5$\pm$2.6`, `5.9--29`) and a sign before them (`$<$`, `$+$`,
`\approx`). All of it is replaced at once. Where the article has siunitx read a number, each number is replaced alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ghost.claims.article import Located
from ghost.claims.ledger import Claim
from ghost.claims.verdicts import SCALE
from ghost.report.escaping import escape, number

_RELATION = r"\\(?:approx|sim|leq?|geq?|lesssim|gtrsim)(?![A-Za-z])|[<>]"
_SPACE = r"(?:\s|~|\\[,!;]|\{\})*"
_SIGNS = re.compile(rf"(?:\$\s*(?:{_RELATION}|[-+])\s*\$|\{{(?:{_RELATION}|[-+])\}}|{_RELATION}|[-+]){_SPACE}$")
_SIGN_TEX = {"≈": r"\approx ", "≤": r"\le ", "≥": r"\ge ", "<": "<", ">": ">"}
_STARS = re.compile(r"\^(?:\*|\{\s*(?:\*|\\ast)+\s*\}|\\ast(?![A-Za-z]))|\$\^\{?\*+\}?\$")
_MAGNITUDE = re.compile(rf"(?:\||\\r?[vV]ert){_SPACE}(?:{_RELATION}|=)?{_SPACE}$")  # |d| = ..., \|g\| \approx ...
_PARTS = re.compile(r" ± | to |/| \[|, |\]")


@dataclass(frozen=True)
class Ours:
    """Our value for a claim: as the cell shows it, in the claim's unit."""

    shown: str
    value: float

    @property
    def parts(self) -> list[str]:
        """The numbers in it: a mean and its deviation, the ends of a range."""
        return [part for part in _PARTS.split(re.sub(r"^[≈<>≤≥] ?", "", self.shown)) if part]

    @property
    def magnitude(self) -> "Ours":
        return Ours(re.sub(r"^([≈<>≤≥]? ?)[-+−]", r"\1", self.shown), abs(self.value))


def our_value(claim: Claim, cell: Mapping[str, Any] | None) -> Ours | str:
    """Our value, or the reason why there is none."""
    if cell is None:
        return "the build has no such cell" if claim.cell else "the ledger names no cell for it"
    if cell["value"] is None:
        return f"the cell is {cell['shown']}"
    units = {claim.unit, cell["unit"]}
    if len(units) == 1 or units <= {"%", "pp"}:
        return Ours(cell["shown"], cell["value"])
    if units <= set(SCALE):
        value = cell["value"] * SCALE[cell["unit"]] / SCALE[claim.unit]
        digits = len(claim.printed.split(" ")[-1].partition(".")[2])
        return Ours(f"{value:,.{digits}f}", value)
    if "" in units:  # steps, times: a word of the sentence
        return Ours(cell["shown"], cell["value"])
    return f"it is printed in {claim.unit}, our cell is in {cell['unit']}"


def in_latex(ours: Ours, printed: str, *, bold: bool = False, stars: str = "", joint: str = "") -> str:
    """Our value in LaTeX, for text and mathematics alike. A plus sign stays where the article prints one."""
    sign, shown = re.fullmatch(r"([≈<>≤≥]?) ?(.*)", ours.shown, re.DOTALL).groups()  # type: ignore[union-attr]
    plus = "+" if printed.startswith("+") and ours.value >= 0 and not shown.startswith("+") else ""
    ends = shown.split(" to ")
    made = [re.sub(r"^\\ensuremath\{(.*)\}$", r"\1", number(end)) for end in ends]
    if any(
        made_one == escape(end) and not re.fullmatch(r"[\d.,+-]+", end)
        for made_one, end in zip(made, ends, strict=True)
    ):
        made, sign, plus = [rf"\mbox{{{escape(shown)}}}"], sign, ""
    body = _SIGN_TEX.get(sign, joint) + plus + r"\mbox{--}".join(made) + (f"^{{{stars}}}" if stars else "")
    return rf"\ensuremath{{\mathbf{{{body}}}}}" if bold else rf"\ensuremath{{{body}}}"


def is_magnitude(text: str, start: int) -> bool:
    """Whether a number at this place of the article is a magnitude or a norm, and so has no sign."""
    return bool(_MAGNITUDE.search(text, max(0, start - 40), start))


def stars_after(text: str, end: int) -> int:
    """The end of the stars of significance that stand behind a number; `end` itself if there are none."""
    found = _STARS.match(text, end)
    return found.end() if found else end


def stars_of(claim: Claim, ours: Ours) -> str:
    """The stars that our p value has, by the usual convention."""
    if claim.judge != "significance":
        return ""
    return "*" * sum(ours.value < bound for bound in (0.05, 0.01, 0.001))


def replaced_span(text: str, found: list[Located], printed: str) -> tuple[int, int, str] | None:
    r"""What one text of ours replaces: the numbers of a place, what is between them and the sign before them.

    The third part is what our text begins with: p \approx 0.04 needs an equals sign, a bare \approx 0.04 does not. None
    if braces or mathematics would be torn apart.
    """
    start, end = found[0].start, found[-1].end
    sign = _SIGNS.search(text, max(0, start - 40), start) if printed[0] in "+-−≈<>≤≥" else None
    between = text[start:end]
    if any(each.file != found[0].file for each in found) or between.count("$") % 2 or not _balanced(between):
        return None
    if sign is None:
        return start, end, ""
    before = text[: sign.start()]
    operand = before if sign[0].startswith(("$", "{")) else re.sub(rf"{_SPACE}$", "", before)
    relates = not re.match(r"[${]?\s*[-+]", sign[0]) and re.search(r"[A-Za-z0-9|)}'\]]$", operand)
    return sign.start(), end, "=" if relates else ""


def _balanced(text: str) -> bool:
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0
