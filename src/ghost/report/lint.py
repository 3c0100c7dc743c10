r"""The lint of the report's text: no typed number, no cell and no stand-in that does not exist.

Left alone are comments, displayed equations, lengths, the arguments of labels, references, citations and file names,
and inside inline math sub- and superscripts, 0 and 1. A mathematical constant elsewhere is \const{2}.
"""

import re
from collections.abc import Collection
from pathlib import Path

from ghost.errors import did_you_mean
from ghost.study import STAND_INS

# Names with a digit that are no measurement.
NAMES = (
    "GR00T N1.5",
    "GR00T",
    "LIBERO-10",
    "T8",  # its task
    "RL$^2$",
    "ML10",
    "ML45",
    "NT-Xent",
    "RDT-1B",
    r"$\pi_0$",
    "IEEEtran",
)
COMMENT = re.compile(r"(?<!\\)%.*")
STAND_IN = re.compile(r"\\standin\{([^{}]*)\}\{([^{}]*)\}")
BLANKED = (
    re.compile(r"\\begin\{(equation|align|gather|multline)(\*?)\}.*?\\end\{\1\2\}", re.DOTALL),
    re.compile(r"\\\[.*?\\\]", re.DOTALL),
    re.compile(
        r"\\(?:label|ref|eqref|autoref|pageref|cite|input|include|includegraphics|bibliography|bibliographystyle|"
        r"hypersetup|hyperref|url|href|usepackage|documentclass|cell|published|const|verdicts|holds|whether|begin|end)\*?"
        r"(?:\[[^\]]*\])?\{[^{}]*\}"
    ),
    STAND_IN,
    re.compile(r"\\ghost(?:figure|table)(?:\[[^\]]*\])?\{[^{}]*\}"),
    re.compile(r"\\(?:vspace|hspace|vskip|hskip|setlength|addtolength)\*?\{[^{}]*\}(?:\{[^{}]*\})?"),
    re.compile(r"\\\\\[[^\]]*\]"),
    re.compile("|".join(map(re.escape, NAMES))),
)
CELL = re.compile(r"\\(cell|published)\{([^{}]*)\}")
INLINE_MATH = re.compile(r"(?<!\\)\$(.+?)(?<!\\)\$", re.DOTALL)
SCRIPT = re.compile(r"[_^](?:\{[^{}]*\}|\\?\w)")
ZERO_OR_ONE = re.compile(r"(?<![\d.,])[01](?![\d.,]*\d)")
NUMBER = re.compile(r"\d[\d.,]*\d|\d")


def lint(folder: Path, cells: Collection[str]) -> list[str]:
    """Complaints about the LaTeX files in `folder`, its sections and the studies that there are, a line each."""
    files = [path for pattern in ("*.tex", "sections/*.tex") for path in sorted(folder.glob(pattern))]
    there = {name.partition("/")[0] for name in cells}
    files += [path for path in sorted(folder.glob("studies/*.tex")) if f"tab:{path.stem}" in there]
    return [complaint for path in files for complaint in lint_text(path, path.read_text(encoding="utf-8"), cells)]


def lint_text(path: Path, text: str, cells: Collection[str]) -> list[str]:
    """Complaints about one file."""
    plain = COMMENT.sub(_blank, text)
    named = [(match.start(), match[2]) for match in CELL.finditer(plain)]
    found = [(at, f"no cell {name}{did_you_mean(name, cells)}") for at, name in named if name not in cells]
    artefacts = {cell.split("/")[0] for cell in cells}
    for match in STAND_IN.finditer(plain):
        for name, known, what in ((match[1], artefacts, "figure or table"), (match[2], STAND_INS, "stand-in")):
            if name not in known:
                found.append((match.start(), f"no {what} {name}{did_you_mean(name, known)}"))
    for pattern in BLANKED:
        plain = pattern.sub(_blank, plain)
    plain = INLINE_MATH.sub(_blank_math, plain)
    for match in NUMBER.finditer(plain):
        found.append((match.start(), f"typed number {match[0]}: make it a \\cell{{}} (or \\const{{}} in a formula)"))
    return [f"{path}:{text.count(chr(10), 0, at) + 1}: {message}" for at, message in sorted(found)]


def _blank(match: re.Match[str]) -> str:
    """Spaces in place of the match, line ends kept, so that positions stay true."""
    return re.sub(r"[^\n]", " ", match[0])


def _blank_math(match: re.Match[str]) -> str:
    return ZERO_OR_ONE.sub(_blank, SCRIPT.sub(_blank, match[0]))
