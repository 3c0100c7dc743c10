"""`ghost release`: a build as a folder for Zenodo, made offline; the same commit and build give the same bytes.

ghost-<version>-<build>.zip       the RO-Crate of `ghost bundle`: cells, records, raw results, report
ghost-<version>-source.zip        the files of the commit
ghost.pdf, ghost_supplement.pdf   the report by itself, so that Zenodo shows it
CITATION.cff, .zenodo.json        with the DOI that Zenodo reserved ("Get a DOI now!" on the upload's page)
SHA256SUMS                        of all of these
"""

import re
import subprocess
from pathlib import Path
from typing import Any

from ghost.audit.bundle import bundle
from ghost.audit.verify import ALL, verify
from ghost.errors import GhostError
from ghost.files import atomic, link, read_yaml, sha256, write_json, write_text
from ghost.project.place import version
from ghost.report.cells import read_cells
from ghost.report.glance import caveat
from ghost.study.builds import Config

CITATION = Path("CITATION.cff")
DOI = re.compile(r"10\.\d{4,9}/[-._;()/:a-zA-Z0-9]+")
CITED = {
    **dict.fromkeys(("title", "abstract", "license"), str),
    **{"keywords": [str], "authors": [dict], "references": [{"title": str, "url": str, "authors": [dict]}]},
}


def release(config: Config, out: Path, doi: str) -> str:
    """Write the folder, if the build verifies and the commit has everything; returns a line about it."""
    if not DOI.fullmatch(doi):
        raise GhostError(f"{doi!r} is not a DOI such as 10.5281/zenodo.1234567: Zenodo reserves one for a new upload")
    if out.exists() and any(out.iterdir()):
        raise GhostError(f"{out} is not empty; give another folder with --out")
    if changed := git("status", "--porcelain").decode().splitlines():
        raise GhostError(f"{len(changed)} files differ from the commit, such as {changed[0][3:]}: commit them first")
    if problems := verify(config, [part for part in ALL if part != "seal"]):
        raise GhostError(f"the build {config.scale} has {len(problems)} problems: `ghost audit --verify` lists them")
    date = git("show", "-s", "--format=%cs", "HEAD").decode().strip()
    name = f"ghost-{version()}"
    bundle(config, out / f"{name}-{config.scale}.zip")
    with atomic(out / f"{name}-source.zip") as temporary:
        temporary.write_bytes(git("archive", "--format=zip", f"--prefix={name}/", "HEAD"))
    for pdf in config.pdfs:
        if pdf.exists():
            link(pdf, out / pdf.name)  # under its own name: the report links to its supplement
    write_text(out / CITATION, cited(CITATION.read_text(encoding="utf-8"), doi, date))
    cells = list(read_cells(config.data / "cells.jsonl").values())
    write_json(out / ".zenodo.json", metadata(doi, date, caveat(cells, config.scale)))
    files = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    write_text(out / "SHA256SUMS", "".join(f"{sha256(path)}  {path.name}\n" for path in files))
    size = sum(path.stat().st_size for path in files) / 1e6
    return f"{out}: {len(files)} files, {size:.1f} MB, for doi {doi}; `sha256sum -c SHA256SUMS` checks them"


def cited(text: str, doi: str, date: str) -> str:
    """CITATION.cff with the DOI and the day of the commit after the version."""
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("doi:", "date-released:")))
    return re.sub(r"^(version: .*\n)", rf"\g<1>doi: {doi}\ndate-released: {date}\n", kept, count=1, flags=re.M)


def metadata(doi: str, date: str, caution: str) -> dict[str, Any]:
    """What Zenodo asks for, from CITATION.cff."""
    citation = read_yaml(CITATION, CITED)
    article = citation["references"][0]
    authors = "; ".join(map(named, article["authors"]))
    return {
        "upload_type": "software",
        "title": citation["title"],
        "creators": [{"name": named(author)} for author in citation["authors"]],
        "description": citation["abstract"].strip(),
        "notes": caution,
        "version": version(),
        "doi": doi,
        "publication_date": date,
        "access_right": "open",
        "license": citation["license"],
        "keywords": citation["keywords"],
        "references": [f"{authors}. {article['title']}. {article['url']}"],
        "related_identifiers": [{"identifier": article["url"], "relation": "isSupplementTo"}],
    }


def named(author: dict[str, Any]) -> str:
    """As Zenodo has names: a group's, or the family name first."""
    names = [author.get(key) for key in ("name", "family-names", "given-names")]
    return ", ".join(str(name) for name in names if name)


def git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], capture_output=True, check=False)  # noqa: S603, S607
    if done.returncode:
        raise GhostError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
