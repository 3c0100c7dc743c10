"""The sha256 of every file that a build consists of: `python -m ghost.steps.inventory --files ... --manifests ...`."""

from pathlib import Path

import tyro

from ghost.errors import exit_on_error
from ghost.files import sha256, write_json
from ghost.report.inventory import records


def inventory(files: tuple[Path, ...], manifests: tuple[Path, ...], out: Path) -> None:
    """Write the inventory. `ghost audit --verify` compares it, and `ghost seal` signs it.

    Args:
        files: what the build has made beside its runs.
        manifests: the manifests of every experiment.
        out: the inventory to write.
    """
    write_json(out, {"files": {str(path): sha256(path) for path in (*files, *records(manifests))}})


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(inventory))
