"""Draw one figure.

`ghost.report.plots.<label>` has `draw(runs) -> Figure`. The step writes .pdf and .png, and with `--pgf` the .pgf that
the report typesets in its own font (matplotlib's pgf backend, which asks LaTeX for the size of each text). A text with
`parse_math=False` comes from elsewhere, such as an instruction, and may hold any characters.
"""

import importlib
from pathlib import Path

import matplotlib as mpl
import tyro
from matplotlib.text import Text

from ghost.errors import exit_on_error
from ghost.files import scratch
from ghost.report.escaping import escape
from ghost.report.plots.style import RC
from ghost.runs.records import open_runs


def plot(label: str, out: Path, manifests: tuple[Path, ...], pgf: bool = False) -> None:
    """Draw one figure.

    Args:
        label: the figure's label, such as switch_speed for fig:switch_speed.
        out: where to write, without the suffix.
        manifests: the manifests of the experiments it shows.
        pgf: write the .pgf too; needs pdflatex.
    """
    runs = {manifest.parent.name: open_runs(manifest) for manifest in manifests}
    with mpl.rc_context(RC), scratch(out) as folder:
        drawn = importlib.import_module(f"ghost.report.plots.{label}").draw(runs)
        target = folder / out.name  # the final name: a .pgf refers to its images by it
        drawn.savefig(target.with_suffix(".pdf"), backend="pdf", metadata={"CreationDate": None})
        drawn.savefig(target.with_suffix(".png"), backend="agg", dpi=200, metadata={"Software": None})
        if pgf:
            for text in drawn.findobj(Text):
                if not text.get_parse_math():
                    text.set_text(escape(text.get_text()))
            drawn.savefig(target.with_suffix(".pgf"), backend="pgf")
        for made in sorted(folder.iterdir()):
            made.replace(out.parent / made.name)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(plot))
