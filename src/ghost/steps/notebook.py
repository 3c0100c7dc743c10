"""Execute a notebook: `python -m ghost.steps.notebook --source x.py --features ... --trained ... --out x.html`.

The source is a jupytext percent script, which reads its paths from GHOST_FEATURES and GHOST_TRAINED. What is written is
one HTML page, the same bytes for the same inputs: cells have numbers for ids, and no time is recorded.
"""

import os
from pathlib import Path

import jupytext
import tyro
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert import HTMLExporter

from ghost.errors import GhostError, exit_on_error
from ghost.files import write_text

TIMEOUT_S = 600


def notebook(source: Path, features: Path, trained: Path, out: Path) -> None:
    """Execute a notebook on one training run.

    Args:
        source: the notebook, a percent script.
        features: the manifest of the feature cache.
        trained: the manifest of the training; its first run is shown.
        out: the HTML page to write.
    """
    page = jupytext.read(source)
    for number, cell in enumerate(page.cells):
        cell["id"] = f"cell-{number}"
    page.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    os.environ |= {"GHOST_FEATURES": str(features.resolve()), "GHOST_TRAINED": str(trained.resolve())}
    client = NotebookClient(page, kernel_name="python3", timeout=TIMEOUT_S, record_timing=False)
    try:
        client.execute()
    except CellExecutionError as error:
        raise GhostError(f"{source}: {error.ename}: {error.evalue}") from None
    except (TimeoutError, DeadKernelError) as error:
        raise GhostError(f"{source}: {error}") from None
    exporter = HTMLExporter()  # type: ignore[no-untyped-call]
    html, _ = exporter.from_notebook_node(page, resources={"metadata": {"name": source.stem.replace("_", " ")}})
    write_text(out, html)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(notebook))
