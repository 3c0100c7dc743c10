from pathlib import Path

import pytest

from ghost.report.lint import lint, lint_text
from ghost.study import ARTEFACTS

CELLS = {"fig:a/x", "fig:a/y"}


def complaints(text):
    return lint_text(Path("s.tex"), text, CELLS)


@pytest.mark.parametrize(
    "text",
    [
        "Ghost needs 10 steps.",
        "Ghost needs $10$ steps.",
        "an error of 0.05",
        r"a gain of $+3$ points, \emph{67 percent}",
        r"$d = 1.5$",
        r"at \cell{fig:a/x} and 3",
        "reduced by 1,430",
        r"\caption{Over 5 seeds}",
        r"\ghostfigure{a}{All 3 wells.}",
        r"$z = 2^{k}$",
    ],
)
def test_a_typed_number_is_found(text):
    assert any("typed number" in complaint for complaint in complaints(text)), text


@pytest.mark.parametrize(
    "text",
    [
        r"Ghost needs \cell{fig:a/x} steps; the paper has \published{fig:a/y}.",
        r"$\dot{z} = \mu + z^2$, $\mathbf{c}_1$, $z^{(0)}$, $c \in \{0, 1\}$, $-\const{3}z$",
        "\\begin{equation}\nU = 0.3(z^2 - d^2)^2\n\\label{eq:u2}\n\\end{equation}",
        r"\[ \mu_1 = (-1, 2) \]",
        r"Section~\ref{sec:2}, \cite{strogatz2015nonlinear}, \vspace{3pt}\\[2pt]",
        "% in 2019 it was 5\nno",
        r"GR00T N1.5 on LIBERO-10 and ML45",
        r"\ghostfigure[0.85\columnwidth]{a2}{No number.}",
    ],
)
def test_what_is_no_measurement_is_left_alone(text):
    assert complaints(text) == []


def test_the_place_is_named():
    assert complaints("one\ntwo\nthree 3\n") == [
        "s.tex:3: typed number 3: make it a \\cell{} (or \\const{} in a formula)"
    ]


def test_an_unknown_cell_is_named_with_a_near_one():
    assert complaints(r"\cell{fig:a/z}")[0].startswith("s.tex:1: no cell fig:a/z; did you mean fig:a/")
    assert complaints(r"% \cell{fig:a/z}") == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (r"\standin{fig:b}{dual-arm data set}{made}{recorded}", "no figure or table fig:b; did you mean fig:a"),
        (
            r"\standin{fig:a}{dual-arm data}{made}{recorded}",
            "no stand-in dual-arm data; did you mean dual-arm data set",
        ),
        (r"\standin{fig:a}{dual-arm data set}{5 made}{recorded}", "typed number 5"),
    ],
)
def test_a_text_about_a_stand_in_that_does_not_exist_is_named(text, says):
    """A slip would choose the text for the real thing, and nobody would see it."""
    assert complaints(text)[0].startswith(f"s.tex:1: {says}")
    assert complaints(r"\standin{fig:a}{GR00T N1.5 backbone}{made}{recorded}") == []


def test_our_report_has_no_typed_number(root):
    """Put a number into a result sentence and this goes red."""
    declared = {f"{artefact.id}/{cell.name}" for artefact in ARTEFACTS for cell in artefact.cells}
    assert lint(root / "paper", declared) == []
