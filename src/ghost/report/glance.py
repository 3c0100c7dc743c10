"""Results at a glance: a few central cells, the verdicts counted, pictures of report and audit page, for README.md.

The block stands between two comments in README.md. `ghost glance` writes it from a build, so nobody types a number.
"""

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from PIL import Image

from ghost.claims.ledger import read_ledger
from ghost.claims.report import judge
from ghost.claims.verdicts import VERDICTS
from ghost.errors import GhostError
from ghost.files import atomic, write_text
from ghost.report.cells import read_cells
from ghost.report.headlines import chosen
from ghost.study.builds import Config
from ghost.study.libero import VARIANTS

README = Path("README.md")
PICTURE, PAGE_PICTURE = Path("docs/images/report.png"), Path("docs/images/audit.png")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STUDY = "tab:closed_loop_study"
SECONDS = 300  # for a picture, on a machine with much other work
BEGIN, END = "<!-- glance -->\n", "<!-- /glance -->\n"


def glance(config: Config) -> None:
    """Write the block of README.md, a picture of the build's PDF, and one of its audit page where there is chromium."""
    text = README.read_text(encoding="utf-8")
    cells = read_cells(config.data / "cells.jsonl")
    verdicts = counted(verdict.verdict for verdict in judge(config, read_ledger()))
    parts = [block(cells, config.scale), *([study(cells)] if has_study(cells) else []), f"{verdicts}\n"]
    write_text(README, replaced(text, "\n".join(parts)))
    if config.pdf.exists():
        picture(config.pdf, PICTURE)
    if (config.data / "audit.html").exists():
        screenshot(config.data / "audit.html", "runs", PAGE_PICTURE)


def block(cells: Mapping[str, Mapping[str, Any]], build: str) -> str:
    """The block as Markdown: one line per chosen cell, and one sentence on what the numbers rest on.

    Where the closed-loop study is there, its table takes the place of the build's own few trials.
    """
    lines = ["| result | of | value | p against Ghost | `ghost audit` |", "|---|---|---|---|---|"]
    used, last = [], ""
    told = (line for line in chosen() if not (has_study(cells) and line[2].startswith("tab:libero10/")))
    for title, label, identity, p in told:
        for name in filter(None, (identity, p)):
            if name not in cells:
                raise GhostError(f"the build {build} has no cell {name}; run `snakemake all --config scale={build}`")
            used.append(cells[name])
        value = " ".join(filter(None, (cells[identity]["shown"], cells[identity]["unit"])))
        against = cells[p]["shown"] if p else ""
        shown, last = "" if title == last else title, title  # once, in the first of its lines
        lines.append(f"| {shown} | {label.replace('_', ' ')} | {value} | {against} | `{identity}` |")
    return "\n".join([*lines, "", f"{best(cells)} {caveat(used, build)}", ""])


def has_study(cells: Iterable[str]) -> bool:
    """Whether a build has read the closed-loop study."""
    return any(identity.startswith(f"{STUDY}/") for identity in cells)


def study(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """The closed-loop study as Markdown: a line per policy, and what it rests on."""
    columns = ("success", "gain", "p", "trials")
    rows = [name.split("/")[1] for name in cells if name.startswith(f"{STUDY}/") and name.endswith("/trials")]
    lines = [
        "| closed-loop study, LIBERO-10 | success (%) | difference (points) | p | trials |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        shown = [cells[name]["shown"] if (name := f"{STUDY}/{row}/{part}") in cells else "" for part in columns]
        lines.append(f"| {row.replace('_', ' ')} | {' | '.join(shown)} |")
    rests = ", ".join(sorted({name for row in rows for name in cells[f"{STUDY}/{row}/success"]["stand_ins"]}))
    said = (
        "The study was recorded once, on another machine, and is part of the repository"
        " ([docs/closed-loop.md](docs/closed-loop.md)). Each policy met every trial with several trainings; brackets"
        " hold 95 % intervals over trainings and trials. Differences are to the MLP in shared trials, those of the last"
        f" {len(VARIANTS)} rows to Ghost PG. It rests on stand-ins ({rests}), so it says nothing about GR00T N1.5."
        f" `ghost audit {STUDY}/MLP/success` names the runs behind a number."
    )
    return "\n".join([*lines, "", said, ""])


def best(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """Which decoder has the lowest test error."""
    errors = {label: (identity, p) for _, label, identity, p in chosen() if identity.startswith("tab:lightweight/")}
    first = min(errors, key=lambda label: cells[errors[label][0]]["value"])
    identity, p = errors[first]
    if first == "Ghost":
        return "Ghost has the lowest test error."
    theirs, ours, shown_p = (cells[name]["shown"] for name in (identity, errors["Ghost"][0], p))
    return f"The {first}, not Ghost, has the lowest test error: {theirs} against {ours}, p {shown_p}."


def counted(verdicts: Iterable[str]) -> str:
    """How many of the article's numbers have each verdict, in a sentence."""
    counts = Counter(verdicts)
    parts = [f"{counts[name]} {name}" for name in VERDICTS if counts[name]]
    return (
        f"`ghost claims` compares the build with {counts.total()} numbers and statements of the article: "
        f"{', '.join(parts)}. [docs/ask.md](docs/ask.md#the-articles-numbers-and-the-verdicts) explains these words."
    )


def caveat(cells: Sequence[Mapping[str, Any]], build: str) -> str:
    """What the cells rest on, in a sentence."""
    stand_ins = sorted({name for cell in cells for name in cell["stand_ins"]})
    reasons = [f"stand-ins ({', '.join(stand_ins)})"] if stand_ins else []
    if any(cell["reduced"] for cell in cells):
        reasons.append("settings that are smaller than the article's")
    rests = f"rest on {' and on '.join(reasons)}, so they" if reasons else "rest on no stand-in and no reduced setting;"
    verdict = "neither confirm nor refute the article" if reasons else "see `ghost claims` for the verdicts"
    return f"These numbers come from the build `{build}`. They {rests} {verdict}."


def replaced(text: str, new: str) -> str:
    """The README with `new` as its block."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise GhostError(f"{README}: no block between {BEGIN.strip()} and {END.strip()}, each on a line of its own")
    return before + begin + new + end + after


def picture(pdf: Path, out: Path, *, pages: int = 2, dpi: int = 60) -> None:
    """The first pages of the report side by side, in few colours, since the picture is kept by git."""
    document = pypdfium2.PdfDocument(pdf)
    images = [
        np.asarray(document[number].render(scale=dpi / 72).to_pil()) for number in range(min(pages, len(document)))
    ]
    with atomic(out) as temporary:
        Image.fromarray(np.hstack(images)).quantize(32).save(temporary, optimize=True)


def screenshot(page: Path, place: str, out: Path) -> None:
    """A page at a place of it, as chromium shows it; nothing where there is no chromium."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        command = [
            *(browser, "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # chromium refuses to sandbox for root
            *(f"--user-data-dir={folder}/profile", "--window-size=1280,860", f"--screenshot={shot}"),
            f"{page.resolve().as_uri()}#{place}",
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)  # noqa: S603  # no shell
        except subprocess.TimeoutExpired:
            raise GhostError(f"{browser} made no picture of {page} in {SECONDS} s") from None
        if done.returncode or not shot.is_file():
            raise GhostError(f"{browser} made no picture of {page}")
        with Image.open(shot) as image, atomic(out) as temporary:
            image.convert("RGB").quantize(64).save(temporary, format="PNG", optimize=True)
