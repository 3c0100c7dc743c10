"""`ghost bundle`: cells, records, raw results, code and PDFs in one zip, as an appendix to a submission.

The zip is an RO-Crate (ghost.audit.crate). The same build gives the same bytes. Checkpoints and shards are left out;
their sha256 stand in the records.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ghost.audit.build import Build
from ghost.audit.crate import crate
from ghost.data.results import MEASURED
from ghost.errors import GhostError
from ghost.files import atomic, confined, sha256
from ghost.runs.records import MANIFEST
from ghost.study.builds import Config

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold
CODE = ("LICENSE", "NOTICE", "Snakefile", "requirements.lock", "pyproject.toml", "CITATION.cff", "README.md")
CODE_FOLDERS = (("src/ghost", "*.py"), ("workflow/rules", "*.smk"), ("paper", "*.yaml"), ("paper", "LICENSE"))


def bundle(config: Config, out: Path) -> str:
    """Write the zip and return a line that sums up its content."""
    build = Build.open(config)
    if not build.cells:
        raise GhostError(f"{config.data}/cells.jsonl has no cells")
    files = {str(path): sha256(confined(Path(), str(path))) for path in sorted(set(_files(build)))}
    metadata = json.dumps(crate(build, files), indent=1, ensure_ascii=False).encode()
    checksums = "".join(f"{digest}  {name}\n" for name, digest in files.items()).encode()
    with atomic(out) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        _write(archive, "ro-crate-metadata.json", metadata)
        _write(archive, "SHA256SUMS", checksums)
        for name in files:
            _write(archive, name, Path(name).read_bytes())
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    return f"{out}: {len(files)} files, {len(build.cells)} cells, {len(build.runs)} runs, sha256 {digest[:16]}"


def _files(build: Build) -> Iterator[Path]:
    config = build.config
    data = ("cells.jsonl", "results.csv", "audit.html")
    yield from (path for name in data if (path := config.data / name).exists())
    yield from sorted((*(config.data / "cells").glob("*.jsonl"), *(config.data / "metrics").glob("*.json")))
    yield from (path for path in config.pdfs if path.exists())
    for runs in build.manifests.values():
        for run in runs:
            folder = run.folder / f"seed{run.seed}"
            yield from (run.folder / MANIFEST, folder / "run.json", run.path(MEASURED))
    yield from (path for name in (*CODE, *map(str, config.files), str(config.memory)) if (path := Path(name)).exists())
    for name, pattern in CODE_FOLDERS:
        yield from sorted(Path(name).rglob(pattern))


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    archive.writestr(entry, content)
