import pytest

from ghost.errors import GhostError
from ghost.report.tables import latex, page
from ghost.study import find_artefact
from ghost.study.declarations import Cell
from ghost.study.tables import Column, Row, math, tabulated

TABLE = tabulated(
    "x",
    ("Who & what", Column("p", math("p"), lambda of: Cell("", of, "p")), Column("file", "Module")),
    [Row("a", ("50 %",), "one")],
    [Row("b", ("", None, (Cell("low", "one", "q"), ", ", Cell("b/file", "", "m"))))],
)
CELLS = {
    identity: {"id": identity, "shown": shown}
    for identity, shown in {"tab:x/a/p": "9.2e-03", "tab:x/low": "<1", "tab:x/b/file": "a/net_works.py"}.items()
}


def test_a_table_in_latex():
    assert latex(TABLE, CELLS) == (
        "\\providecommand{\\ghostlink}[2]{#2}%\n"
        "\\begin{tabular}{@{}lcc@{}}\n"
        "\\toprule\n"
        "Who \\& what & $p$ & Module \\\\\n"
        "\\midrule\n"
        "50 \\% & \\ghostlink{prov:tab:x/a/p}{\\ensuremath{9.2 \\times 10^{-3}}} & --- \\\\\n"
        "\\midrule\n"
        " & --- & \\ghostlink{prov:tab:x/low}{\\textless{}1}, "
        "\\ghostlink{prov:tab:x/b/file}{\\texttt{a/net\\_works.py}} \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_a_table_for_the_audit_page():
    def fixed(text):
        return [{"text": text, "cell": ""}]

    def number(name, text):
        return {"text": text, "cell": f"tab:x/{name}"}

    assert page(TABLE, CELLS) == [
        [fixed("Who & what"), fixed("p"), fixed("Module")],
        [fixed("50 %"), [number("a/p", "9.2e-03")], fixed("—")],
        [fixed(""), fixed("—"), [number("low", "<1"), *fixed(", "), number("b/file", "a/net_works.py")]],
    ]


@pytest.mark.parametrize("render", [latex, page])
def test_a_table_with_an_unknown_cell_fails(render):
    cells = {**CELLS, "tab:x/lo": CELLS["tab:x/low"]}
    del cells["tab:x/low"]
    with pytest.raises(GhostError, match="tab:x shows tab:x/low, which is not among the cells; did you mean tab:x/lo"):
        render(TABLE, cells)
    with pytest.raises(GhostError, match="fig:method is no table"):
        render(find_artefact("fig:method"), CELLS)
