r"""A table of the report: `python -m ghost.steps.tabulate --template tab_x.tex.jinja --cells tab_x.jsonl --out tab_x.tex`.

The template holds the tabular alone, in LaTeX, with `<< cell('name') >>` where a number stands. Each number links to
its entry in the provenance appendix; in a manuscript that has none, such as the authors' own, it is just the number.
"""

from __future__ import annotations

from pathlib import Path

import jinja2
import tyro

from ghost.errors import GhostError, did_you_mean, exit_on_error
from ghost.files import write_text
from ghost.report.appendix import anchor
from ghost.report.cells import read_cells
from ghost.report.escaping import escape, number

HEAD = "\\providecommand{\\ghostlink}[2]{#2}%\n"


def tabulate(artefact: str, template: Path, cells: Path, out: Path) -> None:
    """Fill a table's template.

    Args:
        artefact: the table's id, such as tab:lightweight.
        template: LaTeX with jinja2's expressions in << >> and statements in <% %>.
        cells: the table's cells.
        out: the LaTeX file to write.
    """
    by_id = read_cells(cells)

    def cell(name: str) -> str:
        identity = f"{artefact}/{name}"
        if identity not in by_id:
            raise GhostError(f"{template}: no cell {identity}{did_you_mean(identity, by_id)}")
        shown = by_id[identity]["shown"]
        text = rf"\texttt{{{escape(shown)}}}" if shown.endswith(".py") else number(shown)
        return rf"\ghostlink{{prov:{anchor(identity)}}}{{{text}}}"

    environment = jinja2.Environment(
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # escaping is LaTeX's, in `cell`
    )
    try:
        text = environment.from_string(template.read_text(encoding="utf-8")).render(cell=cell)
    except jinja2.TemplateError as error:
        raise GhostError(f"{template}: {error}") from None
    write_text(out, HEAD + text)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(tabulate))
