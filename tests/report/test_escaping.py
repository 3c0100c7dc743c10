import pytest

from ghost.report.escaping import escape, number


@pytest.mark.parametrize(
    ("shown", "latex"),
    [
        ("-0.4 to 0.0", r"\ensuremath{-0.4} to \ensuremath{0.0}"),
        ("1 to many", "1 to many"),
        ("-1.89", r"\ensuremath{-1.89}"),
        ("2,315,746", r"\ensuremath{2{,}315{,}746}"),
        ("0.0174 ± 0.0002", r"\ensuremath{0.0174 \pm 0.0002}"),
        ("1.5e-06", r"\ensuremath{1.5 \times 10^{-6}}"),
        ("1e+20", r"\ensuremath{1 \times 10^{20}}"),
        ("+13 [-7, +19]", r"\ensuremath{+13\ [-7, +19]}"),
        ("1.2 [0.9, 1.5e-06]", r"\ensuremath{1.2\ [0.9, 1.5 \times 10^{-6}]}"),
        ("> 20", r"\textgreater{}~\ensuremath{20}"),
        ("< 0.001", r"\textless{}~\ensuremath{0.001}"),
        ("> 3 of 4", r"\textgreater{} 3 of 4"),
        ("3, 5, 10", "3, 5, 10"),
        ("undefined", "undefined"),
    ],
)
def test_numbers(shown, latex):
    assert number(shown) == latex


def test_hostile_text_is_only_text():
    assert escape(r"\input{/etc/passwd}") == r"\textbackslash{}input\{/etc/passwd\}"
    assert escape("50% of $x_1$ & #2 ~ ^") == r"50\% of \$x\_1\$ \& \#2 \textasciitilde{} \textasciicircum{}"
