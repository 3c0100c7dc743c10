"""Text and numbers for LaTeX."""

import re

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "±": r"\ensuremath{\pm}",
    "≈": r"\ensuremath{\approx}",
    "≤": r"\ensuremath{\le}",
    "≥": r"\ensuremath{\ge}",
    "×": r"\ensuremath{\times}",
    "→": r"\ensuremath{\to}",
}
INTERVAL = re.compile(r"(\S+) \[(\S+), (\S+)\]")
BOUND = re.compile(r"([<>≤≥≈]) ([-+]?[\d.,]*\d\S*)")
NUMBER = re.compile(r"(?P<mantissa>[-+]?[\d.,]*\d)(?:e(?P<sign>[-+])0*(?P<exponent>\d+))?")


def escape(text: str) -> str:
    """Escape any text: LaTeX finds no command in it. A character that its fonts lack is shown as [U+4E2D]."""
    return "".join(SPECIAL.get(character) or _plain(character) for character in text)


def _plain(character: str) -> str:
    if " " <= character <= "~" or character in "äöüÄÖÜßéèêëàâçñøåÅØæÆ":
        return character
    return " " if character.isspace() else rf"[U+{ord(character):04X}]"


def number(shown: str) -> str:
    """A shown number, or a range, in math mode with minus signs, ± and powers of ten; anything else is escaped as text.

    A number and its interval stay on one line: a link that goes over a page has its box in the wrong place.
    """
    ends = shown.split(" to ")
    if len(ends) == 2 and all(map(NUMBER.fullmatch, ends)):
        return " to ".join(map(number, ends))
    interval = INTERVAL.fullmatch(shown)
    parts = interval.groups() if interval else shown.split(" ± ")
    if bound := BOUND.fullmatch(shown):
        return f"{escape(bound[1])}~{number(bound[2])}"
    if not all(map(NUMBER.fullmatch, parts)):
        return escape(shown)
    made = [NUMBER.sub(_math, part) for part in parts]
    joined = r"{}\ [{}, {}]".format(*made) if interval else r" \pm ".join(made)
    return rf"\ensuremath{{{joined}}}"


def _math(match: re.Match[str]) -> str:
    mantissa = match["mantissa"].replace(",", "{,}")
    if match["exponent"] is None:
        return mantissa
    return rf"{mantissa} \times 10^{{{match['sign'].replace('+', '')}{match['exponent']}}}"
